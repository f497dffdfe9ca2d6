import type { ServerResponse } from 'node:http';
import t from 'tap';
import { accept, refuse } from '../../../src/lib/result.js';
import type { SharedRateCounter } from '../../../src/ports/limits.js';
import { steadyAfterMs } from '../../../src/proxy/exchange/rate-limiter.js';
import { connectRaw, request, requestBytes, type RawResponse } from '../../support/raw-client.js';
import type { Claims } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startProxy, type Harness } from '../harness.js';
import { createSteppingClock } from '../idempotency/stepping-clock.js';

const open = { methods: ['GET'], subjects: ['checkout', 'reporting'], permissions: ['orders:read'] };
const routes: readonly ConfigTree[] = [
  { ...open, name: 'list', path: '/orders' },
  { ...open, name: 'read', path: '/orders/{id}' },
  { ...open, name: 'own', path: '/own', limits: { requests_per_second: 1, burst: 1 } },
  { ...open, name: 'free', path: '/free', limits: null },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
];

const ask = async (proxy: Harness, path = '/orders', claims?: Claims): Promise<RawResponse> =>
  request(proxy.port, { path, headers: { ...proxy.authorization(claims) } });

t.test('requests per second with a burst, by subject', async (t) => {
  const clock = createSteppingClock();
  const proxy = await startProxy(t, { clock, config: { routes, limits: { requests_per_second: 0.01, burst: 3 } } });
  for (const path of ['/orders', '/orders/1', '/orders']) {
    t.equal((await ask(proxy, path)).status, 200, 'routes without limits of their own count together');
  }
  const refused = await ask(proxy);
  t.equal(refused.status, 429);
  t.equal(
    refused.text,
    '{"type":"urn:sallyport:rate-limited","title":"This caller sends too many requests","status":429}',
  );
  t.match(Number(refused.field('Retry-After')), /^(100|99)$/);
  t.equal(refused.field('RateLimit-Policy'), '"requests";q=3;w=300');
  t.equal(refused.field('RateLimit'), `"requests";r=0;t=${String(refused.field('Retry-After'))}`);
  t.equal(refused.field('Proxy-Status'), 'sallyport; error=http_request_denied');
  t.equal(proxy.receiver.requests.length, 3);
  t.match(proxy.records.at(-1), { decision: 'denied', reason: 'rate_limited', subject: 'checkout', status: 429 });
  t.equal((await ask(proxy, '/orders', { sub: 'reporting' })).status, 200, 'another caller is none of it');
  t.equal((await ask(proxy, '/own')).status, 200, 'a route with limits of its own');
  t.equal((await ask(proxy, '/own')).status, 429);
  t.equal((await ask(proxy, '/free')).status, 200);
  t.equal((await request(proxy.port, { path: '/healthz' })).status, 200);
  clock.step(100_000);
  t.equal((await ask(proxy)).status, 200, 'after as long as it says');
});

t.test('only what is allowed is counted', async (t) => {
  const proxy = await startProxy(t, { config: { routes, limits: { requests_per_second: 0.01, burst: 1 } } });
  for (let i = 0; i < 5; i += 1) {
    t.equal((await ask(proxy, '/orders', { exp: 1 })).status, 401);
    t.equal((await ask(proxy, '/orders', { permissions: [] })).status, 403);
    t.equal((await ask(proxy, '/unknown')).status, 403);
  }
  t.equal((await ask(proxy)).status, 200);
  t.equal((await ask(proxy)).status, 429);
  t.equal(
    (await ask(proxy, '/orders', { permissions: [] })).status,
    403,
    'who is not allowed is told nothing of limits',
  );
});

t.test('in shadow mode callers are limited as enforced, and nobody is not', async (t) => {
  const proxy = await startProxy(t, {
    config: { mode: 'shadow', routes, limits: { requests_per_second: 0.01, burst: 1 } },
  });
  t.same([(await ask(proxy)).status, (await ask(proxy)).status], [200, 429]);
  for (let i = 0; i < 3; i += 1) t.equal((await request(proxy.port, { path: '/orders' })).status, 200);
});

