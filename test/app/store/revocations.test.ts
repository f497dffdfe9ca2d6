/** docs/contract.md 6: a proxy in this process, a real Redis, and the command that revokes. */
import { dirname } from 'node:path';
import t from 'tap';
import { WebSocket } from 'ws';
import { run } from '../../../src/cli/program.js';
import { captureIo } from '../../cli/captured-io.js';
import { clientOf, startWebSocketUpstream, webSocketRoutes } from '../../proxy/websocket/websocket-proxy.js';
import { startRedis } from '../../support/redis-server.js';
import { until } from '../../support/until.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';
import { redisStore } from './store-config.js';

const key = 'sallyport:{revoked}:list';

async function revoke(proxy: InProcessProxy, ...args: readonly string[]): Promise<string> {
  const io = captureIo({ cwd: dirname(proxy.configFile) });
  await run(['revoke', '--config', proxy.configFile, '--json', ...args], io);
  if (io.code() !== 0) throw new Error(io.err());
  return (JSON.parse(io.out()) as { id: string }).id;
}

async function check(proxy: InProcessProxy): Promise<readonly unknown[]> {
  const page = await proxy.admin('/readyz');
  const { checks } = JSON.parse(page.text) as { checks: readonly { name: string; status: string }[] };
  return [page.status, checks.find(({ name }) => name === 'revocations')?.status];
}

t.test(
  'an open WebSocket is closed with 4401 by the command, and /status and metrics show who revoked what',
  async (t) => {
    const redis = await startRedis(t);
    const { url } = await startWebSocketUpstream(t);
    const proxy = await startInProcessProxy(t, {
      config: { ...redisStore(redis), routes: webSocketRoutes, upstream: { url } },
    });
    const headers = { Authorization: `Bearer ${proxy.token()}` };
    const client = clientOf(t, new WebSocket(`ws://127.0.0.1:${String(proxy.port)}/live`, { headers }));
    await client.opened;
    const id = await revoke(proxy, '--subject', 'checkout', '--issuer', 'core', '--for', '1h', '--reason', 'a test');
    const revokedAtMs = performance.now();
    t.same(await client.closed, { code: 4401, reason: 'unauthorized' });
    t.ok(performance.now() - revokedAtMs < 10_000, 'at once, not when it is authorized again in any case, after 30 s');
    t.match(proxy.app.status().revocations, {
      loaded: true,
      stale: false,
      held: 1,
      lost: 0,
      entries: [{ id, kind: 'subject', value: 'checkout', issuer: 'https://api.example.com', reason: 'a test' }],
    });
    t.equal(await proxy.metric('sallyport_revocations{kind="subject"}'), 1);
    t.equal((await proxy.request({ path: '/orders' })).status, 401);
    await redis.client.flushall();
    await until(
      'it is said that the store lost it',
      async () => (await proxy.metric('sallyport_revocations_lost')) === 1,
    );
    t.same(await check(proxy), [200, 'stale']);
    t.equal((await proxy.request({ path: '/orders' })).status, 401, 'it holds');
  },
);

t.test(
  'a damaged list: what was known holds, a proxy that starts is not ready, and all is well when it is mended',
  async (t) => {
    const redis = await startRedis(t);
    const proxy = await startInProcessProxy(t, { config: redisStore(redis) });
    await revoke(proxy, '--subject', 'checkout', '--for', '1h', '--reason', 'a test');
    await until('it is refused', async () => (await proxy.request({ path: '/orders' })).status === 401);
    await redis.client.hset(key, { 'e:damaged': 'x', rev: 'other' });
    await until('it is said', async () => (await proxy.metric('sallyport_revocations_not_in_force')) === 1);
    t.same(await check(proxy), [200, 'failed']);
    await redis.client.del(key);
    await redis.client.set(key, 'of another program');
    await until('it is stale', () => proxy.app.status().revocations?.stale);
    t.match(proxy.app.status().revocations?.problem, /WRONGTYPE/);
    t.equal((await proxy.request({ path: '/orders' })).status, 401, 'it holds');
    const late = await startInProcessProxy(t, { config: redisStore(redis), ready: false });
    await until(
      'it has its keys',
      () => late.app.readiness().checks.find(({ name }) => name === 'keys')?.status === 'ok',
    );
    t.same(await check(late), [503, 'failed']);
    await redis.client.del(key);
    await until('it is ready', async () => (await check(late))[0] === 200);
    t.equal(
      proxy.logs().filter(({ msg }) => String(msg).startsWith('revocations cannot be read')).length,
      1,
      'said once',
    );
  },
);

t.test('a store in memory tells of no revocations', async (t) => {
  const proxy = await startInProcessProxy(t, { config: { store: { memory: {} } } });
  t.equal(proxy.app.status().revocations, null);
  t.same(await check(proxy), [200, undefined]);
  t.notMatch((await proxy.admin('/metrics')).text, /^sallyport_revocations/m);
});
