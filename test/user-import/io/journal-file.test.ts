import { appendFileSync, chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createJournalFile, openJournalFile, readJournalLines } from '../../../src/user-import/io/journal-file.js';
import { processMark } from '../../../src/user-import/io/process-id.js';
import { writeReport } from '../../../src/user-import/io/report-file.js';
import { tempDir } from '../../support/temp-dir.js';

async function created(
  path: string,
): Promise<Extract<Awaited<ReturnType<typeof createJournalFile>>, { ok: true }>['value']> {
  const made = await createJournalFile(path);
  if (!made.ok) throw new Error(made.error);
  return made.value;
}

t.test('lines are kept in order, in a file for the owner alone', async (t) => {
  const path = join(tempDir(t), 'journal');
  const journal = await created(path);
  t.same(await journal.commit(), { ok: true, value: null }, 'nothing to keep');
  const kept = await Promise.all(
    Array.from({ length: 2_000 }, async (_, index) => {
      journal.append(`${index}\n`);
      return journal.commit();
    }),
  );
  t.ok(kept.every(({ ok }) => ok));
  journal.append('last\n');
  await journal.close();
  t.equal(readFileSync(path, 'utf8'), `${Array.from({ length: 2_000 }, (_, index) => index).join('\n')}\nlast\n`);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.same(await createJournalFile(path), { ok: false, error: 'exists' });
  t.match(await createJournalFile(join(path, 'below')), { ok: false, error: /^cannot be made \(ENOTDIR\)/ });
});

t.test('what nobody waits for is written too', async (t) => {
  const path = join(tempDir(t), 'journal');
  const journal = await created(path);
  for (let index = 0; index < 513; index += 1) journal.append('x\n');
  await journal.close();
  t.equal(statSync(path).size, 1_026);
});

t.test('a journal is gone on with behind its last whole line', async (t) => {
  const path = join(tempDir(t), 'journal');
  writeFileSync(path, 'one\ntwo\n{"torn', { mode: 0o600 });
  const seen: string[] = [];
  const opened = await openJournalFile(path, (line) => {
    seen.push(line);
    return null;
  });
  if (!opened.ok) throw new Error(opened.error);
  t.equal(opened.value.lines, 2);
  opened.value.file.append('three\n');
  await opened.value.file.close();
  t.same(seen, ['one', 'two']);
  t.equal(readFileSync(path, 'utf8'), 'one\ntwo\nthree\n');
  const lines: string[] = [];
  appendFileSync(path, 'torn again');
  for await (const line of readJournalLines(path)) lines.push(line);
  t.same(lines, ['one', 'two', 'three']);
});

t.test('journals that are refused, and left as they are', async (t) => {
  const dir = tempDir(t);
  const file = (name: string, content: string, mode = 0o600): string => {
    writeFileSync(join(dir, name), content);
    chmodSync(join(dir, name), mode);
    return join(dir, name);
  };
  const bad = file('bad', 'good\nbad\ntorn');
  t.same(await openJournalFile(bad, (line) => (line === 'bad' ? 'is odd' : null)), {
    ok: false,
    error: 'line 2 is odd',
  });
  t.equal(readFileSync(bad, 'utf8'), 'good\nbad\ntorn');
  t.same(await openJournalFile(file('long', `${'x'.repeat(70_000)}\n`), () => null), {
    ok: false,
    error: 'line 1 is too long',
  });
  t.same(await openJournalFile(file('open', 'x\n', 0o640), () => null), {
    ok: false,
    error: 'is open to others (mode 0640); chmod 600 it',
  });
  const foreign = file('foreign', 'a line of somebody else without an end');
  t.same(await openJournalFile(foreign, () => null), { ok: false, error: 'is no journal' });
  t.equal(readFileSync(foreign, 'utf8'), 'a line of somebody else without an end');
  const growing = file('growing', '{"one":1}\n');
  const grows = (): null => {
    appendFileSync(growing, '{"two":2}\n{"thr');
    return null;
  };
  t.same(await openJournalFile(growing, grows), {
    ok: false,
    error: 'is being written to: only one import may run over a file',
  });
  t.match(readFileSync(growing, 'utf8'), /\{"thr$/, 'nothing of it is cut off');
  t.same(await openJournalFile(join(dir, 'none'), () => null), { ok: false, error: 'does not exist' });
  symlinkSync(bad, join(dir, 'link'));
  t.same(await openJournalFile(join(dir, 'link'), () => null), { ok: false, error: 'is a symbolic link' });
});

t.test('another writer is noticed, and from then on nothing is kept', async (t) => {
  const path = join(tempDir(t), 'journal');
  const journal = await created(path);
  journal.append('mine\n');
  t.ok((await journal.commit()).ok);
  appendFileSync(path, 'theirs\n');
  journal.append('mine\n');
  t.match(await journal.commit(), { ok: false, error: /another process writes to the journal/ });
  journal.append('mine\n');
  t.notOk((await journal.commit()).ok);
  await journal.close();
});

t.test('a process is told from those that have its number later', async (t) => {
  const mark = processMark(process.pid);
  t.match(mark, /^[0-9a-f-]{36} [0-9]+$/);
  t.equal(processMark(process.pid), mark);
  t.not(processMark(1), mark);
  t.equal(processMark(2 ** 30), null);
});

t.test('a report takes the place of an older one when it is whole', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'report');
  writeFileSync(path, 'old', { mode: 0o644 });
  writeFileSync(`${path}.new`, 'of a run that was killed');
  t.ok(
    (
      await writeReport(
        path,
        Array.from({ length: 20_000 }, (_, index) => `${index}\n`),
      )
    ).ok,
  );
  t.equal(readFileSync(path, 'utf8').split('\n').length, 20_001);
  t.equal(statSync(path).mode & 0o777, 0o600);
  async function* broken(): AsyncGenerator<string> {
    yield 'half';
    throw new Error('a bug');
  }
  await t.rejects(writeReport(path, broken()), { message: 'a bug' });
  t.equal(readFileSync(path, 'utf8').split('\n').length, 20_001, 'the old one stays');
  mkdirSync(join(dir, 'folder'));
  t.match(await writeReport(join(dir, 'folder'), ['x']), { ok: false, error: /^cannot be written/ });
});
