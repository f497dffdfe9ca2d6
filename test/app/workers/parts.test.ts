/** What a worker has of shared bounds, how many there are, and how their numbers become one. */
import t from 'tap';
import {
  mergeMetrics,
  mergedText,
  noMetrics,
  retireMetrics,
  type MetricsData,
} from '../../../src/adapters/metrics/merge.js';
import { mergeReadiness } from '../../../src/app/workers/merge-status.js';
import { createSharedCounts } from '../../../src/app/workers/limit-counts.js';
import { findWithoutPart, shareConfig } from '../../../src/app/workers/share-config.js';
import { countWorkers, usableCores } from '../../../src/app/workers/count.js';
import type { Readiness } from '../../../src/admin/readiness.js';
import type { CompiledConfig } from '../../../src/config/types.js';
import { inspect } from '../../config/inspection.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';

function read(overrides: ConfigTree): ReturnType<typeof inspect> {
  return inspect(baseConfig(overrides));
}

function compiled(overrides: ConfigTree): CompiledConfig {
  const { config, problems } = read(overrides);
  if (config === null) throw new Error(problems.map(({ message }) => message).join());
  return config;
}

/** A calling side with one target. */
function billing(max_connections: number): ConfigTree {
  const target = {
    name: 'billing',
    prefix: '/billing',
    url: 'http://127.0.0.1:9',
    allow: [{ methods: ['GET'], path: '/**' }],
  };
  return { listen: { port: 4180 }, targets: [{ ...target, max_connections }] };
}

t.test('parts of each bound add up to it', (t) => {
  const config = compiled({
    workers: 3,
    listen: { max_in_flight: 10, max_websockets: 8 },
    upstream: { max_connections: 7 },
    egress: billing(4),
    token_cache: '64KiB',
    log: { refusals_per_second: 2 },
  });
  const shares = [1, 2, 3].map((number) => shareConfig(config, { number, count: 3 }));
  t.same(
    shares.map(({ listen }) => [listen.maxInFlight, listen.maxWebSockets]),
    Array.from({ length: 3 }, () => [10, 8]),
    'places of all are counted for all',
  );
  t.same(
    shares.map(({ egress }) => egress?.targets[0]?.upstream.maxConnections),
    [2, 1, 1],
  );
  t.same(
    shares.map(({ upstream }) => upstream.maxConnections),
    [3, 2, 2],
  );
  t.same(
    shares.map(({ log }) => log.refusalsPerSecond),
    [1, 1, 0],
  );
  t.equal(
    shares.reduce((sum, { tokenCacheBytes }) => sum + (tokenCacheBytes ?? 0), 0),
    64 * 1024,
  );
  t.equal(shareConfig(compiled({ token_cache: null }), { number: 1, count: 2 }).tokenCacheBytes, null);
  t.end();
});

t.test('what each process would have for itself, and bounds that leave a worker nothing, are refused', (t) => {
  const problemsOf = (overrides: ConfigTree): readonly string[] =>
    read(overrides)
      .problems.filter(({ severity }) => severity === 'error')
      .map(({ message }) => message);
  for (const workers of [2, 'auto']) {
    t.match(problemsOf({ workers, store: { memory: {} } }), [/^workers is (2|auto) beside store\.memory/]);
  }
  t.same(problemsOf({ workers: 1, store: { memory: {} } }), []);
  t.same(problemsOf({ workers: 2 }), []);
  t.same(problemsOf({ workers: 'auto' }), []);
  t.same(problemsOf({ workers: 3, listen: { max_in_flight: 1, max_websockets: 1 } }), [], 'each may have the place');
  t.match(problemsOf({ workers: 3, upstream: { max_connections: 2 } }), [/^upstream\.max_connections is 2/]);
  t.same(problemsOf({ workers: 3, upstream: { max_connections: 3 } }), []);
  const targetsWith = (max_connections: number): ConfigTree => ({
    workers: 3,
    egress: billing(max_connections),
  });
  t.match(problemsOf(targetsWith(2)), [/^egress\.targets\[0\]\.max_connections is 2, which leaves nothing/]);
  t.same(problemsOf(targetsWith(3)), []);
  for (const workers of [0, 65, 1.5, 'all']) t.equal(problemsOf({ workers }).length, 1, String(workers));
  t.end();
});

t.test('auto has no more workers than each can have a connection of its own', (t) => {
  for (const overrides of [{ upstream: { max_connections: 1 } }, { egress: billing(1) }]) {
    t.equal(countWorkers(compiled({ workers: 'auto', ...overrides })), 1);
  }
  const config = compiled({ workers: 'auto', upstream: { max_connections: 3 } });
  t.equal(findWithoutPart(config, 3), null);
  t.match(findWithoutPart(config, 4), /^upstream\.max_connections is 3, which leaves nothing for some of 4 workers$/);
  t.end();
});

