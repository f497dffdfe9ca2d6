/**
 * Alert rules and dashboard: every expression asks for series that a real scrape has, and one service among twenty is
 * told of alone.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse, stringify } from 'yaml';
import { reasons } from '../../src/decision/denial.js';
import { chartDir, helm, manifestsOf, one, valuesFile, type Values } from '../support/helm.js';
import { projectDir } from '../support/project-dir.js';
import { testRules, type ExpectedAlert, type RuleTest } from '../support/prometheus.js';
import type { Scope } from '../support/scope.js';
import { inputSeries, minutes, replicated, scrape, seriesOf, type Difference, type Series } from './service-series.js';
import { config, tls } from './values.js';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly w: number };
  readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[];
}

interface Groups {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly query: string }[] };
}

// Prometheus' tool works through half an hour of twenty services for each row.
t.setTimeout(300_000);

const alerts = readFileSync(join(chartDir, 'files/alerts.yaml'), 'utf8');
const rules = (parse(alerts) as Groups).groups.flatMap((group) => group.rules);
const { panels, templating } = JSON.parse(readFileSync(join(chartDir, 'files/dashboard.json'), 'utf8')) as Dashboard;
const operations = readFileSync(join(projectDir, 'docs/operations.md'), 'utf8');
const scraped = seriesOf(await scrape(t));

/** Added by Prometheus, not by us. */
const targetLabels: ReadonlySet<string> = new Set(['namespace', 'job', 'instance']);

