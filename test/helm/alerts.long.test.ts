/** Alert rules and dashboard, evaluated by a real Prometheus over real scrapes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startInProcessProxy } from '../app/in-process-proxy.js';
import { redisStore } from '../app/store/store-config.js';
import { chartDir } from '../support/helm.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { startPrometheus } from '../support/prometheus.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import { startRedis } from '../support/redis-server.js';
import { until } from '../support/until.js';

/** An alert fires only after what it tells of has lasted, and there are several waits for that. */
t.setTimeout(600_000);

const rulesFile = join(chartDir, 'files/alerts.yaml');

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}

/** Panels that are empty while all is well. */
const quiet: ReadonlySet<string> = new Set([
  '5xx by route',
  'Failures by reason',
  'Refusals by reason',
  'Refusals by route',
  'Header fields dropped',
  'Certificates: time left',
  'Reservations',
]);

t.test(
  'every alert is evaluated without a fault, every panel has data, and an alert fires when it should',
  async (t) => {
    const redis = await startRedis(t);
    const proxy = await startInProcessProxy(t, { config: { mode: 'shadow', ...redisStore(redis) } });
    const prometheus = await startPrometheus(
      t,
      [{ namespace: 'shop', job: 'orders', port: proxy.adminPort }],
      rulesFile,
    );
    const { panels } = JSON.parse(readFileSync(join(chartDir, 'files/dashboard.json'), 'utf8')) as Dashboard;
    const expressions = panels.flatMap(({ title, targets }) =>
      targets.map(({ expr }) => ({
        title,
        expr: expr
          .replaceAll('$__rate_interval', '10s')
          .replaceAll('$namespace', '.*')
          .replaceAll('$service', 'orders|other'),
      })),
    );
    await until(
      'every panel has data',
      async () => {
        await proxy.request({ path: '/orders' });
        await proxy.request({ path: '/orders' }, { permissions: [] });
        for (const { title, expr } of expressions) {
          if ((await prometheus.query(expr)).length === 0 && !quiet.has(title)) return false;
        }
        return true;
      },
      60_000,
    );
    const rules = await until(
      'every rule was evaluated',
      async () => {
        const loaded = await prometheus.rules();
        return loaded.every(({ health }) => health !== 'unknown') ? loaded : null;
      },
      60_000,
    );
    t.equal(rules.length, [...readFileSync(rulesFile, 'utf8').matchAll(/- alert:/g)].length);
    t.same(
      rules.filter(({ health }) => health !== 'ok'),
      [],
    );
    await redis.kill();
    const stale = 'ALERTS{alertname="SallyportRevocationsStale",namespace="shop",job="orders",alertstate="firing"}';
    await until(
      'revocations that are not read raise their alert',
      async () => (await prometheus.query(stale)).length > 0,
      90_000,
    );
    proxy.rewrite({ routes: 'none' });
    const firing = 'ALERTS{alertname="SallyportConfigRefused",namespace="shop",job="orders",alertstate="firing"}';
    await until('a refused config raises its alert', async () => (await prometheus.query(firing)).length > 0, 60_000);
  },
);

t.test('of twenty services the one in trouble is told of, and nothing of the others', async (t) => {
  const [jwks, receiver] = [await startJwksServer(t, { keys: [rsaKey()] }), await startUpstreamServer(t)];
  const jobs = Array.from({ length: 20 }, (_, index) => `service-${String(index)}`);
  // Each has a config of its own, as services have.
  const proxies = await Promise.all(
    jobs.map(async (job) => ({
      job,
      proxy: await startInProcessProxy(t, { jwks, receiver, config: { issuers: { core: { audience: job } } } }),
    })),
  );
  const prometheus = await startPrometheus(
    t,
    proxies.map(({ job, proxy }) => ({ namespace: 'shop', job, port: proxy.adminPort })),
    rulesFile,
  );
  const bad = proxies.find(({ job }) => job === 'service-13');
  if (bad === undefined) throw new Error('there is no such service');
  const alerts = async (): Promise<readonly string[]> =>
    (await prometheus.query('ALERTS'))
      .map(({ metric }) => `${metric['alertname'] ?? ''} ${metric['job'] ?? ''} ${metric['alertstate'] ?? ''}`)
      .sort();
  const asked = async (): Promise<void> => {
    // As usual proxies in front send them.
    const headers = {
      Host: 'orders.example',
      'X-Real-IP': '203.0.113.7',
      'X-Forwarded-For': '203.0.113.7',
      'X-Forwarded-Proto': 'https',
    };
    for (const { job, proxy } of proxies) await proxy.request({ path: '/orders', headers }, { aud: job });
  };
  const expected = ['SallyportConfigRefused service-13 firing', 'SallyportSpoofedIdentity service-13 firing'];
  await asked();
  await until(
    'every rule was evaluated',
    async () => (await prometheus.rules()).every(({ health }) => health === 'ok'),
    60_000,
  );
  t.same(await alerts(), [], 'nobody is told of anything before');
  await bad.proxy.request({ path: '/orders', headers: { 'X-Auth-Subject': 'root' } }, { aud: bad.job });
  bad.proxy.rewrite({ routes: 'none' });
  await until(
    'both alerts fire',
    async () => {
      await asked();
      return (await alerts()).length >= expected.length;
    },
    90_000,
  );
  t.same(await alerts(), expected, 'once each, by the name of the service');
});
