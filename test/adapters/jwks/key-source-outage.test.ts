import t from 'tap';
import { keySet, startJwksServer, type Behaviour } from '../../support/jwks-server.js';
import { rsaKey, withKeyId } from '../../support/keys.js';
import { until } from '../../support/until.js';
import { coreKeyRules } from '../../../src/decision/token/profiles.js';
import { createKeySourceHarness, startKeySourceHarness } from './key-source-harness.js';

const one = rsaKey('d-1');
const two = rsaKey('d-2');

/** The defaults: fresh for 10 minutes, then an hour more when the source is out of reach. */
const freshMs = 600_000;
const staleMs = 3_600_000;

const fails: Behaviour = (_req, res) => res.writeHead(500).end();
const says =
  (text: string): Behaviour =>
  (_req, res) =>
    res.end(text);

t.test('a response that is no key set never replaces a good one', async (t) => {
  const rows: { name: string; behaviour: Behaviour; error: RegExp }[] = [
    { name: 'no list of keys', behaviour: says('{}'), error: /no array "keys"/ },
    { name: 'a key that is none', behaviour: says('{"keys":["d-1"]}'), error: /keys\[0\] is not an object/ },
    { name: 'two keys of one kid', behaviour: says(keySet([two, withKeyId(one, 'd-2')])), error: /two different keys/ },
    { name: 'no JSON', behaviour: says('<html>down</html>'), error: /not JSON/ },
    { name: 'nothing', behaviour: says(''), error: /not JSON/ },
    { name: 'an error', behaviour: fails, error: /status 500/ },
    { name: 'too large', behaviour: says(`${keySet([two])}${' '.repeat(256 * 1024)}`), error: /larger/ },
    {
      name: 'elsewhere',
      behaviour: (_req, res) => res.writeHead(302, { location: 'http://evil.example/' }).end(),
      error: /another host/,
    },
    { name: 'gone', behaviour: (req) => req.socket.destroy(), error: /broke/ },
  ];
  for (const { name, behaviour, error } of rows) {
    const server = await startJwksServer(t, { keys: [one] });
    const { time, source, refreshes, lookUp, lines } = await startKeySourceHarness(t, server.url);
    server.behave(behaviour);
    time.advance(480_000);
    await until(`the refresh: ${name}`, () => refreshes.length === 2);
    t.same(refreshes, ['core ok', 'core failed'], name);
    t.equal(await lookUp('d-1'), 'found', name);
    t.equal(await lookUp('d-2'), 'unavailable', `${name}: nobody can tell whether there is a key`);
    t.match(source.state(), { usable: true, stale: true, lastError: error }, name);
    t.match(
      lines.at(-1),
      { level: 'warn', msg: 'keys could not be loaded', issuer: 'core', error, failures: 1, known_keys_serve: true },
      name,
    );
    server.behave(null);
    time.advance(5_000);
    await until(`the recovery: ${name}`, () => refreshes.length === 3);
    t.match(source.state(), { usable: true, stale: false, ageMs: 0, lastError: null }, name);
    t.match(lines.at(-1), { level: 'info', msg: 'keys loaded' }, name);
    t.equal(await lookUp('d-2'), 'unknown', name);
    server.behave(behaviour);
    time.advance(480_000);
    await until(`the next failure: ${name}`, () => refreshes.length === 4);
    t.match(lines.at(-1), { failures: 1 }, `${name}: counted anew`);
  }
});

t.test('when the source is out of reach, known keys serve up to max_stale', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, source, refreshes, lookUp, lines } = await startKeySourceHarness(t, server.url, {
    settings: { cooldownMs: 10_000_000 },
  });
  server.behave(fails);
  time.advance(480_000);
  await until('the failed refresh', () => refreshes.length === 2);
  time.advance(freshMs + staleMs - 480_000);
  t.equal(await lookUp('d-1'), 'found', 'to the last millisecond');
  t.match(source.state(), { usable: true, stale: true, ageMs: freshMs + staleMs });
  time.advance(1);
  t.equal(await lookUp('d-1'), 'unavailable', 'and no longer');
  t.match(source.state(), { usable: false, stale: true, ageMs: freshMs + staleMs + 1 });
  source.update(
    {
      source: { kind: 'url', url: server.url },
      rules: coreKeyRules,
      caFile: null,
      tokenFile: null,
      minAgeMs: 1,
      maxAgeMs: freshMs,
      maxStaleMs: staleMs,
      cooldownMs: 0,
      timeoutMs: 5_000,
      maxBytes: 1024,
    },
    { accept: ['d-*'], reject: [] },
  );
  await until('another failed attempt', () => refreshes.length === 3);
  t.match(lines.at(-1), { msg: 'keys could not be loaded', known_keys_serve: false });
  server.behave(null);
  t.equal(await lookUp('d-1'), 'waited: found', 'they are back with the source');
});

