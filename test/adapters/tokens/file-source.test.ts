import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { localFiles } from '../../../src/adapters/files/files.js';
import { createFileSource } from '../../../src/adapters/tokens/file-source.js';
import type { TokenSource } from '../../../src/ports/tokens.js';
import type { Scope } from '../../support/scope.js';
import { tempDir } from '../../support/temp-dir.js';
import { fetches, wordOf, type Fetches } from './fetches.js';

function start(t: Scope, content: string | null): Fetches & { readonly source: TokenSource; readonly path: string } {
  const made = fetches();
  const path = join(tempDir(t), 'token');
  if (content !== null) writeFileSync(path, content);
  return { ...made, path, source: createFileSource('cluster', path, { ...made.deps, files: localFiles }) };
}

function jwt(name: string, expiresAtS: number): string {
  const parts = ['{"alg":"none"}', JSON.stringify({ sub: name, exp: expiresAtS }), 'x'];
  return parts.map((part) => Buffer.from(part).toString('base64url')).join('.');
}

t.test('read for a request, at most each second, however many ask', async (t) => {
  const { source, path, advance } = start(t, ' first\n');
  const herd = Array.from({ length: 200 }, () => source.get(null));
  t.equal(source.status().waiting, 200);
  t.strictSame(new Set(await Promise.all(herd.map(wordOf))), new Set(['first']));
  writeFileSync(path, 'second');
  advance(999);
  t.equal(source.get(null), source.get(null), 'at once');
  t.equal(await wordOf(source.get(null)), 'first');
  t.equal(source.status().fetches, 1);
  advance(1);
  t.equal(await wordOf(source.get(null)), 'second');
  t.strictSame(source.status(), {
    kind: 'file',
    kept: true,
    endsAtMs: null,
    lastError: null,
    fetches: 2,
    waiting: 0,
  });
});

t.test(
  'as Kubernetes projects it: a link to a folder is moved, and every request gets one of the tokens',
  async (t) => {
    const made = fetches();
    const dir = tempDir(t);
    const publish = (name: string): void => {
      mkdirSync(join(dir, `..${name}`));
      writeFileSync(join(dir, `..${name}`, 'orders'), name);
      symlinkSync(`..${name}`, join(dir, '..next'));
      renameSync(join(dir, '..next'), join(dir, '..data'));
    };
    publish('t0');
    symlinkSync(join('..data', 'orders'), join(dir, 'orders'));
    const source = createFileSource('cluster', join(dir, 'orders'), { ...made.deps, files: localFiles });
    for (let count = 1; count < 50; count += 1) {
      const pending = source.get(null);
      publish(`t${String(count)}`);
      t.match(await wordOf(pending), /^t\d+$/);
      made.advance(1_000);
      t.equal(await wordOf(source.get(null)), `t${String(count)}`);
      made.advance(1_000);
    }
  },
);

t.test('what is no token is refused, and nothing of it is shown', async (t) => {
  const cases = [
    [null, /does not exist/],
    ['', /is empty/],
    ['\n \n', /is empty/],
    ['a secret', /no bearer token/],
    ['a\0secret', /no bearer token/],
    ['a\nsecret', /no bearer token/],
    ['secret\x1b[0m', /no bearer token/],
    ['x'.repeat(8_193), /no bearer token/],
    ['x'.repeat(20_000), /is larger than 9216 bytes/],
    [jwt('secret', 1_700_000_000), /is over/],
  ] as const;
  for (const [content, says] of cases) {
    const { source, path, lines, advance } = start(t, content);
    const told = await source.get(null);
    t.match(told, { kind: 'unavailable', problem: 'unreadable', reason: says, retryAfterS: 1 });
    t.notMatch(JSON.stringify([told, lines]), /secret|xxx/);
    t.match(source.status(), { kept: false, lastError: 'unreadable' });
    writeFileSync(path, 'good');
    t.match(await source.get(null), { problem: 'unreadable' }, 'not read again yet');
    advance(1_000);
    t.equal(await wordOf(source.get(null)), 'good');
    t.equal(lines.length, 2);
  }
});

t.test('while the file cannot be used, the token in hand serves until its end', async (t) => {
  const { source, path, advance, nowMs } = start(t, null);
  const token = jwt('ann', nowMs() / 1_000 + 100);
  writeFileSync(path, token);
  t.equal(await wordOf(source.get(null)), token);
  t.equal(source.status().endsAtMs, nowMs() + 100_000);
  rmSync(path);
  advance(99_999);
  t.equal(await wordOf(source.get(null)), token);
  advance(1);
  t.match(await source.get(null), { problem: 'unreadable', reason: /does not exist/ });
});

t.test('one that does not say when it ends, for a minute', async (t) => {
  const { source, path, advance } = start(t, 'opaque');
  t.equal(await wordOf(source.get(null)), 'opaque');
  rmSync(path);
  advance(59_999);
  t.equal(await wordOf(source.get(null)), 'opaque');
  advance(1_000);
  t.match(await source.get(null), { problem: 'unreadable' });
});

t.test('a token that is over while its file stays as it is', async (t) => {
  const { source, path, advance, nowMs } = start(t, null);
  writeFileSync(path, jwt('ann', nowMs() / 1_000 + 1));
  await source.get(null);
  advance(999);
  t.match(await source.get(null), { kind: 'token' });
  advance(0.5);
  t.match(await source.get(null), { kind: 'token' });
  advance(0.5);
  t.match(await source.get(null), { problem: 'unreadable', reason: /is over/ });
});

t.test(
  'a token that a target did not take is looked for anew at once; what the file holds is all there is',
  async (t) => {
    const { source, path } = start(t, 'first');
    await source.get(null);
    writeFileSync(path, 'second');
    source.invalidate('other');
    t.equal(await wordOf(source.get(null)), 'first');
    for (let count = 0; count < 200; count += 1) source.invalidate('first');
    t.strictSame(await Promise.all([source.get(null), source.get(null)].map(wordOf)), ['second', 'second']);
    for (let count = 0; count < 100; count += 1) {
      source.invalidate('second');
      t.equal(await wordOf(source.get(null)), 'second');
    }
    t.ok(source.status().fetches < 8);
  },
);

t.test('a closed source gives nothing', async (t) => {
  const { source } = start(t, 'first');
  const pending = source.get(null);
  source.close();
  t.equal(await wordOf(pending), 'closed 1');
  t.equal(await wordOf(source.get(null)), 'closed 1');
  t.equal(source.status().kept, false);
});
