import t from 'tap';
import { sameSource } from '../../../src/adapters/jwks/key-source.js';
import type { KeySourceSettings } from '../../../src/config/types.js';
import { startJwksServer } from '../../support/jwks-server.js';
import { rsaKey, withKeyId } from '../../support/keys.js';
import { until } from '../../support/until.js';
import { coreKeyRules } from '../../../src/decision/token/profiles.js';
import { createKeySourceHarness, startKeySourceHarness } from './key-source-harness.js';

const one = rsaKey('d-1');
const two = rsaKey('d-2');

t.test('fetched at start; a known key is found at once', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { source, lookUp, refreshes, lines } = await startKeySourceHarness(t, server.url);
  t.equal(server.hits(), 1);
  t.equal(await lookUp('d-1'), 'found');
  t.match(source.find('d-1'), { kind: 'found', key: { keyId: 'd-1' } });
  const found = source.find('d-1');
  t.ok(!(found instanceof Promise) && found.kind === 'found' && found.key.key.equals(one.publicKey));
  t.equal(server.hits(), 1);
  t.same(refreshes, ['core ok']);
  t.match(lines, [{ level: 'info', msg: 'keys loaded', issuer: 'core', key_ids: ['d-1'], keys: 1 }]);
});

t.test('a look-up before the first fetch is over waits for it', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { source, lookUp } = createKeySourceHarness(t, { kind: 'url', url: server.url });
  const started = source.start();
  t.equal(await lookUp('d-1'), 'waited: found');
  await started;
  t.equal(server.hits(), 1);
});

t.test('refreshed ahead of expiry with jitter, cache headers within min_age and max_age', async (t) => {
  const rows: { cacheControl: string; random: number; due: number }[] = [
    { cacheControl: 'max-age=60', random: 0, due: 48_000 },
    { cacheControl: 'max-age=60', random: 0.5, due: 51_000 },
    { cacheControl: 'max-age=60', random: 1, due: 54_000 },
    { cacheControl: 'max-age=1', random: 0, due: 8_000 },
    { cacheControl: 'no-store', random: 0, due: 8_000 },
    { cacheControl: 'no-cache', random: 0, due: 8_000 },
    { cacheControl: 'max-age=604800', random: 0, due: 480_000 },
    { cacheControl: 'public', random: 0, due: 480_000 },
  ];
  for (const { cacheControl, random, due } of rows) {
    const server = await startJwksServer(t, { keys: [one], fields: { 'cache-control': cacheControl } });
    const { time, source } = await startKeySourceHarness(t, server.url, { random: () => random });
    t.same(time.due(), [due], `${cacheControl}, ${String(random)}`);
    time.advance(due - 1);
    t.equal(server.hits(), 1, 'not before');
    time.advance(1);
    await until('the refresh', () => server.hits() === 2);
    await until('its end', () => source.state().ageMs === 0);
  }
});

t.test('a key that left the fetched set stops working with that fetch', async (t) => {
  const server = await startJwksServer(t, { keys: [one, two] });
  const { time, lookUp, refreshes, lines } = await startKeySourceHarness(t, server.url);
  server.setKeys([two]);
  time.advance(479_999);
  t.equal(await lookUp('d-1'), 'found');
  time.advance(1);
  await until('the refresh', () => refreshes.length === 2);
  t.equal(await lookUp('d-1'), 'unknown');
  t.equal(await lookUp('d-2'), 'found');
  t.match(lines.at(-1), { msg: 'keys loaded', key_ids: ['d-2'] });
});

t.test('a kid that comes with another key means that key from then on', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, source, refreshes, lines } = await startKeySourceHarness(t, server.url);
  server.setKeys([withKeyId(two, 'd-1')]);
  time.advance(480_000);
  await until('the refresh', () => refreshes.length === 2);
  const found = source.find('d-1');
  t.ok(!(found instanceof Promise) && found.kind === 'found' && found.key.key.equals(two.publicKey));
  t.match(source.state().keys, [{ keyId: 'd-1', ageMs: 0 }]);
  t.equal(lines.length, 2, 'and it is news');
});

