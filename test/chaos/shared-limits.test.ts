/** Limits that two proxies on one Redis server share. */
import t from 'tap';
import { request } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { usualWorkers, type ProxyProcess } from '../support/proxy-process.js';
import { shareRedis } from './shared-redis.js';

const perSecond = 10;
const burst = 20;
const spanMs = 6_000;
const shared = await shareRedis(t, {
  config: {
    limits: { requests_per_second: perSecond, burst, shared: true },
    routes: [{ name: 'list', methods: ['GET'], path: '/orders', subjects: ['checkout', 'reporting'], permissions: [] }],
  },
});
const proxies = [await shared.startProxy(), await shared.startProxy()];
for (const proxy of proxies) {
  await until('it is on the store', async () => (await proxy.metric('sallyport_limits_shared')) === 1);
}

/** Asks as fast as it is answered, until time is up; how many were let through. */
async function press(proxy: ProxyProcess, headers: Readonly<Record<string, string>>, endMs: number): Promise<number> {
  let passed = 0;
  while (performance.now() < endMs) {
    const { status } = await request(proxy.port, { path: '/orders', headers });
    if (status === 200) passed += 1;
    else if (status !== 429) throw new Error(String(status));
  }
  return passed;
}

t.test('two proxies on one Redis hold one limit within 5 %', async (t) => {
  const startedMs = performance.now();
  const endMs = startedMs + spanMs;
  const runs = proxies.flatMap((proxy) => [0, 1].map(async () => press(proxy, proxy.authorization(), endMs)));
  const passed = (await Promise.all(runs)).reduce((sum, count) => sum + count, 0);
  const expected = burst + (perSecond * (performance.now() - startedMs)) / 1_000;
  t.ok(Math.abs(passed - expected) <= 0.05 * expected, `${String(passed)} passed, ${expected.toFixed(1)} may`);
  for (const proxy of proxies) {
    t.ok((await proxy.metric('sallyport_denials_total{reason="rate_limited"}')) > 0, 'both refused some');
  }
});

t.test('the store away, each proxy counts by itself and says so; back again, they count together', async (t) => {
  const [proxy] = proxies;
  if (proxy === undefined) throw new Error('no proxy');
  await shared.redis.kill();
  const says = async (): Promise<unknown> =>
    (JSON.parse((await proxy.admin('/status')).text) as { limits?: unknown }).limits;
  const headers = proxy.authorization({ sub: 'reporting' });
  await until('it counts by itself', async () => {
    t.ok(
      [200, 429].includes((await request(proxy.port, { path: '/orders', headers })).status),
      'nobody is refused for want of the store',
    );
    return (await proxy.metric('sallyport_limits_shared')) === 0;
  });
  t.match(await says(), { counted_by: 'process', problem: /./ });
  const endMs = performance.now() + 1_000;
  const passed = await press(proxy, headers, endMs);
  t.ok(passed > 0 && passed <= burst + perSecond * 2, `${String(passed)} of it alone`);
  const told = (message: string): number => proxy.logs().filter((line) => line['msg'] === message).length;
  const alone = 'shared limits are counted by each process alone: the store does not count them';
  await until('it says so', () => told(alone) >= usualWorkers);
  t.equal(told(alone), usualWorkers, 'once for each process');
  await shared.redis.restart();
  await until('they count together', async () => {
    await request(proxy.port, { path: '/orders', headers });
    return (await proxy.metric('sallyport_limits_shared')) === 1;
  });
  await until('it says so', () => told('shared limits are counted together again') === usualWorkers);
  t.match(await says(), { counted_by: 'store', problem: null });
});