/** The metrics of an expression with the labels that it matches or groups by. */
function asked(expr: string): readonly { readonly name: string; readonly labels: readonly string[] }[] {
  const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, names = '']) =>
    names.split(',').map((name) => name.trim()),
  );
  return [...expr.matchAll(/((?:sallyport|process)_\w+)(?:\{([^}]*)\})?/g)].map(([, name = '', matchers = '']) => ({
    name,
    labels: [...[...matchers.matchAll(/(\w+)=~?"/g)].map(([, label = '']) => label), ...grouped],
  }));
}

t.test('expressions name metrics and labels of a real scrape, and reasons that there are', async (t) => {
  const labelsOf = new Map(scraped.map(({ name, labels }) => [name, new Set(Object.keys(labels))]));
  const documented = [...operations.matchAll(/^\| [^|`]+ \| `((?:sum|histogram|\()[^`]*sallyport_[^`]*)` \|$/gm)].map(
    ([, expr = '']) => expr,
  );
  t.ok(documented.length > 4, 'questions that docs/operations.md answers');
  const expressions = [
    ...documented.map((expr) => ({ at: 'docs/operations.md', expr, legend: '' })),
    ...rules.map(({ alert, expr }) => ({ at: alert, expr, legend: '' })),
    ...panels.flatMap(({ title, targets }) =>
      targets.map(({ expr, legendFormat }) => ({ at: title, expr, legend: legendFormat })),
    ),
  ];
  t.ok(expressions.length > 40);
  for (const { at, expr, legend } of expressions) {
    const metrics = asked(expr);
    t.not(metrics.length, 0, at);
    for (const { name, labels } of metrics) {
      const known = labelsOf.get(name);
      t.ok(known !== undefined, `${at}: ${name}`);
      t.same(
        labels.filter((label) => known?.has(label) !== true && !targetLabels.has(label)),
        [],
        `${at}: labels of ${name}`,
      );
    }
    for (const [, label = ''] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
      t.match(expr, new RegExp(`by \\([^)]*\\b${label}\\b`), `${at}: ${legend}`);
    }
    for (const [, pattern = ''] of expr.matchAll(/reason=~?"([^"]+)"/g)) {
      for (const word of pattern.split('|')) {
        t.ok(
          reasons.some((reason) => new RegExp(`^(?:${word})$`).test(reason)),
          word,
        );
      }
    }
    t.equal(expr.split('(').length, expr.split(')').length, `${at}: brackets`);
  }
});

t.test('each alert is by service, says what is wrong and how urgent it is, and links to what to do', async (t) => {
  t.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length);
  for (const { alert, expr, labels, annotations } of rules) {
    t.match(labels, { severity: /^(page|ticket)$/ }, alert);
    t.match(
      annotations,
      { summary: /^\{\{ \$labels\.job \}\}: .{20,}/, runbook_url: `docs/operations.md#${alert.toLowerCase()}` },
      alert,
    );
    const [, section = ''] = new RegExp(`^### ${alert}\\n([\\s\\S]*?)(?=^##)`, 'm').exec(operations) ?? [];
    t.match(
      section,
      new RegExp(`^\\s*\\*\\*${labels['severity'] ?? ''}\\*\\*`),
      `${alert}: docs/operations.md says how urgent it is`,
    );
    t.ok(section.length > 150, `${alert}: and what to do`);
    for (const [, names = ''] of expr.matchAll(/by \(([^)]*)\)/g)) {
      t.match(names, /^namespace, job(, (?:certificate|issuer|sha256))?$/, `${alert}: by service`);
    }
    for (const [, matchers = ''] of expr.matchAll(/sallyport_\w+(\{[^}]*\})?/g)) {
      t.match(matchers, /^\{job=~"\.\+"[,}]/, `${alert}: the chart narrows it to a release`);
    }
  }
  const described = [...operations.matchAll(/^### (Sallyport\w+)$/gm)].map(([, name]) => name);
  t.same(
    described,
    rules.map(({ alert }) => alert),
    'in the order of the file, and no other',
  );
});

/** An alert of this rule, as one that is about these labels. */
function firing({ labels, annotations }: Rule, about: Readonly<Record<string, string>>): ExpectedAlert {
  const filled = Object.entries(annotations).map(
    ([name, text]) =>
      [name, text.replace(/\{\{ \$labels\.(\w+) \}\}/g, (_all, label: string) => about[label] ?? '')] as const,
  );
  return { exp_labels: { ...labels, ...about }, exp_annotations: Object.fromEntries(filled) };
}

const names = new Set(rules.flatMap(({ expr }) => asked(expr).map(({ name }) => name)));
const evaluated = scraped.filter(
  ({ name, labels }) => names.has(name) && (labels['route'] === undefined || labels['route'] === 'list-orders'),
);

/** What happens to one service of twenty, and the alerts that it has. Further labels are those of the alert. */
interface Row {
  readonly name: string;
  readonly change: (series: Series, replica: string) => string | null;
  readonly sha256?: (replica: string) => string | null;
  readonly fires: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

const rising = (perMinute: number): string => `0+${String(perMinute)}x${String(minutes)}`;
const constant = (value: number): string => `${String(value)}x${String(minutes)}`;
/** Once, some minutes before the end. */
const step = `0x${String(minutes - 8)} 1x7`;

/** A change of the series of this name with these labels. */
function of(
  name: string,
  labels: Readonly<Record<string, string>>,
  values: string,
  only: 'both' | 'a' = 'both',
): Row['change'] {
  return (series, replica) =>
    series.name === name &&
    Object.entries(labels).every(([label, value]) => series.labels[label] === value) &&
    (only === 'both' || replica === only)
      ? values
      : null;
}

const days = 86_400;
const certificate =
  (notBefore: number, notAfter: number): Row['change'] =>
  ({ name }) =>
    name === 'sallyport_certificate_not_before_seconds'
      ? constant(notBefore)
      : name === 'sallyport_certificate_not_after_seconds'
        ? constant(notAfter)
        : null;

const rows: readonly Row[] = [
  {
    name: 'keys cannot be had',
    change: of('sallyport_failures_total', { reason: 'keys_unavailable' }, rising(1)),
    fires: { SallyportCannotVerify: {} },
  },
  {
    name: 'the Core cannot be had',
    fires: { SallyportCannotVerify: {} },
    change: of('sallyport_failures_total', { reason: 'core_unavailable' }, rising(1), 'a'),
  },
  {
    name: 'the service breaks off',
    fires: { SallyportUpstreamFailing: {} },
    change: of('sallyport_failures_total', { reason: 'upstream_failed' }, rising(30)),
  },
  {
    name: 'the service answers 500',
    fires: { SallyportServiceErrors: {} },
    change: of('sallyport_requests_total', { outcome: 'forwarded', code: '5xx' }, rising(100)),
  },
  {
    name: 'one in a hundred answers is 500',
    change: of('sallyport_requests_total', { outcome: 'forwarded', code: '5xx' }, rising(6)),
    fires: {},
  },
  {
    name: 'the store is away from one replica',
    change: of('sallyport_store_up', {}, constant(0), 'a'),
    fires: { SallyportStoreAway: {} },
  },
  {
    name: 'a write was sent twice',
    change: of('sallyport_duplicate_dispatches_total', {}, step, 'a'),
    fires: { SallyportWriteRanTwice: {} },
  },
  {
    name: 'a reservation was lost',
    change: of('sallyport_lost_reservations_total', {}, step),
    fires: { SallyportReservationsLost: {} },
  },
  {
    name: 'revocations are not read',
    change: of('sallyport_revocations_age_seconds', {}, constant(31)),
    fires: { SallyportRevocationsStale: {} },
  },
  {
    name: 'a certificate of 90 days has a day left',
    change: certificate(-89 * days, 1 * days),
    fires: {
      SallyportCertificateExpires: { certificate: 'listener' },
      SallyportCertificateExpiresSoon: { certificate: 'listener' },
    },
  },
  {
    name: 'it has ten days left',
    change: certificate(-80 * days, 10 * days),
    fires: { SallyportCertificateExpiresSoon: { certificate: 'listener' } },
  },
  {
    name: 'one of a day has the third left at which it is renewed',
    change: certificate(-16 * 3600, 8 * 3600),
    fires: {},
  },
  {
    name: 'one of a day has three hours left',
    change: certificate(-21 * 3600, 3 * 3600),
    fires: { SallyportCertificateExpiresSoon: { certificate: 'listener' } },
  },
  {
    name: 'a bug',
    change: of('sallyport_failures_total', { reason: 'internal' }, step, 'a'),
    fires: { SallyportBug: {} },
  },
  {
    name: 'keys get old',
    change: of('sallyport_jwks_stale_ratio', {}, constant(0.51)),
    fires: { SallyportKeysGettingOld: { issuer: 'core' } },
  },
  { name: 'keys that are not old yet', change: of('sallyport_jwks_stale_ratio', {}, constant(0.5)), fires: {} },
  {
    name: 'keys are withdrawn',
    change: of('sallyport_jwks_keys', {}, constant(0)),
    fires: { SallyportKeysWithdrawn: { issuer: 'core' } },
  },
  {
    name: 'a write is in doubt',
    change: of('sallyport_unknown_outcome_oldest_age_seconds', {}, constant(601), 'a'),
    fires: { SallyportWriteInDoubt: {} },
  },
  {
    name: 'revocations were lost',
    change: of('sallyport_revocations_lost', {}, constant(1)),
    fires: { SallyportRevocationsIncomplete: {} },
  },
  {
    name: 'revocations are not in force',
    change: of('sallyport_revocations_not_in_force', {}, constant(1)),
    fires: { SallyportRevocationsIncomplete: {} },
  },
  {
    name: 'replicas of the store lag',
    change: of('sallyport_replica_shortfalls_total', {}, step),
    fires: { SallyportReplicasLag: {} },
  },
  {
    name: 'a token came twice',
    change: of('sallyport_reservations_total', { result: 'token_replayed' }, step, 'a'),
    fires: { SallyportTokensReplayed: {} },
  },
  {
    name: 'a config was refused',
    change: of('sallyport_config_reloads_total', { result: 'failed' }, step),
    fires: { SallyportConfigRefused: {} },
  },
  {
    name: 'its replicas disagree',
    fires: { SallyportReplicasDisagree: {} },
    change: () => null,
    sha256: (replica) => (replica === 'a' ? 'f'.repeat(64) : null),
  },
  {
    name: 'it is overloaded',
    change: of('sallyport_failures_total', { reason: 'overloaded' }, rising(1)),
    fires: { SallyportOverloaded: {} },
  },
  {
    name: 'an identity was made up',
    change: of('sallyport_stripped_fields_total', { kind: 'identity' }, step, 'a'),
    fires: { SallyportSpoofedIdentity: {} },
  },
  {
    name: 'nginx stands in front',
    change: of('sallyport_stripped_fields_total', { kind: 'forwarded' }, rising(6_000)),
    fires: {},
  },
  { name: 'all is well, each service with a config of its own', change: () => null, fires: {} },
];

/** The service that the rows are about. */
const service = replicated;

function differenceOf({ change, sha256 }: Row): Difference {
  const isIt = ({ job }: { readonly job: string }): boolean => job === service.job;
  return {
    values: (series, other) => (isIt(other) ? change(series, other.instance.slice(-1)) : null),
    sha256: (other) => (isIt(other) ? (sha256?.(other.instance.slice(-1)) ?? null) : null),
  };
}

function ruleTest(row: Row): RuleTest {
  return {
    interval: '1m',
    input_series: inputSeries(evaluated, differenceOf(row)),
    alert_rule_test: rules.map((rule) => {
      const labels = row.fires[rule.alert];
      return {
        eval_time: `${String(minutes - 1)}m`,
        alertname: rule.alert,
        exp_alerts: labels === undefined ? [] : [firing(rule, { ...service, ...labels })],
      };
    }),
  };
}

t.test('an alert fires once for the one service of twenty that it is about, and names it', async (t) => {
  for (const row of rows) t.equal(testRules(t, [alerts], [ruleTest(row)]), '', row.name);
  t.same(
    new Set(rows.flatMap(({ fires }) => Object.keys(fires))),
    new Set(rules.map(({ alert }) => alert)),
    'each of them does',
  );
});

/** The rules that the chart installs with a release, as text of a file of rules. */
function installed(
  t: Scope,
  release: { readonly namespace: string; readonly job: string },
  metrics: Values = {},
): string {
  const values = valuesFile(t, { config, tls, metrics: { prometheusRule: { enabled: true, ...metrics } } });
  const { code, stdout, stderr } = helm(
    t,
    'template',
    release.job,
    chartDir,
    '--namespace',
    release.namespace,
    '--values',
    values,
  );
  if (code !== 0) throw new Error(stderr);
  return stringify(one(manifestsOf(stdout), 'PrometheusRule')['spec']);
}

t.test('the rules of three releases tell of a fault of one of them once', async (t) => {
  const releases = [service, { namespace: 'team-3', job: 'service-6' }, { namespace: 'team-4', job: 'service-8' }];
  const texts = releases.map((release) => installed(t, release));
  // One of each kind: by a sum, by a single replica, by replicas together; and none.
  const some = rows.filter(({ name }) => /breaks off|away from one|disagree|all is well/.test(name));
  t.equal(some.length, 4);
  for (const row of some) t.equal(testRules(t, texts, [ruleTest(row)]), '', row.name);
  for (const row of some) {
    t.equal(testRules(t, texts.slice(1), [ruleTest({ ...row, fires: {} })]), '', `${row.name}, without its rules`);
  }
});

t.test('the chart finds a release as its values say, and the runbook where they say', async (t) => {
  const text = installed(t, service, {
    selector: 'cluster="a",pod=~"orders-.*|gate"',
    runbookBaseUrl: 'https://git.example.com/sallyport/blob/v1/',
  });
  const told = (parse(text) as Groups).groups.flatMap((group) => group.rules);
  t.same(
    told.map(({ alert }) => alert),
    rules.map(({ alert }) => alert),
  );
  for (const { alert, expr, annotations } of told) {
    t.match(expr, 'cluster="a",pod=~"orders-.*|gate"', alert);
    t.notMatch(expr, 'job=', alert);
    t.equal(
      annotations['runbook_url'],
      `https://git.example.com/sallyport/blob/v1/docs/operations.md#${alert.toLowerCase()}`,
    );
  }
  const refused = [
    ['x', 'no matcher'],
    ['a="b",', 'half a list'],
    ['a="b" # c', 'a comment'],
    ['a="b"} or vector(1', 'an expression'],
  ] as const;
  for (const [selector, name] of refused) {
    t.throws(() => installed(t, service, { selector }), { message: /selector/ }, name);
  }
  t.throws(() => installed(t, service, { runbookBaseUrl: 'javascript:alert(1)' }), { message: /runbookBaseUrl/ });
});

t.test('the dashboard is one that Grafana can lay out, by namespace and service', async (t) => {
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  t.ok(panels.every(({ gridPos: { x, w } }) => x + w <= 24));
  t.same(
    templating.list.map(({ name }) => name),
    ['datasource', 'namespace', 'service'],
  );
  for (const { title, targets } of panels) {
    for (const { expr } of targets) {
      for (const [, matchers = ''] of expr.matchAll(/(?:sallyport|process)_\w+(\{[^}]*\})?/g)) {
        t.match(matchers, /^\{namespace=~"\$namespace",job=~"\$service"[,}]/, `${title}: ${expr}`);
      }
    }
  }
});
