import type { ServerResponse } from 'node:http';
import t from 'tap';
import { systemClock } from '../../../src/adapters/system/clock.js';
import { connectRaw, request } from '../../support/raw-client.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';

const route = { methods: ['GET', 'POST'], path: '/**', permissions: [], idempotency: 'none' };
const config = (subject: string, upstream: object): object => ({
  upstream,
  routes: [{ ...route, name: `for-${subject}`, subjects: [subject] }],
});

t.test('a request keeps the config that it started with, and later ones have the new one', async (t) => {
  const first = await startUpstreamServer(t);
  const second = await startUpstreamServer(t);
  const line = { max_connections: 1, connect_timeout: '20s' };
  const proxy = await startProxy(t, {
    receiver: first,
    config: { ...config('checkout', { url: first.url, ...line }) },
  });
  const held: ServerResponse[] = [];
  first.behave((_req, res) => held.push(res));
  const before = await Promise.all([1, 2, 3].map(async () => connectRaw(proxy.port)));
  for (const [index, caller] of before.entries()) {
    t.teardown(caller.end);
    caller.write(`GET /${String(index)} HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
    await until('it has its place', () => proxy.server.counts().inFlight === index + 1);
  }
  const old = proxy.activeConfig();
  t.same(old.upstream.counts(), { active: 1, waiting: 2 });

  proxy.reload({ ...config('reporting', { url: second.url, ...line }) });
  old.upstream.retire();
  t.equal((await request(proxy.port, { path: '/', headers: proxy.authorization() })).status, 403, 'the new policy');
  t.equal(
    (await request(proxy.port, { path: '/new', headers: proxy.authorization({ sub: 'reporting' }) })).status,
    200,
  );
  t.same(
    second.requests.map(({ target }) => target),
    ['/new'],
  );

  for (let i = 0; i < 3; i++) {
    await until('it is with the first receiver', () => held.length > i);
    held[i]?.end(`old ${String(i)}`);
    t.equal((await before[i]?.readResponse())?.text, `old ${String(i)}`);
  }
  t.same(
    first.requests.map(({ target }) => target),
    ['/0', '/1', '/2'],
  );
  await until('its connections are closed', () => first.open() === 0);
  t.same(old.upstream.counts(), { active: 0, waiting: 0 });
  t.same(
    proxy.records.map(({ route: name }) => name),
    ['for-reporting', 'for-reporting', 'for-checkout', 'for-checkout', 'for-checkout'],
  );
});

t.test('a request that waits behind another is checked by what is in force when its turn comes', async (t) => {
  let elapsedMs = 0;
  const clock = { now: systemClock.now, monotonic: () => elapsedMs };
  const proxy = await startProxy(t, { config: { ...config('checkout', {}) }, clock });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const caller = await connectRaw(proxy.port);
  t.teardown(caller.end);
  const get = (path: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${path.slice(1)}\r\n${proxy.bearer()}\r\n`;
  caller.write(`${get('/first')}${get('/second')}`);
  await until('the first is with the receiver', () => held.length === 1);
  proxy.reload({ ...config('checkout', {}), revoked: { subjects: ['checkout'] } });
  elapsedMs = 1000;
  held[0]?.end('one');
  t.equal((await caller.readResponse())?.text, 'one', 'what was judged before goes on');
  t.equal((await caller.readResponse())?.status, 401);
  t.match(await proxy.recordOf('first'), { reason: null, duration_ms: 1000 });
  t.match(
    await proxy.recordOf('second'),
    { reason: 'subject_revoked', duration_ms: 0 },
    'its time begins with its turn',
  );
  t.same(
    proxy.receiver.requests.map(({ target }) => target),
    ['/first'],
  );
});

t.test('a request that was being judged at the reload still reaches the upstream it was judged for', async (t) => {
  const first = await startUpstreamServer(t);
  const second = await startUpstreamServer(t);
  let findKey: (() => void) | null = null;
  const proxy = await startProxy(t, {
    receiver: first,
    config: { ...config('checkout', { url: first.url }) },
    find: async (keyId) =>
      new Promise((resolve) => {
        findKey = () => {
          resolve({ kind: 'found', key: { keyId, algorithm: 'RS256', key: proxy.key.publicKey } });
        };
      }),
  });
  const caller = await connectRaw(proxy.port);
  t.teardown(caller.end);
  const old = proxy.activeConfig();
  caller.write(`GET /late HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  const answer = await until('its key is looked up', () => findKey);
  proxy.reload({ ...config('reporting', { url: second.url }) });
  old.upstream.retire();
  answer();
  t.equal((await caller.readResponse())?.status, 200);
  t.same(second.requests, []);
  await until('the connection that was opened for it is closed', () => first.open() === 0);
});

t.test('reloads under load lose no request', async (t) => {
  const proxy = await startProxy(t, { config: { ...config('checkout', {}) } });
  let isOver = false;
  const statuses: number[] = [];
  const callers = Array.from({ length: 4 }, async () => {
    while (!isOver) statuses.push((await request(proxy.port, { path: '/a', headers: proxy.authorization() })).status);
  });
  for (let i = 0; i < 30; i++) {
    const old = proxy.activeConfig();
    proxy.reload({ ...config('checkout', { max_connections: 1 + (i % 3) }) });
    old.upstream.retire();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until('enough was asked', () => statuses.length > 100);
  isOver = true;
  await Promise.all(callers);
  t.same([...new Set(statuses)], [200]);
});
