import t from 'tap';
import { keySet, startJwksServer, type Behaviour } from '../../support/jwks-server.js';
import { rsaKey, withKeyId } from '../../support/keys.js';
import { until } from '../../support/until.js';
import { asker, createKeySourceHarness, startKeySourceHarness } from './key-source-harness.js';

const one = rsaKey('d-1');
const two = rsaKey('d-2');

const says =
  (text: string): Behaviour =>
  (_req, res) =>
    res.end(text);
const fails: Behaviour = (_req, res) => res.writeHead(500).end();
const empty = says('{"keys":[]}');

/** The defaults: asked again when 0.8 of 10 minutes are over, 5 s between fetches, an hour past the lifetime. */
const refreshMs = 480_000;
const cooldownMs = 5_000;

/** So long is waited at least, without a spread, between attempts at a source that has not been well for long. */
const longestRetryMs = 15_000;

t.test('a good set without a key that counts stops them all, once it was said again a cool-down later', async (t) => {
  const rows: { name: string; behaviour: Behaviour; listed: string[] }[] = [
    { name: 'no key', behaviour: empty, listed: [] },
    { name: 'static keys only', behaviour: says(keySet([withKeyId(two, 's-1')])), listed: ['s-1'] },
    { name: 'keys that are too weak only', behaviour: says(keySet([rsaKey('d-1', 1024)])), listed: [] },
    {
      name: 'other kinds of keys only',
      behaviour: says('{"keys":[{"kty":"oct"},{"kty":"EC","kid":"d-1"}]}'),
      listed: [],
    },
  ];
  for (const { name, behaviour, listed } of rows) {
    const server = await startJwksServer(t, { keys: [one] });
    const { time, source, refreshes, lookUp, lines } = await startKeySourceHarness(t, server.url);
    server.behave(behaviour);
    time.advance(refreshMs);
    await until(`the first answer: ${name}`, () => refreshes.length === 2);
    t.equal(await lookUp('d-1'), 'found', `${name}: it may be a fault`);
    t.match(
      source.state(),
      { usable: true, stale: true, emptySet: 'unconfirmed', lastError: null, withdrawn: [] },
      name,
    );
    t.match(
      lines.at(-1),
      { level: 'warn', msg: /lists no key that counts/, issuer: 'core', listed, asked_again_in_ms: cooldownMs },
      name,
    );
    t.equal(await lookUp('d-2'), 'unavailable', `${name}: nobody can tell whether there is a key`);
    time.advance(cooldownMs - 1);
    t.equal(server.hits(), 2, `${name}: not before the cool-down is over`);
    time.advance(1);
    await until(`the second answer: ${name}`, () => refreshes.length === 3);
    t.same(refreshes, ['core ok', 'core empty', 'core empty'], name);
    t.equal(await lookUp('d-1'), 'unknown', `${name}: 401, at once`);
    t.equal(await lookUp('d-1', asker()), 'unknown', `${name}: and nobody waits for a key that was withdrawn`);
    t.match(
      source.state(),
      { usable: false, stale: false, emptySet: 'confirmed', lastError: null, withdrawn: [{ keyId: 'd-1', ageMs: 0 }] },
      name,
    );
    t.match(
      lines.filter(({ level }) => level === 'error'),
      [{ msg: /withdrawn every key/, issuer: 'core', withdrawn: ['d-1'] }],
      name,
    );
    server.behave(null);
    time.advance(longestRetryMs);
    await until(`keys again: ${name}`, () => refreshes.length === 4);
    t.equal(await lookUp('d-1'), 'found', `${name}: what is listed again counts again`);
    t.match(source.state(), { usable: true, emptySet: null, withdrawn: [] }, name);
  }
});

t.test('one response without keys between good ones stops nothing, and has to be said twice each time', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, source, refreshes, lookUp } = await startKeySourceHarness(t, server.url);
  for (let round = 0; round < 3; round += 1) {
    server.behave(empty);
    time.advance(refreshMs);
    await until('an answer without keys', () => refreshes.length === 2 + 2 * round);
    t.match(source.state(), { emptySet: 'unconfirmed' });
    server.behave(null);
    time.advance(cooldownMs);
    await until('a good one', () => refreshes.length === 3 + 2 * round);
    t.match(source.state(), { usable: true, stale: false, emptySet: null });
    t.equal(await lookUp('d-1'), 'found');
  }
});

t.test('an outage confirms nothing, and takes nothing back that was said', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, source, refreshes, lookUp } = await startKeySourceHarness(t, server.url);
  server.behave(empty);
  time.advance(refreshMs);
  await until('an answer without keys', () => refreshes.length === 2);
  server.behave(fails);
  for (let count = 3; count < 6; count += 1) {
    time.advance(cooldownMs);
    await until('a failed attempt', () => refreshes.length === count);
    t.equal(await lookUp('d-1'), 'found');
    t.match(source.state(), { usable: true, emptySet: 'unconfirmed', lastError: 'the response has status 500' });
  }
  server.behave(empty);
  time.advance(cooldownMs);
  await until('the second answer', () => refreshes.length === 6);
  t.match(source.state(), { usable: false, emptySet: 'confirmed' });
  t.equal(await lookUp('d-1'), 'unknown');
});