t.test('auto goes by cores, and by the time of them that a container may use', (t) => {
  for (const [cores, quota, expected] of [
    [4, null, 4],
    [4, 'max 100000\n', 4],
    [4, '200000 100000\n', 2],
    [4, '150000 100000\n', 1],
    [4, '50000 100000\n', 1],
    [2, '800000 100000\n', 2],
    [2, 'nonsense', 2],
  ] as const) {
    t.equal(usableCores(cores, quota), expected, `${String(cores)} ${String(quota)}`);
  }
  t.end();
});

const gauge = (name: string, aggregator: string, value: number): MetricsData['families'][number] => ({
  name,
  help: 'h',
  type: 'gauge',
  aggregator,
  values: [{ labels: { route: 'a' }, value }],
});

function dataOf(count: number, route = 'a'): MetricsData {
  return {
    families: [
      {
        name: 'sallyport_n_total',
        help: 'h',
        type: 'counter',
        aggregator: 'sum',
        values: [{ labels: { route }, value: count }],
      },
      gauge('sallyport_least', 'min', count),
      gauge('sallyport_most', 'max', count),
      gauge('sallyport_alike', 'first', count),
      gauge('process_own', 'sum', count),
    ],
    histograms: [
      {
        name: 'sallyport_h',
        help: 'h',
        label: 'route',
        series: [[route, { bounds: [1], cumulative: [count, count + 1], sum: count / 2, examples: [] }]],
      },
    ],
  };
}

t.test(
  'totals and histograms are added up, others by what they say, and those of a process stay its own',
  async (t) => {
    const text = await mergedText(
      mergeMetrics([
        { worker: '1', data: dataOf(3) },
        { worker: '2', data: dataOf(5) },
      ]),
    );
    for (const line of [
      'sallyport_n_total{route="a"} 8',
      'sallyport_least{route="a"} 3',
      'sallyport_most{route="a"} 5',
      'sallyport_alike{route="a"} 3',
      'process_own{route="a",worker="1"} 3',
      'process_own{route="a",worker="2"} 5',
      'sallyport_h_bucket{route="a",le="1"} 8',
      'sallyport_h_bucket{route="a",le="+Inf"} 10',
      'sallyport_h_sum{route="a"} 4',
      'sallyport_h_count{route="a"} 10',
    ]) {
      t.ok(text.split('\n').includes(line), line);
    }
  },
);

t.test('of a worker that is gone its totals stay, but not those of a route that is gone', (t) => {
  const isKept = ({ route }: Readonly<Partial<Record<string, string | number>>>): boolean => route === 'a';
  const once = retireMetrics(noMetrics, dataOf(3), isKept);
  const twice = retireMetrics(once, dataOf(4, 'gone'), isKept);
  t.same(
    twice.families.map(({ name, values }) => [name, values.map(({ value }) => value)]),
    [['sallyport_n_total', [3]]],
  );
  t.same(
    twice.histograms[0]?.series.map(([route]) => route),
    ['a'],
  );
  t.end();
});

t.test('a proxy is ready while one worker serves, and whole when all do', (t) => {
  const answer = (status: Readiness['status'], keys: 'ok' | 'failed'): Readiness => ({
    status,
    checks: [{ name: 'keys', status: keys }],
  });
  const [good, bad] = [answer('ready', 'ok'), answer('unavailable', 'failed')];
  for (const [answers, isServing, expected] of [
    [[good, good], true, 'ready'],
    [[good, bad], true, 'degraded'],
    [[good], true, 'degraded'],
    [[bad, bad], true, 'unavailable'],
    [[], true, 'unavailable'],
    [[good, good], false, 'unavailable'],
  ] as const) {
    t.equal(mergeReadiness(answers, 2, isServing).status, expected);
  }
  t.same(mergeReadiness([good, bad], 2, true).checks, [
    { name: 'keys', status: 'failed' },
    { name: 'workers', status: 'ok' },
  ]);
  t.end();
});

t.test('places of a worker that ends are given back', (t) => {
  const counts = createSharedCounts();
  const [one, other] = [counts.ofWorker(), counts.ofWorker()];
  const enter = (worker: typeof one, id: number): number =>
    worker.count({ kind: 'count', asks: [{ id, name: 'caller', max: 2 }], left: [] }).answers[0]?.[1] ?? -1;
  t.same([enter(one, 1), enter(other, 1), enter(other, 2)], [0, 0, 1]);
  one.forget();
  t.same([enter(other, 3), enter(other, 4)], [0, 1]);
  other.count({ kind: 'count', asks: [], left: ['caller', 'caller'] });
  t.same([enter(other, 5), enter(other, 6), enter(other, 7)], [0, 0, 1]);
  t.end();
});