t.test('the key after a rotation is fetched when a token names it', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, lookUp } = await startKeySourceHarness(t, server.url);
  server.setKeys([one, two]);
  time.advance(5_000);
  t.equal(await lookUp('d-2'), 'waited: found');
  t.equal(await lookUp('d-1'), 'found');
  t.equal(server.hits(), 2);
});

t.test('what operators see', async (t) => {
  const server = await startJwksServer(t, { keys: [one, withKeyId(two, 's-1')] });
  const { time, source, refreshes } = createKeySourceHarness(t, { kind: 'url', url: server.url });
  const nothing = { withdrawn: [], emptySet: null, lastError: null, waiting: 0, metadata: null };
  t.same(source.state(), {
    issuer: 'core',
    usable: false,
    stale: false,
    ageMs: null,
    servesForMs: null,
    nextFetchMs: null,
    stalePart: null,
    keys: [],
    ...nothing,
  });
  await source.start();
  const keys = [
    { keyId: 'd-1', ageMs: 0, accepted: true },
    { keyId: 's-1', ageMs: 0, accepted: false },
  ];
  t.same(source.state(), {
    issuer: 'core',
    usable: true,
    stale: false,
    ageMs: 0,
    servesForMs: 4_200_000,
    nextFetchMs: 480_000,
    stalePart: 0,
    keys,
    ...nothing,
  });
  time.advance(1_000);
  t.match(source.state(), { ageMs: 1_000, servesForMs: 4_199_000, keys: [{ ageMs: 1_000 }, { ageMs: 1_000 }] });
  time.advance(479_000);
  await until('the refresh', () => refreshes.length === 2);
  t.match(
    source.state(),
    { ageMs: 0, keys: [{ ageMs: 480_000 }, { ageMs: 480_000 }] },
    'a key keeps its age, the set does not',
  );
});

t.test('keys that are passed over are logged once, and again when they change', async (t) => {
  const weak = rsaKey('d-7', 1024);
  const server = await startJwksServer(t, { keys: [one, weak] });
  const { time, lines, refreshes, lookUp } = await startKeySourceHarness(t, server.url);
  const about = (): unknown[] => lines.filter(({ msg }) => msg.includes('passed over'));
  t.match(about(), [{ level: 'warn', issuer: 'core', skipped: [/^keys\[1\].*1024/] }]);
  time.advance(480_000);
  await until('the second fetch', () => refreshes.length === 2);
  t.equal(about().length, 1);
  server.setKeys([one, weak, { kty: 'OKP' }]);
  time.advance(480_000);
  await until('the third fetch', () => refreshes.length === 3);
  t.equal(about().length, 2);
  t.equal(await lookUp('d-7'), 'unknown', 'a weak key is no key');
});

t.test('an update changes timings and key id rules and keeps the keys', async (t) => {
  const server = await startJwksServer(t, { keys: [one, withKeyId(two, 's-1')] });
  const { time, source, lookUp, settings } = await startKeySourceHarness(t, server.url);
  t.same(time.due(), [480_000]);
  time.advance(50_000);
  source.update({ ...settings, maxAgeMs: 100_000, cooldownMs: 60_000 }, { accept: ['s-*'], reject: [] });
  t.same(time.due(), [30_000], 'counted from the fetch, not from the update');
  t.match(source.state(), {
    usable: true,
    ageMs: 50_000,
    keys: [{ accepted: false }, { keyId: 's-1', accepted: true }],
  });
  t.equal(await lookUp('s-1'), 'found');
  t.equal(await lookUp('d-9'), 'unknown', 'the new cooldown counts');
  t.equal(server.hits(), 1);
  source.update({ ...settings, maxAgeMs: 20_000, cooldownMs: 60_000 }, { accept: ['s-*'], reject: [] });
  t.same(time.due(), [0], 'overdue by the new age');
  t.match(source.state(), { usable: true, stale: true });
  t.equal(await lookUp('s-1'), 'found');
  t.equal(await lookUp('d-9'), 'unavailable', 'a set past its age cannot tell that there is no such key');
  t.equal(server.hits(), 1);
});

