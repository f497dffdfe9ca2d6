/** Whether a proxy at four fifths of what it can do stays as it is: memory, open files, answers. */
import { setTimeout } from 'node:timers/promises';
import { startJwksServer } from '../support/jwks-server.js';
import { hasAllHandles, openDescriptors } from '../support/linux.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { mintToken } from '../support/tokens.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { startServer, versionOf } from './child.js';
import { residentMib } from './cpu.js';
import { runLoad, runWrites, type LoadResult } from './load.js';
import { markdown } from './markdown.js';
import { writePlan, type RequestPlan } from './request-plan.js';
import { readMetrics, startSallyport, type Proxy } from './sallyport.js';
import { median } from './statistics.js';
import { mintTokenFile, openTokens } from './token-file.js';

export interface SoakSettings {
  /** Where tokens are kept for the next run. */
  readonly dir: string;
  readonly tokens: number;
  readonly seconds: number;
  /** Of each of the two runs that find out what it can do; the first warms up. */
  readonly capacityS: number;
  /** Between two looks. */
  readonly everyS: number;
  /** After the last request, the longest that idle connections are waited for. */
  readonly restS: number;
  readonly connections: number;
  readonly wrk: boolean;
  readonly onRun?: (text: string) => void;
}

export interface SoakSample {
  readonly atS: number;
  readonly memoryMib: number;
  /** Of V8's heap, what was in use. */
  readonly heapMib: number;
  readonly descriptors: number;
}

export interface MeasuredSoak {
  readonly seconds: number;
  /** Requests a second with nothing held back. */
  readonly capacity: number;
  /** What was sent, requests a second. */
  readonly asked: number;
  readonly reads: LoadResult;
  /** Reserved in Redis; `null` where there is no `redis-server`. */
  readonly writes: LoadResult | null;
  readonly samples: readonly SoakSample[];
  /** Open files before the first request of a load, and after the last. */
  readonly descriptors: { readonly before: number; readonly after: number };
}

const readOrders = {
  name: 'list-orders',
  methods: ['GET'],
  path: '/orders',
  subjects: ['checkout'],
  permissions: ['orders:read'],
};
const createOrder = {
  name: 'create-order',
  methods: ['POST'],
  path: '/orders',
  subjects: ['checkout'],
  permissions: ['orders:write'],
  idempotency: 'required',
};
/** Reserved writes a second, beside the reads. */
const writeRate = 20;
/** Of the capacity. */
const share = 0.8;
/** Compilers, caches and the heap's size settle in this share of the time. */
const warmUpShare = 0.2;
/** What memory may differ by and count as flat: the heap's size goes up and down by as much. */
const tolerance = 0.05;

export async function measureSoak(t: Scope, settings: SoakSettings): Promise<MeasuredSoak> {
  const { seconds, connections, onRun } = settings;
  const { key, tokens } = await mintTokenFile({
    dir: settings.dir,
    count: settings.tokens,
    nowS: Math.floor(Date.now() / 1000),
  });
  const opened = openTokens(tokens);
  const token = opened.at(0);
  opened.close();
  const writer = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 86_000 } });
  const receiver = (await startServer(t, 'receiver')).port;
  const jwksUrl = (await startJwksServer(t, { keys: [key] })).url;
  const redis =
    versionOf('redis-server', '--version') === null ? null : await startRedis(t, ['--appendfsync', 'everysec']);
  const proxy = await startSallyport(
    t,
    {
      upstream: { url: `http://127.0.0.1:${String(receiver)}` },
      issuers: { core: { jwks_url: jwksUrl, max_lifetime: '24h' } },
      ...(redis === null
        ? {}
        : {
            store: {
              redis: { url: `redis://127.0.0.1:${String(redis.port)}`, reserve_timeout: '5s', settle_timeout: '5s' },
            },
          }),
      shutdown: { delay: '0s', grace: '20s' },
      routes: [readOrders, ...(redis === null ? [] : [createOrder])],
      // Its log would fill a disk.
    },
    { path: '/orders', headers: { Authorization: `Bearer ${token}` } },
    { logFile: '/dev/null' },
  );
  await hasAllHandles(proxy.pid);
  const before = openDescriptors(proxy.pid);

  const reads: RequestPlan = { method: 'GET', paths: ['/orders'], tokens: [], bodyBytes: 0, tokenFile: tokens };
  const load = async (plan: RequestPlan, forS: number): Promise<readonly [LoadResult, LoadResult | null]> =>
    Promise.all([
      runLoad({ port: proxy.port, plan: writePlan(tempDir(t), plan), seconds: forS, connections, wrk: settings.wrk }),
      redis === null
        ? null
        : runWrites({ port: proxy.port, seconds: forS, connections: 4, perSecond: writeRate, tokens: [writer] }),
    ]);
  await load(reads, settings.capacityS);
  const [most] = await load(reads, settings.capacityS);
  const capacity = most.requests / most.seconds;
  const asked = Math.floor(capacity * share);
  onRun?.(`capacity ${capacity.toFixed(0)}/s, ${String(asked)}/s for ${String(seconds)} s`);

  const samples: SoakSample[] = [];
  const ended = new AbortController();
  const looking = look(proxy, settings, samples, ended.signal);
  const [readResult, writeResult] = await load({ ...reads, perSecond: asked }, seconds);
  ended.abort();
  await looking;
  const after = await settled(proxy, before, settings.restS);
  return { seconds, capacity, asked, reads: readResult, writes: writeResult, samples, descriptors: { before, after } };
}

