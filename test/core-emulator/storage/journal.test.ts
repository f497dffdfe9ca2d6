import { open } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createJournal } from '../../../src/core-emulator/storage/journal.js';
import { tempDir } from '../../support/temp-dir.js';

t.test('lines are written in order, and settled means on disk', async (t) => {
  const path = join(tempDir(t), 'log');
  const journal = createJournal(await open(path, 'a'));
  await t.resolves(journal.settled(), 'nothing to wait for');
  const lines = Array.from({ length: 5000 }, (_, index) => String(index));
  await Promise.all(
    lines.map(async (line, index) => {
      if (index % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
      journal.append(line);
      await journal.settled();
      if (index % 500 === 0) t.ok(readFileSync(path, 'utf8').split('\n').includes(line), line);
    }),
  );
  t.same(new Set(readFileSync(path, 'utf8').trimEnd().split('\n')), new Set(lines));
  await journal.close();
});

t.test('many responses share one sync', async (t) => {
  const file = await open(join(tempDir(t), 'log'), 'a');
  let syncs = 0;
  const journal = createJournal(
    Object.assign(Object.create(file) as typeof file, {
      appendFile: (text: string) => file.appendFile(text),
      datasync: () => {
        syncs += 1;
        return file.datasync();
      },
      close: () => file.close(),
    }),
  );
  await Promise.all(
    Array.from({ length: 1000 }, async (_, index) => {
      journal.append(String(index));
      await journal.settled();
    }),
  );
  t.ok(syncs <= 2, `${String(syncs)} syncs`);
  await journal.close();
});

t.test('after a failed write nothing is promised any more', async (t) => {
  const file = await open(join(tempDir(t), 'log'), 'a');
  await file.close();
  const journal = createJournal(file);
  t.equal(journal.hasFailed(), false);
  journal.append('lost');
  await t.rejects(journal.settled());
  t.equal(journal.hasFailed(), true);
  journal.append('lost too');
  await t.rejects(journal.settled());
  await t.rejects(journal.close());
});