t.test('requests in flight, by subject; a place is given back however the request ends', async (t) => {
  const proxy = await startProxy(t, { config: { routes, limits: { max_in_flight: 2 } } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => void held.push(res));
  const leaving = await connectRaw(proxy.port);
  leaving.write(requestBytes(proxy.port, { path: '/orders', headers: { ...proxy.authorization() } }));
  const staying = ask(proxy);
  await until('two are in flight', () => held.length === 2);
  const refused = await ask(proxy);
  t.equal(refused.status, 429);
  t.match(JSON.parse(refused.text), { type: 'urn:sallyport:too-many-in-flight' });
  t.same(
    [refused.field('Retry-After'), refused.field('RateLimit'), refused.field('RateLimit-Policy')],
    ['1', '"in-flight";r=0;t=1', '"in-flight";q=2;qu="concurrent-requests"'],
  );
  const other = ask(proxy, '/orders', { sub: 'reporting' });
  await until('another caller is none of it', () => held.length === 3);
  leaving.end();
  await until('its place is free', () => proxy.server.counts().inFlight === 2);
  const next = ask(proxy);
  await until('the next is in flight', () => held.length === 4);
  for (const res of held) res.end('x');
  t.same(
    (await Promise.all([staying, other, next])).map(({ status }) => status),
    [200, 200, 200],
  );
  await until('nothing is in flight', () => proxy.server.counts().inFlight === 0);
});

t.test('a request over its rate holds no place', async (t) => {
  const proxy = await startProxy(t, {
    config: { routes, limits: { requests_per_second: 0.01, burst: 1, max_in_flight: 1 } },
  });
  t.equal((await ask(proxy)).status, 200);
  for (let i = 0; i < 3; i += 1) t.match(JSON.parse((await ask(proxy)).text), { type: 'urn:sallyport:rate-limited' });
});

t.test('the store away: each process counts by itself, and says so once', async (t) => {
  let isAway = true;
  let asked = 0;
  const rates: SharedRateCounter = {
    take: () => {
      asked += 1;
      return Promise.resolve(
        isAway ? refuse({ kind: 'unreachable', reason: 'ECONNREFUSED', mayHaveRun: false } as const) : accept(0),
      );
    },
  };
  const config = { routes, store: { memory: {} }, limits: { requests_per_second: 0.01, burst: 2, shared: true } };
  const clock = createSteppingClock();
  const proxy = await startProxy(t, { rates, clock, config });
  t.same([(await ask(proxy)).status, (await ask(proxy)).status, (await ask(proxy)).status], [200, 200, 429]);
  for (let i = 0; i < 3; i += 1) {
    isAway = false;
    t.equal((await ask(proxy)).status, 200, 'the store counts again');
    isAway = true;
    t.equal((await ask(proxy)).status, 429, 'and not');
  }
  isAway = false;
  t.equal((await ask(proxy)).status, 200);
  t.equal(proxy.logged.length, 1, 'a store that comes and goes is one trouble');
  clock.step(steadyAfterMs);
  t.equal((await ask(proxy)).status, 200);
  t.equal(asked, 11);
  t.same(
    proxy.logged.map(({ level, message }) => `${level} ${message}`),
    [
      'warn shared limits are counted by each process alone: the store does not count them',
      'info shared limits are counted together again',
    ],
  );
  const without = await startProxy(t, { config });
  t.same([(await ask(without)).status, (await ask(without)).status, (await ask(without)).status], [200, 200, 429]);
  t.match(without.logged, [{ level: 'warn', fields: { reason: 'no store was opened at the start' } }]);
});

t.test('a caller that leaves while the store is asked holds no place', async (t) => {
  let answer = (): void => undefined;
  const rates: SharedRateCounter = {
    take: () =>
      new Promise((resolve) => {
        answer = () => resolve(accept(0));
      }),
  };
  const proxy = await startProxy(t, {
    rates,
    config: {
      routes,
      store: { memory: {} },
      limits: { requests_per_second: 5, shared: true, max_in_flight: 1 },
      listen: { max_in_flight: 1 },
    },
  });
  const connection = await connectRaw(proxy.port);
  connection.write(requestBytes(proxy.port, { path: '/orders', headers: { ...proxy.authorization() } }));
  await until('the store is asked', () => answer.name !== '' && proxy.server.counts().connections === 1);
  connection.end();
  await until('it is over', () => proxy.records.length === 1);
  answer();
  await until('its place is free', async () => {
    const next = ask(proxy);
    await until('the store is asked again', () => proxy.server.counts().connections > 0);
    answer();
    return (await next).status === 200;
  });
});
