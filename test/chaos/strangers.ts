/** One attack after the other, each as hard as it can, and an honest caller beside it. */
import { imageHeapOption } from '../bench/sallyport.js';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { request } from '../support/raw-client.js';
import { until } from '../support/until.js';
import type { ProxyProcess } from '../support/proxy-process.js';
import {
  deaf,
  dripped,
  flatOut,
  frames,
  hungUp,
  idle,
  pipelined,
  pipelinedPages,
  type Attack,
  type Target,
} from './attacks.js';

/** As Node takes it by itself in the memory that the chart allows. */
export const containerHeap = { NODE_OPTIONS: '--max-old-space-size=320' };

/** As the image starts Node.js, in the same memory. */
export const asInTheImage = { NODE_OPTIONS: `${containerHeap.NODE_OPTIONS} ${imageHeapOption}` };

/** Each as hard as it can, by itself. */
export const attacks: readonly Attack[] = [
  pipelined({ count: 300, perSecond: flatOut }, 'stranger'),
  pipelinedPages({ count: 64, perSecond: flatOut }, 'probes', '/metrics'),
  pipelinedPages({ count: 64, perSecond: flatOut }, 'probes', '/readyz'),
  pipelinedPages({ count: 64, perSecond: flatOut }, 'admin', '/status'),
  idle({ count: 3_500, perSecond: flatOut }, 'stranger'),
  dripped('reserved', 'caller', 60, { bytes: 20, everyMs: 1 }),
  dripped('plain', 'caller', 60, { bytes: 20, everyMs: 1 }),
  deaf({ count: 64, perSecond: flatOut }, 'caller'),
  hungUp('caller', { connections: 50, everyMs: 30 }),
  frames({ count: 200, perSecond: flatOut }, 'caller', { frames: 10, everyMs: 2 }),
];

export const routes = [
  { name: 'orders', methods: ['GET'], path: '/orders', subjects: ['checkout', 'honest'], permissions: [] },
  { name: 'slow', methods: ['GET'], path: '/slow', subjects: ['checkout'], permissions: [] },
  { name: 'drip', methods: ['GET'], path: '/drip', subjects: ['checkout'], permissions: [] },
  { name: 'live', methods: ['GET'], path: '/live', subjects: ['checkout'], permissions: [], websocket: true },
  {
    name: 'reserved',
    methods: ['POST'],
    path: '/reserved',
    subjects: ['checkout'],
    permissions: [],
    idempotency: 'required',
  },
  { name: 'plain', methods: ['POST'], path: '/plain', subjects: ['checkout'], permissions: [], idempotency: 'none' },
];

/** What an honest caller saw: how long its requests took, and what became of those without a 200. */
export interface Honest {
  readonly took: readonly number[];
  readonly failed: readonly string[];
}

/** Asks one request after the other, each on a connection of its own, until told. */
export async function beHonest(proxy: ProxyProcess, ended: () => boolean): Promise<Honest> {
  const took: number[] = [];
  const failed: string[] = [];
  const headers = proxy.authorization({ sub: 'honest' });
  while (!ended()) {
    const started = performance.now();
    const outcome = await request(proxy.port, { path: '/orders', headers }).then(
      ({ status }) => String(status),
      (error: unknown) => String(error),
    );
    took.push(performance.now() - started);
    if (outcome !== '200') failed.push(outcome);
    await sleep(5);
  }
  return { took, failed };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

export function residentMiB({ process: { pid } }: ProxyProcess): number {
  return Math.round(
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1] ?? 0) / 1024,
  );
}

/**
 * Runs an attack, or several at once, in a thread of its own beside an honest caller; what was taken is given back
 * afterwards.
 */
export async function withstand(
  proxy: ProxyProcess,
  chosen: readonly Attack[],
  ms: number,
): Promise<Honest & { readonly peakMiB: number }> {
  const target: Target = {
    port: proxy.port,
    probes: await proxy.process.port('probes'),
    admin: proxy.adminPort,
    bearer: proxy.authorization()['Authorization'] ?? '',
  };
  const thread = new Worker(new URL('./strangers-thread.js', import.meta.url), {
    workerData: { target, ms, names: chosen.map(({ name }) => name) },
  });
  const over = once(thread, 'exit');
  let isOver = false;
  void over.then(() => {
    isOver = true;
  });
  let peakMiB = 0;
  const watch = setInterval(() => {
    if (proxy.process.isRunning()) peakMiB = Math.max(peakMiB, residentMiB(proxy));
    else void thread.terminate();
  }, 100);
  const honest = await beHonest(proxy, () => isOver);
  clearInterval(watch);
  if (proxy.process.isRunning()) {
    await until(
      'every place is given back',
      async () => (await proxy.metric('sallyport_requests_in_flight')) === 0,
      60_000,
    );
    await until(
      'every connection is closed',
      async () => (await proxy.metric('sallyport_connections_open')) === 0,
      120_000,
    );
    await until(
      'every WebSocket is closed',
      async () => (await proxy.metric('sallyport_websockets_open')) === 0,
      60_000,
    );
  }
  return { ...honest, peakMiB };
}
