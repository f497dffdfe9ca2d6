import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import { createFileOrigin } from '../../../src/adapters/jwks/read-file.js';
import { accept, type Result } from '../../../src/lib/result.js';
import type { Files } from '../../../src/ports/system.js';
import { keySet } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import { tempDir } from '../../support/temp-dir.js';
import { until } from '../../support/until.js';
import { createKeySourceHarness, type KeySourceHarness } from './key-source-harness.js';

const one = rsaKey('d-1');
const two = rsaKey('d-2');

/** Looks often, so that the tests do not take long. */
const files: Files = {
  ...localFiles,
  watch: (path, onChange, options) => localFiles.watch(path, onChange, { ...options, intervalMs: 5 }),
};

async function startFileHarness(
  t: { teardown: (close: () => unknown) => unknown },
  path: string,
): Promise<KeySourceHarness> {
  const harness = createKeySourceHarness(t, { kind: 'file', path }, { files });
  await harness.source.start();
  return harness;
}

t.test('keys from a file, watched', async (t) => {
  const path = join(tempDir(t), 'jwks.json');
  writeFileSync(path, keySet([one]));
  const { lookUp, source } = await startFileHarness(t, path);
  t.equal(await lookUp('d-1'), 'found');
  t.equal(await lookUp('d-2'), 'unknown');
  writeFileSync(path, keySet([two]));
  await until('the change is seen', () => source.state().keys[0]?.keyId === 'd-2');
  t.equal(await lookUp('d-2'), 'found');
  t.equal(await lookUp('d-1'), 'unknown');
});

t.test('the link of a ConfigMap moves', async (t) => {
  const dir = tempDir(t);
  const publish = (version: string, text: string): void => {
    mkdirSync(join(dir, version));
    writeFileSync(join(dir, version, 'jwks.json'), text);
    symlinkSync(version, join(dir, '..tmp'));
    renameSync(join(dir, '..tmp'), join(dir, '..data'));
  };
  publish('..v1', keySet([one]));
  symlinkSync('..data/jwks.json', join(dir, 'jwks.json'));
  const { lookUp, source } = await startFileHarness(t, join(dir, 'jwks.json'));
  publish('..v2', keySet([one, two]));
  await until('the change is seen', () => source.state().keys.length === 2);
  t.equal(await lookUp('d-2'), 'found');
});

t.test('a file that is empty, broken or gone never replaces a good set', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'jwks.json');
  writeFileSync(path, keySet([one]));
  const { lookUp, source } = await startFileHarness(t, path);
  const rows: { name: string; change: () => void; error: RegExp }[] = [
    {
      name: 'gone',
      change: () => {
        rmSync(path);
      },
      error: /^the file does not exist$/,
    },
    {
      name: 'empty',
      change: () => {
        writeFileSync(path, '');
      },
      error: /not JSON/,
    },
    {
      name: 'no list of keys',
      change: () => {
        writeFileSync(path, '{"keys":{}}');
      },
      error: /no array "keys"/,
    },
    {
      name: 'no text',
      change: () => {
        writeFileSync(path, Buffer.from([0xff]));
      },
      error: /^the file is not UTF-8 text$/,
    },
    {
      name: 'too large',
      change: () => {
        writeFileSync(path, ' '.repeat(256 * 1024 + 1));
      },
      error: /^the file is larger than/,
    },
    {
      name: 'a directory',
      change: () => {
        rmSync(path);
        mkdirSync(path);
      },
      error: /^the file is a directory$/,
    },
  ];
  for (const { name, change, error } of rows) {
    change();
    await until(name, () => error.test(source.state().lastError ?? ''));
    t.equal(await lookUp('d-1'), 'found', name);
    t.match(source.state(), { usable: true, stale: true });
  }
  rmSync(path, { recursive: true });
  writeFileSync(path, keySet([two]));
  await until('the file is good again', () => source.state().lastError === null);
  t.equal(await lookUp('d-2'), 'found');
});

