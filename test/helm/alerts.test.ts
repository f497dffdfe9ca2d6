/** Alert rules and dashboard: every expression asks for series that a real scrape has. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { reasons } from '../../src/decision/denial.js';
import { chartDir } from '../support/helm.js';
import { projectDir } from '../support/project-dir.js';
import { startRedis } from '../support/redis-server.js';
import { startAppWorld } from '../app/app-world.js';
import { redisStore } from '../app/store-world.js';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Panel {
  readonly title: string;
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const { groups } = parse(readFileSync(join(chartDir, 'files/alerts.yaml'), 'utf8')) as { groups: readonly { rules: readonly Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);
const { panels } = JSON.parse(readFileSync(join(chartDir, 'files/dashboard.json'), 'utf8')) as { panels: readonly Panel[] };

/** Added by Prometheus, not by us. */
const targetLabels: ReadonlySet<string> = new Set(['job', 'instance']);

/** Name to labels of every series of a scrape; a histogram's labels, and `le`. */
function scrapedLabels(text: string): ReadonlyMap<string, ReadonlySet<string>> {
  const series = new Map<string, Set<string>>();
  for (const line of text.split('\n').filter((one) => !one.startsWith('#'))) {
    const [, name = '', labels = ''] = /^([a-z_]\w*)(?:\{(.*)\})? /i.exec(line) ?? [];
    const known = series.get(name) ?? new Set<string>();
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label);
    series.set(name, known);
  }
  return series;
}

/** The metrics of an expression with the labels that it matches or groups by. */
function asked(expr: string): readonly { readonly name: string; readonly labels: readonly string[] }[] {
  const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(',').map((name) => name.trim()));
  return [...expr.matchAll(/((?:sallyport|process)_\w+)(?:\{([^}]*)\})?/g)].map(([, name = '', matchers = '']) => ({
    name, labels: [...[...matchers.matchAll(/(\w+)=~?"/g)].map(([, label = '']) => label), ...grouped],
  }));
}

t.test('expressions name metrics and labels of a real scrape, and reasons that there are', async (t) => {
  const world = await startAppWorld(t, { config: { mode: 'shadow', ...redisStore(await startRedis(t)) } });
  await world.request({ path: '/orders' });
  await world.request({ path: '/orders', headers: { 'X-Auth_Subject': 'x' } }, { permissions: [] });
  const series = scrapedLabels((await world.admin('/metrics')).text);
  const expressions = [
    ...rules.map(({ alert, expr }) => ({ at: alert, expr, legend: '' })),
    ...panels.flatMap(({ title, targets }) => targets.map(({ expr, legendFormat }) => ({ at: title, expr, legend: legendFormat }))),
  ];
  t.ok(expressions.length > 25);
  for (const { at, expr, legend } of expressions) {
    const metrics = asked(expr);
    t.not(metrics.length, 0, at);
    for (const { name, labels } of metrics) {
      const known = series.get(name);
      t.ok(known !== undefined, `${at}: ${name}`);
      t.same(labels.filter((label) => known?.has(label) !== true && !targetLabels.has(label)), [], `${at}: labels of ${name}`);
    }
    for (const [, label = ''] of legend.matchAll(/\{\{(\w+)\}\}/g)) t.match(expr, new RegExp(`by \\([^)]*\\b${label}\\b`), `${at}: ${legend}`);
    for (const [, pattern = ''] of expr.matchAll(/reason=~?"([^"]+)"/g)) {
      t.ok(reasons.some((reason) => new RegExp(`^(?:${pattern})$`).test(reason)), pattern);
    }
    t.equal(expr.split('(').length, expr.split(')').length, `${at}: brackets`);
  }
});

t.test('each alert says what is wrong and how urgent it is, and is the one of docs/operations.md', async (t) => {
  t.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, labels, annotations } of rules) {
    t.match(labels, { severity: /^(page|ticket)$/ }, alert);
    t.match(annotations, { summary: /.{20,}/ }, alert);
  }
  const operations = readFileSync(join(projectDir, 'docs/operations.md'), 'utf8');
  const blocks = [...operations.matchAll(/```yaml\n(- alert[\s\S]*?)```/g)].map(([, block = '']) => block);
  const documented = blocks.flatMap((block) => parseAllDocuments(block).flatMap((document) => document.toJS() as readonly Rule[]));
  const told = ({ alert, expr, for: duration }: Rule): readonly (string | undefined)[] => [alert, expr, duration];
  t.same(rules.map(told), documented.map(told));
});

t.test('the dashboard is one that Grafana can lay out', async (t) => {
  const ids = (panels as readonly (Panel & { readonly id: number; readonly gridPos: { readonly x: number; readonly w: number } })[]);
  t.equal(new Set(ids.map(({ id }) => id)).size, panels.length);
  t.ok(ids.every(({ gridPos: { x, w } }) => x + w <= 24));
});
