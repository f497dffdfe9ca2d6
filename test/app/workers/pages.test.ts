/** What the pages of several workers say while one of them dies. */
import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { mergeMetrics, noMetrics, type MetricsData } from '../../../src/adapters/metrics/merge.js';
import type { ProcessMetrics } from '../../../src/adapters/metrics/metrics.js';
import type { Readiness } from '../../../src/admin/readiness.js';
import type { Counts } from '../../../src/admin/status.js';
import type { Numbers } from '../../../src/app/workers/messages.js';
import { createSharedPages } from '../../../src/app/workers/pages.js';
import type { Pool } from '../../../src/app/workers/pool.js';
import type { WorkerProcess } from '../../../src/app/workers/worker-process.js';
import type { RouteTraffic, Traffic } from '../../../src/ports/observability.js';

const counted = 5;

const metrics: MetricsData = {
  families: [
    {
      name: 'sallyport_n_total',
      help: 'h',
      type: 'counter',
      aggregator: 'sum',
      values: [{ labels: {}, value: counted }],
    },
  ],
  histograms: [],
};

const requests: RouteTraffic['requests'] = { forwarded: counted, replayed: 0, denied: 0, failed: 0, shadow: 0 };
const route = { route: 'a', requests, denials: {}, failures: {}, shadow_denials: {}, duration: [], overhead: [] };
const noTraffic: Traffic = { duration_bounds: [], overhead_bounds: [], routes: [] };
const traffic: Traffic = { ...noTraffic, routes: [route] };

const counts: Counts = {
  requests: { forwarded: counted, replayed: 0, denied: 0, failed: 0, shadow: 0 },
  denials: {},
  failures: {},
  shadow_denials: {},
  grpc_calls: {},
  connections_ended: {},
  stripped_fields: counted,
  config_reloads: 0,
} as unknown as Counts;
const numbers: Numbers = { metrics, counts, traffic };
const readiness: Readiness = { status: 'ready', checks: [] };

/** Two workers that counted the same, of which the first dies while the second has not answered. */
function dyingPool(): { readonly pool: Pool; readonly die: () => void } {
  let die = (): void => undefined;
  const death = new Promise<void>((resolve) => {
    die = resolve;
  });
  const worker = (number: number): WorkerProcess => {
    const call = async (name: string): Promise<unknown> => {
      if (name === 'readiness') return readiness;
      if (name !== 'numbers' && name !== 'status') return [];
      if (number === 2) await death;
      return name === 'status' ? { counts } : numbers;
    };
    return workerOf(number, call);
  };
  let serving = [worker(1), worker(2)];
  let retired: ReturnType<Pool['retired']> = { metrics: noMetrics, counts: null, traffic: null };
  return {
    pool: poolOf(
      () => serving,
      () => retired,
    ),
    die: () => {
      serving = serving.slice(1);
      retired = numbers;
      die();
    },
  };
}

function workerOf(number: number, call: (name: string) => Promise<unknown>): WorkerProcess {
  return { number, call, lastNumbers: () => numbers, pid: number, servingMs: () => 0 } as unknown as WorkerProcess;
}

function poolOf(serving: Pool['serving'], retired: Pool['retired']): Pool {
  return { serving, retired, count: 2, deaths: () => 0 } as unknown as Pool;
}

function pagesOf(pool: Pool): ReturnType<typeof createSharedPages> {
  return createSharedPages({
    pool,
    metrics: {
      snapshot: () => Promise.resolve(mergeMetrics([])),
      traffic: () => noTraffic,
    } as unknown as ProcessMetrics,
    isServing: () => true,
    own: () => ({ reloads: 0 }) as unknown as ReturnType<Parameters<typeof createSharedPages>[0]['own']>,
    nowMs: Date.now,
  });
}

t.test('a scrape counts a worker that dies meanwhile once', async (t) => {
  const { pool, die } = dyingPool();
  const text = pagesOf(pool).expose();
  await setImmediate();
  die();
  t.match(await text, new RegExp(`^sallyport_n_total ${String(2 * counted)}$`, 'm'));
});

t.test('so does the console', async (t) => {
  const { pool, die } = dyingPool();
  const page = pagesOf(pool).console['/console/state']?.(new URLSearchParams(), undefined);
  await setImmediate();
  die();
  t.match(JSON.parse(String((await page)?.body)), {
    traffic: { routes: [{ route: 'a', requests: { forwarded: 2 * counted } }] },
  });
});

t.test('so does /status', async (t) => {
  const { pool, die } = dyingPool();
  const status = pagesOf(pool).status();
  await setImmediate();
  die();
  t.match((await status)?.counts, { requests: { forwarded: 2 * counted }, stripped_fields: 2 * counted });
});

t.test('of a worker that does not answer, /status counts what it said last', async (t) => {
  const answers = async (name: string): Promise<unknown> => Promise.resolve(name === 'status' ? { counts } : readiness);
  const isSilent = async (): Promise<unknown> => Promise.reject(new Error('it does not answer'));
  const serving = [workerOf(1, answers), workerOf(2, isSilent)];
  const pool = poolOf(
    () => serving,
    () => ({ metrics: noMetrics, counts: null, traffic: null }),
  );
  const status = await pagesOf(pool).status();
  t.match(status?.counts, { requests: { forwarded: 2 * counted }, stripped_fields: 2 * counted });
});
