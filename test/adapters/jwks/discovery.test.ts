import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import type { DiscoveryPlace } from '../../../src/config/types.js';
import { keySet, type Behaviour } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import { oidcPath, startMetadataServer, type MetadataServer } from '../../support/metadata-server.js';
import { until } from '../../support/until.js';
import { asker, createKeySourceHarness, type KeySourceHarness } from './key-source-harness.js';

const one = rsaKey('d-1');
const two = rsaKey('d-2');

const setOf = (...keys: object[]): object => JSON.parse(keySet(keys)) as object;
const says =
  (text: string | Buffer, fields: Record<string, string> = {}): Behaviour =>
  (_req, res) =>
    res.writeHead(200, fields).end(text);

/** Where the metadata of the server is, with keys there and nowhere else. */
function placeAt(server: MetadataServer, over: Partial<DiscoveryPlace> = {}): DiscoveryPlace {
  const { origin } = server;
  const place: DiscoveryPlace = {
    kind: 'discovery',
    url: `${origin}${oidcPath}`,
    otherUrl: `${origin}/.well-known/oauth-authorization-server`,
    issuer: origin,
    keyOrigins: new Set([origin]),
    tokenOrigins: new Set(),
  };
  return { ...place, ...over };
}

/** A server with metadata and a key set, and a source of its keys whose first attempt is over. */
async function started(t: Test): Promise<{ server: MetadataServer; harness: KeySourceHarness; good: object }> {
  const server = await startMetadataServer(t);
  const good = { issuer: server.origin, jwks_uri: `${server.origin}/keys` };
  server.at(oidcPath, good);
  server.at('/keys', setOf(one));
  const harness = createKeySourceHarness(t, placeAt(server));
  await harness.source.start();
  return { server, harness, good };
}

t.test('fetches the metadata, then the keys where it says that they are', async (t) => {
  const { server, harness } = await started(t);
  t.equal(await harness.lookUp('d-1'), 'found');
  t.same(server.asked, [oidcPath, '/keys']);
  t.same(harness.refreshes, ['core metadata ok', 'core ok']);
  t.match(harness.lines[0], { level: 'info', msg: 'metadata loaded', keys_from: `${server.origin}/keys` });
  t.same(harness.source.state().metadata, {
    ageMs: 0,
    keysUrl: `${server.origin}/keys`,
    introspection: { url: null, mtlsUrl: null },
    lastError: null,
    lastProblem: null,
  });
});

t.test('asks at the place of RFC 8414 only where the first answers that there is none', async (t) => {
  const server = await startMetadataServer(t);
  const other = '/.well-known/oauth-authorization-server';
  server.at(other, { issuer: server.origin, jwks_uri: `${server.origin}/keys` });
  server.at('/keys', setOf(one));
  const { source, lookUp } = createKeySourceHarness(t, placeAt(server));
  await source.start();
  t.equal(await lookUp('d-1'), 'found');
  t.same(server.asked, [oidcPath, other, '/keys']);

  server.asked.length = 0;
  server.at(oidcPath, says('down', {}));
  const next = createKeySourceHarness(t, placeAt(server));
  await next.source.start();
  t.same(server.asked, [oidcPath], 'what answers otherwise is not asked elsewhere');

  server.at(oidcPath, null);
  const alone = createKeySourceHarness(t, placeAt(server, { otherUrl: null }));
  await alone.source.start();
  t.match(alone.source.state(), { usable: false, lastError: 'no metadata: the response has status 404' });
});