t.test('a response that comes sooner than a cool-down later is no second one', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, source, lookUp } = await startKeySourceHarness(t, server.url);
  server.behave(empty);
  time.advance(refreshMs);
  await until('an answer without keys', () => source.state().emptySet === 'unconfirmed');
  for (const waitMs of [0, 1, cooldownMs - 2]) {
    time.advance(waitMs);
    await source.start();
    t.match(source.state(), { emptySet: 'unconfirmed' });
    t.equal(await lookUp('d-1'), 'found');
  }
  time.advance(1);
  await source.start();
  t.match(source.state(), { emptySet: 'confirmed' });
});

t.test('without keys from the start: 503 until it was said again, then 401', async (t) => {
  const server = await startJwksServer(t, { keys: [withKeyId(one, 's-1')] });
  const { time, source, refreshes, lookUp } = await startKeySourceHarness(t, server.url);
  t.equal(await lookUp('d-1'), 'unavailable');
  t.match(source.state(), { usable: false, stale: true, emptySet: 'unconfirmed', ageMs: null });
  time.advance(cooldownMs);
  await until('the second answer', () => refreshes.length === 2);
  t.equal(await lookUp('d-1'), 'unknown');
  t.match(source.state(), { usable: false, stale: false, emptySet: 'confirmed', ageMs: 0 });
});

t.test('a key that is withdrawn stops with that fetch, and operators see which', async (t) => {
  const server = await startJwksServer(t, { keys: [one, two] });
  const { time, source, refreshes, lookUp, lines } = await startKeySourceHarness(t, server.url);
  server.setKeys([two]);
  time.advance(refreshMs);
  await until('the refresh', () => refreshes.length === 2);
  t.equal(await lookUp('d-1', asker()), 'unknown', 'at once');
  t.equal(await lookUp('d-2'), 'found');
  t.match(lines.at(-1), { level: 'info', msg: 'keys loaded', key_ids: ['d-2'], withdrawn: ['d-1'] });
  time.advance(1_000);
  t.match(source.state(), { usable: true, emptySet: null, withdrawn: [{ keyId: 'd-1', ageMs: 1_000 }] });
});

t.test('of the keys that left the last twenty are shown', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, source, refreshes } = await startKeySourceHarness(t, server.url);
  for (let count = 1; count <= 25; count += 1) {
    server.setKeys([withKeyId(one, `d-1${String(count)}`)]);
    time.advance(refreshMs);
    await until('the refresh', () => refreshes.length === count + 1);
  }
  const { withdrawn } = source.state();
  t.equal(withdrawn.length, 20);
  t.match(
    [withdrawn[0], withdrawn.at(-1)],
    [
      { keyId: 'd-124', ageMs: 0 },
      { keyId: 'd-15', ageMs: 19 * refreshMs },
    ],
  );
});

t.test('with a cool-down of nothing it is asked again at once', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, source, refreshes } = createKeySourceHarness(
    t,
    { kind: 'url', url: server.url },
    { settings: { cooldownMs: 0 } },
  );
  await source.start();
  server.behave(empty);
  time.advance(refreshMs);
  await until('an answer without keys', () => refreshes.length === 2);
  time.advance(0);
  await until('the second', () => source.state().emptySet === 'confirmed');
});

t.test(
  'a source without a key that counts is asked again by itself, for nobody may come who would cause it',
  async (t) => {
    const server = await startJwksServer(t, { keys: [one] });
    server.behave(empty);
    const { time, source, refreshes } = await startKeySourceHarness(t, server.url);
    time.advance(cooldownMs);
    await until('the second answer', () => refreshes.length === 2);
    for (let count = 3; count < 6; count += 1) {
      t.same(time.due(), [longestRetryMs], 'no more often than a source that fails');
      time.advance(longestRetryMs);
      await until('no news', () => refreshes.length === count);
      t.match(source.state(), { usable: false, emptySet: 'confirmed' });
    }
    server.behave(null);
    time.advance(longestRetryMs);
    await until('keys', () => source.state().usable);
    t.same(time.due(), [refreshMs], 'and from then on as ever');
  },
);

t.test(
  'a source without a key that counts is asked by itself no more often than by callers, and no less than with keys',
  async (t) => {
    for (const [cooldown, maxAgeMs, dueMs] of [
      [60_000, 600_000, 60_000],
      [0, 10_000, 8_000],
    ] as const) {
      const server = await startJwksServer(t, { keys: [] });
      const { time, source } = await startKeySourceHarness(t, server.url, {
        settings: { cooldownMs: cooldown, maxAgeMs },
      });
      time.advance(cooldown);
      await source.start();
      t.match(source.state(), { emptySet: 'confirmed' });
      t.same(time.due(), [dueMs], String(cooldown));
    }
  },
);