/** What does not hold; empty where all does. */
export function faultsOf({ asked, reads, writes, samples, descriptors }: MeasuredSoak): readonly string[] {
  const errors = failedOf(reads) + failedOf(writes);
  const { growth } = memoryOf(samples);
  const rate = reads.requests / reads.seconds;
  return [
    ...(errors > 0 ? [`${String(errors)} requests failed`] : []),
    ...(rate < asked * 0.95 ? [`${rate.toFixed(0)}/s were sent instead of ${String(asked)}/s`] : []),
    ...(growth > tolerance ? [`memory grew by ${(growth * 100).toFixed(1)} %`] : []),
    ...(descriptors.after > descriptors.before
      ? [`${String(descriptors.after - descriptors.before)} files stayed open`]
      : []),
  ];
}

/** Seconds of `90s` or `10m`. */
export function secondsOf(text: string): number {
  const [, number, unit] = /^(\d+)(s|m)$/.exec(text) ?? [];
  if (number === undefined) throw new Error(`--soak takes seconds or minutes, such as 90s or 10m, not ${text}`);
  return Number(number) * (unit === 'm' ? 60 : 1);
}

function failedOf(load: LoadResult | null): number {
  return load === null ? 0 : load.refused + load.broken;
}

/** Medians of the first and the last third of what follows the warm-up. */
function memoryOf(samples: readonly SoakSample[]): {
  readonly first: number;
  readonly last: number;
  readonly growth: number;
} {
  const warm = samples.slice(Math.ceil(samples.length * warmUpShare)).map(({ memoryMib }) => memoryMib);
  const third = Math.ceil(warm.length / 3);
  const [first, last] = [median(warm.slice(0, third)), median(warm.slice(-third))];
  return { first, last, growth: first === 0 ? 0 : (last - first) / first };
}

export function soakTable(measured: MeasuredSoak): string {
  const { seconds, capacity, asked, reads, writes, samples, descriptors } = measured;
  const { first, last, growth } = memoryOf(samples);
  const faults = faultsOf(measured);
  const most = Math.max(...samples.map((sample) => sample.descriptors));
  const rows = [
    ['most that it could do', `${capacity.toFixed(0)} requests/s`],
    [
      'asked for',
      `${String(asked)}/s for ${String(seconds)} s${writes === null ? '' : `, and ${String(writeRate)} writes/s reserved in Redis`}`,
    ],
    [
      'answered',
      `${String(reads.requests)} reads and ${String(writes?.requests ?? 0)} writes; ${String(failedOf(reads) + failedOf(writes))} failed; ` +
        `99 % of the reads within ${reads.slowMs.toFixed(1)} ms`,
    ],
    [
      'memory after the warm-up, and at the end',
      `${first.toFixed(0)} MiB, ${last.toFixed(0)} MiB: ${growth < 0 ? '' : '+'}${(growth * 100).toFixed(1)} %`,
    ],
    [
      'open files before, at most, after',
      `${String(descriptors.before)}, ${String(most)}, ${String(descriptors.after)}`,
    ],
    ['so', faults.length === 0 ? 'it stays as it is' : faults.join('; ')],
  ];
  return markdown(['soak', ''], rows, 2);
}

async function look(
  proxy: Proxy,
  { everyS, onRun }: SoakSettings,
  samples: SoakSample[],
  signal: AbortSignal,
): Promise<void> {
  const startedMs = performance.now();
  while (!signal.aborted) {
    const metric = await readMetrics(proxy);
    const sample = {
      atS: (performance.now() - startedMs) / 1000,
      memoryMib: residentMib(proxy.pid),
      heapMib: metric('nodejs_heap_size_used_bytes') / 1024 ** 2,
      descriptors: openDescriptors(proxy.pid),
    };
    samples.push(sample);
    const { atS, memoryMib, heapMib, descriptors } = sample;
    onRun?.(
      `${atS.toFixed(0)} s: ${memoryMib.toFixed(0)} MiB, heap ${heapMib.toFixed(0)} MiB, ${String(descriptors)} files`,
    );
    await setTimeout(everyS * 1000, undefined, { signal }).catch(() => undefined);
  }
}

/** How many files are open once idle connections were closed, as they are in a while. */
async function settled({ pid }: Proxy, before: number, restS: number): Promise<number> {
  await until('idle connections are closed', () => openDescriptors(pid) <= before, restS * 1000).catch(() => undefined);
  return openDescriptors(pid);
}