/** What a server may answer in the place of good metadata. */
function lies(server: MetadataServer, strange: MetadataServer): Readonly<Record<string, [object | Behaviour, RegExp]>> {
  const { origin } = server;
  const good = { issuer: origin, jwks_uri: `${origin}/moved` };
  const goodText = JSON.stringify(good);
  return {
    'another issuer': [{ ...good, issuer: strange.origin }, /of another issuer: its issuer is "http:.*"$/],
    'its issuer with a slash': [{ ...good, issuer: `${origin}/` }, /of another issuer/],
    'no issuer': [{ jwks_uri: `${origin}/moved` }, /of another issuer: its issuer is missing/],
    'an issuer that is none': [{ ...good, issuer: [origin] }, /of another issuer: its issuer is no text/],
    'a long issuer with line ends': [{ ...good, issuer: `\n${'x'.repeat(9_999)}` }, /its issuer is "\?x{199}"…$/],
    'keys at another origin': [
      { ...good, jwks_uri: `${strange.origin}/moved` },
      /jwks_uri is at another origin: "http:.*"; allowed are http:/,
    ],
    'keys at another origin behind a user': [
      { ...good, jwks_uri: `${origin.replace('//', '//a@')}/moved` },
      /jwks_uri is no http URL/,
    ],
    'keys over http': [{ ...good, jwks_uri: 'http://keys.example.com/moved' }, /at another origin/],
    'keys at a URL with a blank': [{ ...good, jwks_uri: `${origin}/mo ved` }, /jwks_uri is no http URL/],
    'keys in a file': [{ ...good, jwks_uri: 'file:///etc/passwd' }, /jwks_uri is no http URL/],
    'keys in the URL': [{ ...good, jwks_uri: 'data:application/json,{}' }, /jwks_uri is no http URL/],
    'no keys': [{ issuer: origin }, /names no place of keys: its jwks_uri is missing/],
    'no JSON': [says('<html>'), /the metadata is not JSON/],
    'two issuers': [says(`{"issuer":"${strange.origin}",${goodText.slice(1)}`), /names a member twice/],
    'a list': [says(`[${goodText}]`), /is not a JSON object/],
    'deep nesting': [says(`{"a":${'['.repeat(50_000)}`), /nests too deep/],
    '10 MB': [says(`${goodText}${' '.repeat(10_000_000)}`), /larger than 262144 bytes/],
    endless: [
      (_req, res) => {
        const more = (): void => {
          while (!res.destroyed && res.write(' '.repeat(65_536)));
        };
        res.on('drain', more);
        more();
      },
      /larger than 262144 bytes/,
    ],
    'a redirect to itself': [
      (_req, res) => res.writeHead(302, { location: `${origin}/moved-metadata` }).end(),
      /is a redirect, which is not followed/,
    ],
    'a redirect elsewhere': [
      (_req, res) => res.writeHead(307, { location: `${strange.origin}${oidcPath}` }).end(),
      /a redirect to another host/,
    ],
    'a compressed document': [says(gzipSync(goodText), { 'content-encoding': 'gzip' }), /is compressed/],
    'a bomb': [says(gzipSync(Buffer.alloc(50_000_000, 32)), { 'content-encoding': 'gzip' }), /is compressed/],
    'an error': [(_req, res) => res.writeHead(500).end(goodText), /status 500/],
    'a broken connection': [(req) => req.socket.destroy(), /broke/],
  };
}

t.test('a document that lies is never taken, and none of its keys count', async (t) => {
  const strange = await startMetadataServer(t);
  const shared = await startMetadataServer(t);
  for (const [name, [answer, error]] of Object.entries(lies(shared, strange))) {
    const origins = [shared, strange];
    for (const server of origins) server.at('/moved', setOf(one));
    shared.at('/moved-metadata', { issuer: shared.origin, jwks_uri: `${shared.origin}/moved` });
    shared.at(oidcPath, answer);
    const { source, lookUp, refreshes, lines } = createKeySourceHarness(t, placeAt(shared));
    await source.start();
    t.equal(await lookUp('d-1'), 'unavailable', name);
    t.match(source.state(), { usable: false, lastError: error, metadata: { ageMs: null, lastError: error } }, name);
    t.match(refreshes[0], /^core metadata (failed|refused)$/, name);
    t.match(lines[0], { level: 'warn', error, known_metadata_serves: false }, name);
    await source.close();
  }
  t.same(strange.asked, [], 'nobody was sent elsewhere');
  t.notOk(shared.asked.includes('/moved'), 'nor to the keys');
});

