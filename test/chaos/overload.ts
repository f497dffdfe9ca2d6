/**
 * More requests than the upstream can take, at a proxy of little memory: what becomes of those that are let through,
 * and of the others.
 */
import { once } from 'node:events';
import { placeLoad, placeMeasured } from '../bench/affinity.js';
import { peakBytes } from '../support/linux.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';
import { goFirst, startLoad } from './load-process.js';
import { percentile } from './strangers.js';

/** As many connections to the upstream. */
export const maxConnections = 16;

export interface Load {
  readonly name: string;
  /** Requests of all callers, as a multiple of what the upstream can take. */
  readonly times: number;
  readonly seconds: number;
  readonly connections: 'fresh' | 'kept';
  /** Each caller's part of the rate; one has all of it unless given. */
  readonly shares?: readonly number[];
  readonly writes?: boolean;
}

/** What one caller saw: milliseconds of each answer. */
export interface CallerSeen {
  readonly admitted: readonly number[];
  readonly refused: readonly number[];
  readonly unanswered: readonly number[];
  /** Neither of these. */
  readonly others: Readonly<Record<string, number>>;
}

export interface LoadReport {
  readonly load: Load;
  /** Requests a second. */
  readonly rate: number;
  readonly callers: readonly CallerSeen[];
  readonly peakMiB: number;
  readonly lives: boolean;
}

const callers = ['first', 'second', 'third', 'fourth'];
const routes = [
  { name: 'read', methods: ['GET'], path: '/slow', subjects: callers, permissions: [] },
  {
    name: 'write',
    methods: ['POST'],
    path: '/write/slow',
    subjects: callers,
    permissions: [],
    idempotency: 'required',
  },
];

export interface OverloadOptions {
  /** What the upstream takes for each request, milliseconds. */
  readonly serviceMs: number;
  /** Of Node; its default unless given. */
  readonly heapMiB?: number;
}

/** Requests that the upstream can take in a second. */
export function capacityOf(serviceMs: number): number {
  return (maxConnections * 1_000) / serviceMs;
}

/** One proxy under one load after the other. */
export async function overload(
  t: Scope,
  loads: readonly Load[],
  { serviceMs, heapMiB }: OverloadOptions,
): Promise<readonly LoadReport[]> {
  const redis = await startRedis(t);
  const service = startLoad(t, 'overload-service.js', [String(serviceMs)]);
  const [port] = (await once(service.stdout, 'data')) as [string];
  const proxy = await startProxyProcess(t, {
    ...(heapMiB === undefined ? {} : { env: { NODE_OPTIONS: `--max-old-space-size=${String(heapMiB)}` } }),
    config: {
      routes,
      upstream: { url: `http://127.0.0.1:${port.trim()}`, max_connections: maxConnections },
      // A machine that does other things besides must not look like a proxy that refuses.
      store: { redis: { url: `redis://127.0.0.1:${String(redis.port)}`, reserve_timeout: '5s' } },
    },
  });
  placeMeasured(proxy.process.pid);
  for (const pid of [process.pid, redis.pid()]) placeLoad(pid);
  // The store too: kept waiting by what puts on the load, it would look like a proxy that is slow.
  for (const pid of [proxy.process.pid, process.pid, service.pid ?? 0, redis.pid()]) goFirst(pid);
  const reports: LoadReport[] = [];
  for (const load of [{ name: 'first', times: 0.5, seconds: 2, connections: 'kept' } as const, ...loads]) {
    reports.push(await measure(t, proxy, load, capacityOf(serviceMs) * load.times));
  }
  return reports.slice(1);
}

async function measure(t: Scope, proxy: ProxyProcess, load: Load, rate: number): Promise<LoadReport> {
  const shares = load.shares ?? [1];
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const bearers = shares.map((share, i) => `${proxy.token({ sub: callers[i] ?? '', exp })}:${String(share)}`).join(',');
  const target = load.writes === true ? '/write/slow' : '/slow';
  const child = startLoad(t, 'overload-caller.js', [
    String(proxy.port),
    bearers,
    String(rate),
    String(load.seconds),
    load.connections,
    target,
  ]);
  goFirst(child.pid ?? 0);
  let text = '';
  child.stdout.on('data', (chunk: string) => (text += chunk));
  await once(child, 'close');
  const seen = JSON.parse(text) as readonly Readonly<Record<string, readonly number[]>>[];
  const lives = proxy.process.isRunning();
  return {
    load,
    rate,
    callers: seen.map(seenBy),
    peakMiB: lives ? peakBytes(proxy.process.pid) / 2 ** 20 : NaN,
    lives,
  };
}

function seenBy(took: Readonly<Record<string, readonly number[]>>): CallerSeen {
  const { 200: admitted = [], 503: refused = [], 429: tooMany = [], 0: none = [], ...others } = took;
  return {
    admitted,
    refused: [...refused, ...tooMany],
    unanswered: none,
    others: Object.fromEntries(Object.entries(others).map(([status, { length }]) => [status, length])),
  };
}

/** The rows of a table, one for each load. */
export function rowsOf(reports: readonly LoadReport[], heap: string): readonly string[] {
  return reports.flatMap(({ load, rate, callers: seen, peakMiB, lives }) =>
    seen.map(({ admitted, refused, unanswered, others }, i) => {
      const own = `${String(Math.round(rate * (load.shares?.[i] ?? 1)))}/s`;
      const who = seen.length === 1 ? `, ${own}` : `, caller ${String(i + 1)} with ${own}`;
      const cells = [
        `${load.name}${who}`,
        heap,
        `${String(Math.round(admitted.length / load.seconds))}/s`,
        ms(percentile(admitted, 0.5)),
        ms(percentile(admitted, 0.99)),
        String(refused.length),
        ms(percentile(refused, 0.5)),
        ms(percentile(refused, 0.99)),
        String(unanswered.length),
        lives ? `${String(Math.round(peakMiB))} MiB` : 'ended',
      ];
      const rest = Object.entries(others)
        .map(([status, count]) => ` (${status}: ${String(count)})`)
        .join('');
      return `| ${cells.join(' | ')}${rest} |`;
    }),
  );
}

function ms(value: number): string {
  return Number.isNaN(value) ? '–' : `${String(Math.round(value))} ms`;
}