t.test('under must-revalidate keys serve for 5 minutes past their lifetime, unless max_stale is set', async (t) => {
  const rows: { cacheControl: string; maxStaleMs: number | null; staleForMs: number }[] = [
    { cacheControl: 'max-age=60, must-revalidate', maxStaleMs: null, staleForMs: 300_000 },
    { cacheControl: 'max-age=60', maxStaleMs: null, staleForMs: 3_600_000 },
    { cacheControl: 'max-age=60, must-revalidate', maxStaleMs: 1_200_000, staleForMs: 1_200_000 },
    { cacheControl: 'max-age=60, must-revalidate', maxStaleMs: 0, staleForMs: 0 },
  ];
  for (const { cacheControl, maxStaleMs, staleForMs } of rows) {
    const name = `${cacheControl}, max_stale ${String(maxStaleMs)}`;
    const server = await startJwksServer(t, { keys: [one], fields: { 'cache-control': cacheControl } });
    const { time, refreshes, lookUp, source } = await startKeySourceHarness(t, server.url, {
      settings: { maxStaleMs, cooldownMs: 10_000_000 },
    });
    server.behave(fails);
    time.advance(48_000);
    await until(`the failed refresh: ${name}`, () => refreshes.length === 2);
    time.advance(60_000 + staleForMs - 48_000);
    t.equal(await lookUp('d-1'), 'found', `${name}: to the last millisecond`);
    time.advance(1);
    t.equal(await lookUp('d-1'), 'unavailable', `${name}: and no longer`);
    t.match(source.state(), { usable: false }, name);
  }
});

t.test('with a max_stale of 0 the keys end with their age', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, refreshes, lookUp } = await startKeySourceHarness(t, server.url, {
    settings: { maxStaleMs: 0, cooldownMs: 10_000_000 },
  });
  server.behave(fails);
  time.advance(480_000);
  await until('the failed refresh', () => refreshes.length === 2);
  time.advance(freshMs - 480_000);
  t.equal(await lookUp('d-1'), 'found');
  time.advance(1);
  t.equal(await lookUp('d-1'), 'unavailable');
});

t.test(
  'a source that is down at start is recovered from, asked after 1 s and ever more seldom up to 30 s',
  async (t) => {
    const server = await startJwksServer(t, { keys: [one] });
    server.behave(fails);
    const { time, source, refreshes, lookUp } = await startKeySourceHarness(t, server.url, { random: () => 1 });
    t.match(source.state(), { usable: false, stale: true, ageMs: null, lastError: 'the response has status 500' });
    t.equal(await lookUp('d-1'), 'unavailable', 'at once: the last attempt was just now');
    const delays: number[] = [];
    for (let attempt = 2; attempt < 10; attempt += 1) {
      const [delay = NaN] = time.due();
      delays.push(delay);
      time.advance(delay);
      await until('the next attempt', () => refreshes.length === attempt);
    }
    t.same(delays, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
    server.behave(null);
    time.advance(30_000);
    await until('the recovery', () => source.state().usable);
    t.equal(await lookUp('d-1'), 'found');
    t.same(time.due(), [540_000]);
  },
);

t.test('attempts after a failure are spread, never sooner than 1 s', async (t) => {
  const server = await startJwksServer(t);
  server.behave(fails);
  for (const [random, due] of [
    [0, 1_000],
    [0.5, 1_500],
    [1, 2_000],
  ] as const) {
    const { time } = await startKeySourceHarness(t, server.url, { random: () => random });
    t.same(time.due(), [due]);
  }
});

t.test('while known keys serve, a source in trouble is not asked sooner than the cooldown', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  const { time, refreshes } = await startKeySourceHarness(t, server.url, { settings: { cooldownMs: 7_000 } });
  server.behave(fails);
  time.advance(480_000);
  await until('the failed refresh', () => refreshes.length === 2);
  t.same(time.due(), [7_000]);
});

t.test('an attempt ends at the time limit', async (t) => {
  const server = await startJwksServer(t, { keys: [one] });
  let closed = false;
  server.behave((_req, res) =>
    res.on('close', () => {
      closed = true;
    }),
  );
  const { source, time, refreshes, lookUp } = createKeySourceHarness(
    t,
    { kind: 'url', url: server.url },
    { settings: { timeoutMs: 600_000 } },
  );
  const started = source.start();
  const waiting = lookUp('d-1');
  await until('the source is asked', () => server.hits() === 1);
  time.advance(599_999);
  t.same(refreshes, []);
  time.advance(1);
  await started;
  t.equal(await waiting, 'waited: unavailable');
  t.match(source.state(), { lastError: 'no complete response within 600000 ms' });
  await until('the connection is closed', () => closed);
  server.behave(null);
  time.advance(5_000);
  await until('the recovery', () => source.state().usable);
  t.equal(await lookUp('d-1'), 'found');
});

t.test("one issuer's trouble is no other's", async (t) => {
  const good = await startJwksServer(t, { keys: [one] });
  const bad = await startJwksServer(t);
  bad.behave(() => undefined);
  const other = createKeySourceHarness(t, { kind: 'url', url: bad.url }, { issuer: 'partner' });
  void other.source.start();
  await until('the other hangs', () => bad.hits() === 1);
  const { lookUp, source } = await startKeySourceHarness(t, good.url);
  t.equal(await lookUp('d-1'), 'found');
  t.match(source.state(), { issuer: 'core', usable: true });
  t.match(other.source.state(), { issuer: 'partner', usable: false });
});

t.test("what is said of a failure holds nothing of the URL's query", async (t) => {
  const server = await startJwksServer(t);
  await server.close();
  const { lines, source } = await startKeySourceHarness(t, `${server.url}?key=hidden`);
  t.notMatch(JSON.stringify([lines, source.state()]), /hidden/);
});