t.test('an update that no key satisfies asks for new ones at once', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { source, lookUp, settings, refreshes } = await startKeySourceHarness(t, server.url);
  server.setKeys([one, withKeyId(two, 'e-1')]);
  source.update(settings, { accept: ['e-*'], reject: [] });
  t.match(source.state(), { usable: false });
  t.equal(await lookUp('e-1'), 'waited: found');
  t.match(source.state(), { usable: true, lastError: null });
  server.setKeys([one]);
  source.update(settings, { accept: ['f-*'], reject: [] });
  await until('the third fetch', () => refreshes.length === 3);
  t.match(
    source.state(),
    { usable: false, emptySet: 'confirmed', lastError: null },
    'there was no key to lose: asked once',
  );
});

t.test('an update while a fetch is under way takes the new rules for its result', async (t) => {
  const server = await startJwksServer(t, { keys: [withKeyId(one, 'e-1')] });
  const { source, lookUp, settings } = createKeySourceHarness(t, { kind: 'url', url: server.url });
  const started = source.start();
  source.update(settings, { accept: ['e-*'], reject: [] });
  await started;
  t.equal(await lookUp('e-1'), 'found');
});

t.test('only a change of where the keys come from needs another source', (t) => {
  const base: KeySourceSettings = {
    source: { kind: 'url', url: 'https://a/' },
    rules: coreKeyRules,
    caFile: null,
    tokenFile: null,
    minAgeMs: 1,
    maxAgeMs: 2,
    maxStaleMs: 3,
    cooldownMs: 4,
    timeoutMs: 5,
    maxBytes: 6,
  };
  const file: KeySourceSettings = { ...base, source: { kind: 'file', path: '/a' } };
  const rows: { name: string; a: KeySourceSettings; b: KeySourceSettings; expected: boolean }[] = [
    { name: 'nothing', a: base, b: { ...base, source: { kind: 'url', url: 'https://a/' } }, expected: true },
    {
      name: 'timings',
      a: base,
      b: { ...base, minAgeMs: 9, maxAgeMs: 9, maxStaleMs: 9, cooldownMs: 9, timeoutMs: 9, maxBytes: 9 },
      expected: true,
    },
    { name: 'the URL', a: base, b: { ...base, source: { kind: 'url', url: 'https://b/' } }, expected: false },
    { name: 'the CA file', a: base, b: { ...base, caFile: '/ca' }, expected: false },
    { name: 'URL to file', a: base, b: file, expected: false },
    { name: 'file to URL', a: file, b: base, expected: false },
    { name: 'the same file', a: file, b: { ...file, maxAgeMs: 9 }, expected: true },
    { name: 'the file', a: file, b: { ...file, source: { kind: 'file', path: '/b' } }, expected: false },
    { name: 'how much of the file is read', a: file, b: { ...file, maxBytes: 9 }, expected: false },
  ];
  for (const { name, a, b, expected } of rows) t.equal(sameSource(a, b), expected, name);
  t.end();
});

t.test('once closed it fetches no more; keys in hand answer for requests that began before', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { source, time, lookUp, settings } = await startKeySourceHarness(t, server.url);
  await source.close();
  t.same(time.due(), [], 'nothing is planned');
  t.equal(await lookUp('d-1'), 'found');
  time.advance(10_000);
  t.equal(await lookUp('d-2'), 'unavailable', 'nobody can tell any more');
  source.update(settings, { accept: ['e-*'], reject: [] });
  await source.start();
  await source.close();
  t.equal(server.hits(), 1);
  time.advance(600_000 + 3_600_000);
  t.equal(await lookUp('d-1'), 'unavailable');
});

t.test('closing ends a fetch under way and the look-ups that wait for it', async (t) => {
  const server = await startJwksServer(t);
  server.behave(() => undefined);
  const { source, lookUp, time, refreshes } = createKeySourceHarness(
    t,
    { kind: 'url', url: server.url },
    { settings: { timeoutMs: 600_000 } },
  );
  const started = source.start();
  const waiting = lookUp('d-1');
  await until('the source is asked', () => server.hits() === 1);
  await source.close();
  t.equal(await waiting, 'waited: unavailable');
  await started;
  t.same(time.due(), []);
  t.same(refreshes, [], 'that was no failure of the source');
});