t.test('after a good document one that lies changes nothing but what operators hear', async (t) => {
  const { server, harness, good } = await started(t);
  const { source, time, refreshes, lookUp, lines } = harness;
  const strange = await startMetadataServer(t);
  server.at('/moved', setOf(two));
  for (const [name, [answer, error]] of Object.entries(lies(server, strange))) {
    server.at(oidcPath, answer);
    refreshes.length = 0;
    time.advance(480_000);
    await until(`the refresh: ${name}`, () => refreshes.length === 2);
    t.match(refreshes, [/^core metadata (failed|refused)$/, 'core ok'], name);
    t.equal(await lookUp('d-1'), 'found', name);
    t.match(source.state(), { usable: true, stale: true, lastError: null, metadata: { lastError: error } }, name);
    t.match(
      lines.find(({ msg }) => msg.startsWith('metadata ') && msg !== 'metadata loaded'),
      { level: 'warn', error, failures: 1, known_metadata_serves: true },
      name,
    );
    server.at(oidcPath, good);
    time.advance(480_000);
    await until(`the recovery: ${name}`, () => refreshes.length === 4);
    t.match(source.state(), { usable: true, stale: false, metadata: { lastError: null, ageMs: 0 } }, name);
    lines.length = 0;
  }
  t.same(strange.asked, []);
});

t.test('a slow drip takes its own time and not that of the keys', async (t) => {
  const { server, harness } = await started(t);
  const { source, time, refreshes, lookUp } = harness;
  server.at(oidcPath, (_req, res) => {
    res.write('{');
    const drip = setInterval(() => res.write(' '), 5);
    res.on('close', () => clearInterval(drip));
  });
  server.asked.length = 0;
  time.advance(480_000);
  await until('the metadata is asked for', () => server.asked.length === 1);
  time.advance(2_500);
  await until('the keys are fetched', () => refreshes.length === 4);
  t.same(refreshes.slice(2), ['core metadata failed', 'core ok']);
  t.match(source.state(), { usable: true, metadata: { lastError: 'no complete response within 2500 ms' } });
  t.equal(await lookUp('d-1'), 'found');
});

t.test('an issuer that is away at the start, comes, goes and comes back', async (t) => {
  const gone = await startMetadataServer(t);
  await gone.close();
  const { source, time, lookUp, refreshes } = createKeySourceHarness(t, placeAt(gone));
  await source.start();
  t.equal(await lookUp('d-1'), 'unavailable');
  t.match(source.state(), { usable: false, lastError: /no metadata: the connection was refused/ });

  const back = await startMetadataServer(t, gone.port);
  back.at(oidcPath, { issuer: back.origin, jwks_uri: `${back.origin}/keys` });
  back.at('/keys', setOf(one));
  time.advance(time.due()[0] ?? 0);
  await until('the keys are there', () => refreshes.at(-1) === 'core ok');
  t.equal(await lookUp('d-1'), 'found');
  await back.close();

  time.advance(480_000);
  await until('an attempt fails', () => refreshes.at(-1) === 'core failed');
  t.match(source.state(), { usable: true, stale: true, metadata: { lastError: /refused/ } });
  t.equal(await lookUp('d-1'), 'found', 'known keys serve');
  t.equal(await lookUp('d-2'), 'unavailable', 'nobody can tell of another');

  const again = await startMetadataServer(t, gone.port);
  again.at('/keys', setOf(one, two));
  time.advance(time.due()[0] ?? 0);
  await until('the keys are fetched where the last document says', () => refreshes.at(-1) === 'core ok');
  t.equal(await lookUp('d-2'), 'found');
  t.match(
    source.state(),
    { usable: true, stale: true, metadata: { lastError: /refused/ } },
    'it was not asked again yet',
  );
  again.at(oidcPath, { issuer: back.origin, jwks_uri: `${back.origin}/keys` });
  time.advance(480_000);
  await until('a regular refresh', () => source.state().metadata?.lastError === null);
  await until('its end', () => refreshes.at(-1) === 'core ok');
  t.match(source.state(), { usable: true, stale: false });
});

