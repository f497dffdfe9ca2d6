import { mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { watchFile } from '../../../src/adapters/files/file-watch.js';
import { textDigest } from '../../../src/adapters/files/read-file.js';
import { accept, refuse, type Result } from '../../../src/lib/result.js';
import type { AskedWatch } from '../../../src/ports/system.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';

type Content = Result<string, string>;

interface Watching extends AskedWatch {
  readonly seen: Content[];
  readonly saw: (text: string) => Promise<void>;
}

function watch(t: Test, path: string, known: string | null, maxBytes = 1024, leastAgeMs = (): number => 0): Watching {
  const seen: Content[] = [];
  const digest = known === null ? null : textDigest(known);
  const watching = watchFile(path, (content) => seen.push(content), { digest, maxBytes, intervalMs: 5, leastAgeMs });
  // Looking at files keeps no process alive.
  const alive = setInterval(() => undefined, 60_000);
  t.teardown(() => {
    clearInterval(alive);
    watching.close();
  });
  const saw = async (text: string): Promise<void> => {
    await until(text.slice(0, 20), () => {
      const last = seen.at(-1);
      return last !== undefined && (last.ok ? last.value : last.error) === text;
    });
    t.pass(`saw: ${text.slice(0, 20)}`);
  };
  return { ...watching, seen, saw };
}

t.test('sees a file that is written to', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  const { saw, seen } = watch(t, path, 'one');
  writeFileSync(path, 'two');
  await saw('two');
  // The same length, so that only the times and the content tell.
  writeFileSync(path, 'six');
  await saw('six');
  t.same(seen, [
    { ok: true, value: 'two' },
    { ok: true, value: 'six' },
  ]);
});

t.test('sees another file renamed over it', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'file');
  writeFileSync(path, 'one');
  const { saw } = watch(t, path, 'one');
  for (const text of ['two', 'six', 'ten']) {
    writeFileSync(join(dir, 'next'), text);
    renameSync(join(dir, 'next'), path);
    await saw(text);
  }
});

t.test('sees the link of a ConfigMap move', async (t) => {
  const dir = tempDir(t);
  const publish = (version: string, text: string): void => {
    mkdirSync(join(dir, version));
    writeFileSync(join(dir, version, 'file'), text);
    symlinkSync(version, join(dir, '..data_tmp'));
    renameSync(join(dir, '..data_tmp'), join(dir, '..data'));
  };
  publish('..v1', 'one');
  symlinkSync('..data/file', join(dir, 'file'));
  const { saw } = watch(t, join(dir, 'file'), 'one');
  publish('..v2', 'two');
  rmSync(join(dir, '..v1'), { recursive: true });
  await saw('two');
  publish('..v3', 'six');
  await saw('six');
});

t.test('sees a file go and come back', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  const { saw, seen } = watch(t, path, 'one');
  rmSync(path);
  await saw('does not exist');
  writeFileSync(path, 'one');
  await saw('one');
  t.equal(seen.length, 2);
});

t.test('sees what changed since the caller read the file', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'two');
  await watch(t, path, 'one').saw('two');
});

t.test('sees what differs from what the caller has loaded by itself since', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  const { saw, loaded, seen } = watch(t, path, 'one');
  loaded(accept(textDigest('two')));
  await saw('one');
  loaded(refuse('does not exist'));
  await until('it is told again', () => seen.length === 2);
  rmSync(path);
  await saw('does not exist');
  loaded(refuse('is a directory'));
  await until('another reason is news', () => seen.length === 4);
  loaded(refuse('does not exist'));
  writeFileSync(path, 'two');
  await saw('two');
  t.equal(seen.length, 5, 'the same reason is none');
});

t.test('sees a link that is back where it was, though the caller loaded something else in between', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'link');
  const text = readFileSync('LICENSE', 'utf8');
  symlinkSync(join(process.cwd(), 'LICENSE'), path);
  const { loaded, seen } = watch(t, path, text, 1024 * 1024);
  const other = join(dir, 'other');
  const meanwhile = watch(t, other, null);
  // By the time another watch saw its changes, this one trusts the times of a file that has long been there.
  for (const round of ['a', 'b', 'c']) {
    writeFileSync(other, round);
    await meanwhile.saw(round);
  }
  t.same(seen, []);
  loaded(accept(textDigest('another')));
  await until('it is told', () => seen.length === 1);
});

t.test('sees a file come that was not there', async (t) => {
  const path = join(tempDir(t), 'file');
  const { saw } = watch(t, path, null);
  writeFileSync(path, 'one');
  await saw('one');
});

t.test('says why a file that changed cannot be had', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  const { saw } = watch(t, path, 'one', 8);
  writeFileSync(path, 'too long for it');
  await saw('is larger than 8 bytes');
  rmSync(path);
  await saw('does not exist');
});