t.test('a file that is not there at start is taken when it comes', async (t) => {
  const path = join(tempDir(t), 'jwks.json');
  const { lookUp, source } = await startFileHarness(t, path);
  t.match(source.state(), { usable: false, lastError: 'the file does not exist' });
  t.equal(await lookUp('d-1'), 'unavailable');
  writeFileSync(path, keySet([one]));
  await until('the file is seen', () => source.state().usable);
  t.equal(await lookUp('d-1'), 'found');
});

t.test('an unknown kid reads the file again, once for each cooldown', async (t) => {
  let text = keySet([one]);
  let reads = 0;
  const still: Files = {
    ...localFiles,
    read: () => {
      reads += 1;
      return Promise.resolve(accept(text));
    },
    watch: () => ({ close: () => undefined, loaded: () => undefined }),
  };
  const { lookUp, source, time } = createKeySourceHarness(t, { kind: 'file', path: '/jwks.json' }, { files: still });
  await source.start();
  text = keySet([one, two]);
  t.equal(await lookUp('d-2'), 'unknown');
  time.advance(5_000);
  t.equal(await lookUp('d-2'), 'waited: found');
  t.equal(reads, 2);
});

t.test('a change while the file is being read is read after that', async (t) => {
  let text = keySet([one]);
  let changed = (): void => undefined;
  let finish = (): void => undefined;
  let reads = 0;
  const slow: Files = {
    ...localFiles,
    read: () =>
      new Promise((resolve) => {
        reads += 1;
        const seen = text;
        finish = () => {
          resolve(accept(seen));
        };
      }),
    watch: (_path, onChange) => {
      changed = () => {
        onChange(accept(text));
      };
      return { close: () => undefined, loaded: () => undefined };
    },
  };
  const { source, time, lookUp } = createKeySourceHarness(t, { kind: 'file', path: '/jwks.json' }, { files: slow });
  const started = source.start();
  finish();
  await started;
  time.advance(480_000);
  await until('the second read', () => reads === 2);
  text = keySet([two]);
  changed();
  finish();
  await until('the third read', () => reads === 3);
  finish();
  await until('its end', () => source.state().keys[0]?.keyId === 'd-2');
  t.equal(await lookUp('d-2'), 'found');
});

t.test('what an attempt reads and is taken back before the watch sees it is taken back', async (t) => {
  const path = join(tempDir(t), 'jwks.json');
  writeFileSync(path, keySet([one]));
  const idle: Files = {
    ...localFiles,
    watch: (name, onChange, options) => localFiles.watch(name, onChange, { ...options, intervalMs: 200 }),
  };
  const { source, time } = createKeySourceHarness(t, { kind: 'file', path }, { files: idle });
  await source.start();
  writeFileSync(path, keySet([two]));
  time.advance(480_000);
  await until('the attempt read the other keys', () => source.state().keys[0]?.keyId === 'd-2');
  writeFileSync(path, keySet([one]));
  await until('the watch brings the first keys back', () => source.state().keys[0]?.keyId === 'd-1');
});

t.test('a file system that hangs is not asked again before it answered', async (t) => {
  const hung: Files = { ...localFiles, read: () => new Promise<Result<string, string>>(() => undefined) };
  const origin = createFileOrigin('/jwks.json', hung, () => undefined);
  const { signal } = new AbortController();
  void origin.load({ maxBytes: 1024, timeoutMs: 1_000 }, signal);
  t.same(await origin.load({ maxBytes: 1024, timeoutMs: 1_000 }, signal), {
    ok: false,
    error: 'the last attempt to read the file has not ended',
  });
  origin.close();
});

t.test('once closed the file is watched no more', async (t) => {
  const watched: string[] = [];
  const counting: Files = {
    ...localFiles,
    read: () => Promise.resolve(accept(keySet([one]))),
    watch: () => {
      watched.push('watch');
      return { close: () => watched.push('close'), loaded: () => undefined };
    },
  };
  const first = createKeySourceHarness(t, { kind: 'file', path: '/jwks.json' }, { files: counting });
  await first.source.start();
  await first.source.close();
  t.same(watched, ['watch', 'close']);
  const second = createKeySourceHarness(t, { kind: 'file', path: '/jwks.json' }, { files: counting });
  const started = second.source.start();
  await second.source.close();
  await started;
  t.same(watched, ['watch', 'close'], 'nor when it is closed during the first read');
});
