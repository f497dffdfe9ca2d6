import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { lockFile } from '../../../src/core-emulator/storage/file-lock.js';
import { beganAt } from '../../support/linux.js';
import { tempDir } from '../../support/temp-dir.js';

t.test('one holder at a time', async (t) => {
  const path = join(tempDir(t), 'data');
  const release = await lockFile(path);
  t.ok(release);
  t.equal(await lockFile(path), null);
  await release?.();
  t.same(readdirSync(join(path, '..')), []);
  const again = await lockFile(path);
  t.ok(again);
  await again?.();
});

t.test('a lock that was left behind is taken over', async (t) => {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  const own = `${String(process.pid)} ${beganAt(process.pid)}\n`;
  const cases = [
    { name: 'of a process that is gone', content: `${String(child.pid)} 12345\n` },
    { name: 'of an id that was given out again', content: '1 99999999999999\n' },
    { name: 'of this process in a life before, as in a container', content: own },
    { name: 'empty', content: '' },
    { name: 'of nobody', content: 'x' },
    { name: 'of process 0', content: '0 \n' },
  ];
  for (const { name, content } of cases) {
    const path = join(tempDir(t), 'data');
    writeFileSync(`${path}.lock`, content);
    const release = await lockFile(path);
    t.ok(release, name);
    await release?.();
    t.same(readdirSync(join(path, '..')), [], name);
  }
});

t.test('a lock of another process that lives is respected', async (t) => {
  const path = join(tempDir(t), 'data');
  writeFileSync(`${path}.lock`, `1 ${beganAt(1)}\n`);
  t.equal(await lockFile(path), null);
  t.same(readdirSync(join(path, '..')), ['data.lock']);
});

t.test('of many that find a left lock at once, one gets it', async (t) => {
  const path = join(tempDir(t), 'data');
  writeFileSync(`${path}.lock`, '0 \n');
  const taken = (await Promise.all(Array.from({ length: 8 }, () => lockFile(path)))).filter(
    (release) => release !== null,
  );
  t.equal(taken.length, 1);
  await taken[0]?.();
});