t.test('a document that cannot be renewed serves no longer than keys would', async (t) => {
  const { server, harness } = await started(t);
  const { source, time, refreshes, lookUp } = harness;
  server.at(oidcPath, null);
  const endsMs = 600_000 + 3_600_000;
  for (let passedMs = 0; passedMs < endsMs; passedMs += 480_000) {
    const before = refreshes.length;
    time.advance(480_000);
    await until('a refresh', () => refreshes.length === before + 2);
  }
  t.same(refreshes.slice(-2), ['core metadata failed', 'core failed']);
  t.match(source.state(), { usable: true, lastError: 'no metadata: the response has status 404' });
  t.equal(await lookUp('d-1'), 'found', 'the keys fetched last serve their own time');
});

t.test('keys that have moved are followed', async (t) => {
  t.test('where the old place is gone, at once', async (t) => {
    const { server, harness } = await started(t);
    const { time, refreshes, lookUp } = harness;
    // Long-lived metadata: it is not due yet.
    server.at(oidcPath, { issuer: server.origin, jwks_uri: `${server.origin}/moved` });
    server.at('/keys', null);
    server.at('/moved', setOf(one, two));
    time.advance(30_000);
    t.equal(await lookUp('d-2', asker()), 'waited: found');
    t.same(refreshes.slice(2), ['core metadata ok', 'core ok']);
  });
  t.test('where the old place has the old keys, once the budget for metadata allows', async (t) => {
    const { server, harness } = await started(t);
    const { time, refreshes, lookUp } = harness;
    server.at(oidcPath, { issuer: server.origin, jwks_uri: `${server.origin}/moved` });
    server.at('/moved', setOf(two));
    time.advance(5_000);
    t.equal(await lookUp('d-2', asker()), 'waited: unknown');
    t.same(refreshes.slice(2), ['core ok'], 'a cool-down later the keys alone are asked for');
    time.advance(25_000);
    t.equal(await lookUp('d-2', asker()), 'waited: found');
    t.same(refreshes.slice(3), ['core metadata ok', 'core ok']);
    t.equal(await lookUp('d-1'), 'unknown', 'what the new place does not list counts no more');
  });
});

t.test('made-up key ids cause one fetch of metadata in six cool-downs', async (t) => {
  const { server, harness } = await started(t);
  const { time, lookUp } = harness;
  server.asked.length = 0;
  for (let round = 0; round < 24; round += 1) {
    time.advance(5_000);
    for (let each = 0; each < 20; each += 1) void lookUp(`d-${String(round)}-${String(each)}`, asker());
    const expected = round + 1;
    await until('a fetch of keys', () => server.asked.filter((path) => path === '/keys').length === expected);
    await until('its end', () => harness.refreshes.filter((line) => line === 'core ok').length === expected + 1);
  }
  t.equal(server.asked.filter((path) => path === oidcPath).length, 4, 'in 120 s');
});

t.test('metadata is renewed by its own cache headers, within the bounds of the config', async (t) => {
  const { server, harness, good } = await started(t);
  const { time, refreshes } = harness;
  const lasting: Behaviour = (_req, res) =>
    res.writeHead(200, { 'cache-control': 'max-age=500' }).end(JSON.stringify(good));
  const shortLived: Behaviour = (_req, res) =>
    res.writeHead(200, { 'cache-control': 'max-age=100' }).end(keySet([one]));
  server.at(oidcPath, lasting);
  server.at('/keys', shortLived);
  const advance = async (ms: number): Promise<readonly string[]> => {
    refreshes.length = 0;
    time.advance(ms);
    await until('a refresh', () => refreshes.includes('core ok'));
    return [...refreshes];
  };
  t.same(await advance(480_000), ['core metadata ok', 'core ok']);
  for (let passed = 1; passed <= 4; passed += 1) t.same(await advance(80_000), ['core ok'], 'not due');
  t.same(await advance(80_000), ['core metadata ok', 'core ok'], 'due after 0.8 of 500 s');
});

t.test('a source that is closed in the middle ends at once and says nothing', async (t) => {
  const server = await startMetadataServer(t);
  server.at(oidcPath, () => undefined);
  const { source, lines, refreshes } = createKeySourceHarness(t, placeAt(server));
  void source.start();
  await until('the metadata is asked for', () => server.asked.length === 1);
  await source.close();
  t.same([lines, refreshes], [[], []]);
});
