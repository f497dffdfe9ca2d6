/** What a proxy lets through that starts while the store is away: it does not know what is revoked there. */
import { dirname } from 'node:path';
import t from 'tap';
import { run } from '../../../src/cli/program.js';
import { captureIo } from '../../cli/captured-io.js';
import { startJwksServer } from '../../support/jwks-server.js';
import { rsaKey } from '../../support/keys.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';
import { redisStore } from './store-config.js';

const routes = [
  { name: 'list-orders', methods: ['GET'], path: '/orders', subjects: ['checkout', 'mallory'], permissions: [] },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
  { name: 'watched', methods: ['GET'], path: '/watched', subjects: ['checkout'], permissions: [], mode: 'shadow' },
];

/** A proxy in front of a Redis where a caller is revoked, and then one more that starts when that Redis is gone. */
async function startWithoutRedis(
  t: Scope,
  settings: ConfigTree = {},
): Promise<{ readonly redis: RedisServer; readonly late: InProcessProxy }> {
  const redis = await startRedis(t);
  const jwks = await startJwksServer(t, { keys: [rsaKey()] });
  const config = { ...redisStore(redis, settings), routes };
  const early = await startInProcessProxy(t, { config, jwks });
  const io = captureIo({ cwd: dirname(early.configFile) });
  await run(['revoke', '--config', early.configFile, '--subject', 'mallory', '--for', '1h', '--reason', 'a test'], io);
  if (io.code() !== 0) throw new Error(io.err());
  await until(
    'the caller is refused',
    async () => (await early.request({ path: '/orders' }, { sub: 'mallory' })).status === 401,
  );
  await redis.kill();
  const atOthers = [await statusOf(early, '/orders', 'mallory'), await statusOf(early, '/orders')];
  if (atOthers.join() !== '401,200') throw new Error(`one that knew it answers ${atOthers.join()}`);
  const late = await startInProcessProxy(t, { config, jwks, ready: false });
  await until(
    'it has its keys',
    () => late.app.readiness().checks.find(({ name }) => name === 'keys')?.status === 'ok',
  );
  return { redis, late };
}

async function statusOf(proxy: InProcessProxy, path: string, sub = 'checkout'): Promise<number> {
  return (await proxy.request({ path }, { sub })).status;
}

t.test('protected routes are refused until the store was read, and the revoked caller is never let in', async (t) => {
  const { redis, late } = await startWithoutRedis(t);
  const refused = await late.request({ path: '/orders' }, { sub: 'mallory' });
  t.equal(refused.status, 503);
  t.equal(refused.field('retry-after'), '1');
  t.match(JSON.parse(refused.text), { type: 'urn:sallyport:store-unavailable', status: 503 });
  t.equal(await statusOf(late, '/orders'), 503, 'nobody is told from a revoked caller');
  t.equal(await statusOf(late, '/nowhere'), 503, 'nor is a route from none');
  t.equal(await statusOf(late, '/watched'), 503, 'what is revoked counts in shadow mode, too');
  t.equal(
    (await late.request({ path: '/watched', headers: {} }, { exp: 1, sub: 'mallory' })).status,
    503,
    'with whatever token',
  );
  t.equal((await late.request({ path: '/healthz' })).status, 200, 'a public route');
  t.equal(
    (await late.request({ path: '/orders' }, { exp: 1 })).status,
    401,
    'a credential that is bad is so for everybody',
  );
  t.match(
    late.receiver.requests.map(({ target }) => target),
    ['/healthz'],
  );
  t.equal((await late.admin('/readyz')).status, 503, 'readiness says the same');
  t.ok((await late.metric('sallyport_failures_total{reason="revocations_unknown"}')) >= 4);
  await until('it is said', () =>
    late.logs().some(({ level, msg }) => level === 'error' && /protected routes answer 503/.test(String(msg))),
  );

  await redis.restart();
  const seen: number[] = [];
  await until('others are served', async () => {
    seen.push(await statusOf(late, '/orders', 'mallory'));
    return (await statusOf(late, '/orders')) === 200;
  });
  t.equal(await statusOf(late, '/orders', 'mallory'), 401);
  t.notOk(seen.includes(200), 'not for a moment');
  await redis.kill();
  await until('it is said', async () => (await late.admin('/readyz')).text.includes('degraded'));
  t.equal(await statusOf(late, '/orders', 'mallory'), 401, 'what was read once holds on');
  t.equal(await statusOf(late, '/orders'), 200);
});

t.test('who prefers to be served without it says so, and readiness does not hold it back either', async (t) => {
  const { redis, late } = await startWithoutRedis(t, { start_without_revocations: true });
  t.equal(await statusOf(late, '/orders'), 200);
  t.equal(await statusOf(late, '/orders', 'mallory'), 200, 'this is the price');
  const page = await late.admin('/readyz');
  t.equal(page.status, 200);
  t.match(JSON.parse(page.text), { status: 'degraded' });
  await until('it is said', () =>
    late
      .logs()
      .some(({ level, msg }) => level === 'error' && /callers that are revoked there are let in/.test(String(msg))),
  );
  await redis.restart();
  await until('the revoked caller is refused', async () => (await statusOf(late, '/orders', 'mallory')) === 401);
});