t.test('sees a link move from one file that has long been there to another', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'link');
  const [first, second] = ['LICENSE', 'package.json'].map((name) => ({ name, text: readFileSync(name, 'utf8') }));
  if (first === undefined || second === undefined) return void t.fail('two files');
  const publish = (name: string): void => {
    symlinkSync(join(process.cwd(), name), join(dir, 'next'));
    renameSync(join(dir, 'next'), path);
  };
  publish(first.name);
  const { saw } = watch(t, path, null, 1024 * 1024);
  await saw(first.text);
  const other = join(dir, 'other');
  const meanwhile = watch(t, other, null);
  for (const { name, text } of [second, first]) {
    // By the time another watch saw its change, this one has looked at a file that stays as it is.
    for (const round of ['a', 'b', 'c']) {
      writeFileSync(other, name + round);
      await meanwhile.saw(name + round);
    }
    publish(name);
    await saw(text);
  }
});

t.test('trusts the times of a file only when they are old', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  const { mtime, atime } = statSync(path);
  const { saw } = watch(t, path, 'one');
  for (const text of ['two', 'six']) {
    writeFileSync(path, text);
    utimesSync(path, atime, mtime);
    await saw(text);
  }
});

t.test('keeps quiet about a file that is written anew with the same content, and once closed', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'file');
  writeFileSync(path, 'one');
  const closed: Content[] = [];
  const { close } = watchFile(path, (content) => closed.push(content), {
    digest: textDigest('one'),
    maxBytes: 1024,
    intervalMs: 5,
  });
  const { saw, seen } = watch(t, path, 'one');
  writeFileSync(path, 'one');
  utimesSync(path, new Date(0), new Date(0));
  close();
  writeFileSync(path, 'two');
  await saw('two');
  t.same(seen, [{ ok: true, value: 'two' }]);
  t.same(closed, []);
});

t.test('a change waits until it is old enough, and begins anew with each writing', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  let age = Infinity;
  const { saw, seen } = watch(t, path, 'one', 1024, () => age);
  const hasty = watch(t, path, 'one');
  for (const text of ['half', 'whole']) {
    writeFileSync(path, text);
    await hasty.saw(text);
  }
  t.same(seen, []);
  age = 0;
  await saw('whole');
  t.equal(seen.length, 1);
});

t.test('a change counts by itself when its time has come, though the file says that it is of tomorrow', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  const { saw } = watch(t, path, 'one', 1024, () => 50);
  writeFileSync(path, 'two');
  const tomorrow = new Date(Date.now() + 86_400_000);
  utimesSync(path, tomorrow, tomorrow);
  await saw('two');
});

t.test('a file that was written long ago waits like any other: clocks of file servers go wrong', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  const { seen } = watch(t, path, 'one', 1024, () => Infinity);
  const hasty = watch(t, path, 'one');
  writeFileSync(path, 'two');
  utimesSync(path, new Date(0), new Date(0));
  await hasty.saw('two');
  t.same(seen, []);
});

t.test('who asks is told what counts, once it does, and is not called back for it', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, 'one');
  let age = Infinity;
  const { settled, seen, close } = watch(t, path, 'one', 1024, () => age);
  let waits = 0;
  const wait = (): void => {
    waits += 1;
  };
  t.same(await settled(wait), accept('one'), 'what did not change counts at once');
  t.equal(waits, 0);
  writeFileSync(path, 'two');
  const [asked, again] = [settled(wait), settled(wait)];
  await until('both are told to wait', () => waits === 2);
  const hasty = watch(t, path, 'two');
  writeFileSync(path, 'six');
  await hasty.saw('six');
  age = 0;
  t.same([await asked, await again], [accept('six'), accept('six')]);
  t.equal(waits, 2, 'once each');
  rmSync(path);
  t.same(await settled(wait), refuse('does not exist'));
  writeFileSync(path, 'unseen');
  const [unseen, looked] = [settled(wait), settled(wait)];
  close();
  t.same(
    await Promise.all([unseen, looked, settled(wait)]),
    [null, null, null],
    'nobody is kept waiting by a watch that is closed',
  );
  t.same(seen, []);
});

t.test('who asks after a writing is never told what was there before', async (t) => {
  const path = join(tempDir(t), 'file');
  writeFileSync(path, '0');
  const { settled } = watch(t, path, '0');
  for (let round = 1; round <= 100; round += 1) {
    writeFileSync(path, String(round));
    const asked = settled(() => undefined);
    // At another moment of the look that may be under way each time.
    for (let turn = 0; turn < round % 7; turn += 1) await new Promise(setImmediate);
    const content = await asked;
    if (content?.ok !== true || content.value !== String(round)) {
      t.fail(`round ${String(round)}: ${JSON.stringify(content)}`);
    }
  }
  t.pass('a hundred times');
});

t.test('a moved link counts without waiting; a file that is put in its place does not', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'link');
  for (const text of ['one', 'two', 'six']) writeFileSync(join(dir, text), text);
  const publish = (name: string): void => {
    symlinkSync(name, join(dir, 'next'));
    renameSync(join(dir, 'next'), path);
  };
  publish('one');
  const { saw, settled, seen } = watch(t, path, 'one', 1024, () => Infinity);
  t.same(await settled(() => undefined), accept('one'));
  publish('two');
  await saw('two');
  const hasty = watch(t, path, 'two');
  renameSync(join(dir, 'six'), join(dir, 'two'));
  await hasty.saw('six');
  t.equal(seen.length, 1);
});
