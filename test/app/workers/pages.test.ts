/** What the pages of several workers say while one of them dies. */
import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { mergeMetrics, noMetrics, type MetricsData } from '../../../src/adapters/metrics/merge.js';
import type { ProcessMetrics } from '../../../src/adapters/metrics/metrics.js';
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

/** Two workers that counted the same, of which the first dies while the second has not answered. */
function dyingPool(): { readonly pool: Pool; readonly die: () => void } {
  const numbers = { metrics, counts: {}, traffic } as unknown as Numbers;
  let die = (): void => undefined;
  const death = new Promise<void>((resolve) => {
    die = resolve;
  });
  const worker = (number: number): WorkerProcess => {
    const call = async (name: string): Promise<unknown> => {
      if (name !== 'numbers') return [];
      if (number === 2) await death;
      return numbers;
    };
    return { number, call, lastNumbers: () => numbers } as unknown as WorkerProcess;
  };
  let serving = [worker(1), worker(2)];
  let retired: ReturnType<Pool['retired']> = { metrics: noMetrics, counts: null, traffic: null };
  return {
    pool: { serving: () => serving, retired: () => retired } as unknown as Pool,
    die: () => {
      serving = serving.slice(1);
      retired = { metrics, counts: null, traffic };
      die();
    },
  };
}

function pagesOf(pool: Pool): ReturnType<typeof createSharedPages> {
  return createSharedPages({
    pool,
    metrics: {
      snapshot: () => Promise.resolve(mergeMetrics([])),
      traffic: () => noTraffic,
    } as unknown as ProcessMetrics,
    isServing: () => true,
    own: () => {
      throw new Error('not asked here');
    },
    nowMs: Date.now,
    monotonicMs: () => performance.now(),
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
