/** Issue 7: alert rules and dashboard, evaluated by a real Prometheus over real scrapes. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startAppWorld } from '../app/app-world.js';
import { redisStore } from '../app/store-world.js';
import { chartDir } from '../support/helm.js';
import { startPrometheus } from '../support/prometheus.js';
import { startRedis } from '../support/redis-server.js';
import { until } from '../support/until.js';

/** An alert fires only after what it tells of has lasted, and there are several waits for that. */
t.setTimeout(600_000);

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}

/** Panels that are empty while all is well. */
const quiet: ReadonlySet<string> = new Set(['Refusals by reason', 'Reservations']);

t.test('every alert is evaluated without a fault, every panel has data, and an alert fires when it should', async (t) => {
  const redis = await startRedis(t);
  const world = await startAppWorld(t, { config: { mode: 'shadow', ...redisStore(redis) } });
  const rulesFile = join(chartDir, 'files/alerts.yaml');
  const prometheus = await startPrometheus(t, world.adminPort, rulesFile);
  const { panels } = JSON.parse(readFileSync(join(chartDir, 'files/dashboard.json'), 'utf8')) as Dashboard;
  const expressions = panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({
    title, expr: expr.replaceAll('$__rate_interval', '10s').replaceAll('$job', '.+'),
  })));
  await until('every panel has data', async () => {
    await world.request({ path: '/orders' });
    await world.request({ path: '/orders' }, { permissions: [] });
    for (const { title, expr } of expressions) if ((await prometheus.query(expr)).length === 0 && !quiet.has(title)) return false;
    return true;
  }, 60_000);
  const rules = await until('every rule was evaluated', async () => {
    const loaded = await prometheus.rules();
    return loaded.every(({ health }) => health !== 'unknown') ? loaded : null;
  }, 60_000);
  t.equal(rules.length, [...readFileSync(rulesFile, 'utf8').matchAll(/- alert:/g)].length);
  t.same(rules.filter(({ health }) => health !== 'ok'), []);
  await redis.kill();
  const stale = 'ALERTS{alertname="SallyportRevocationsStale",alertstate="firing"}';
  await until('revocations that are not read raise their alert', async () => (await prometheus.query(stale)).length > 0, 90_000);
  world.rewrite({ routes: 'none' });
  const firing = 'ALERTS{alertname="SallyportConfigRefused",alertstate="firing"}';
  await until('a refused config raises its alert', async () => (await prometheus.query(firing)).length > 0, 60_000);
});
