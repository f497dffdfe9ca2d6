/**
 * Every attack at once, from strangers and from one caller, on a proxy in the memory of the chart, and honest callers
 * beside it.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { placeLoad, placeMeasured } from '../bench/affinity.js';
import { openDescriptors, peakBytes, residentBytes } from '../support/linux.js';
import { startRedis } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import type { Claims } from '../support/tokens.js';
import { until } from '../support/until.js';
import { seriesValue, startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';
import { goFirst, startAttackedService, startLoad } from './load-process.js';
import { asInTheImage, percentile } from './strangers.js';

const honestSubjects = ['honest-1', 'honest-2', 'honest-3', 'honest-4'];
const attacker = 'checkout';

/** Another address than that of the attackers. */
const honestAddress = '127.0.0.2';

const own = { permissions: [], subjects: [attacker] };
const routes = [
  {
    name: 'orders',
    methods: ['GET'],
    path: ['/orders', '/orders/{id}'],
    subjects: [...honestSubjects, attacker],
    permissions: [],
  },
  {
    name: 'write',
    methods: ['POST'],
    path: '/orders/{id}',
    subjects: honestSubjects,
    permissions: [],
    idempotency: 'required',
  },
  ...['slow', 'drip', 'large', 'heads', 'live'].flatMap((kind) => [
    { name: kind, methods: ['GET'], path: `/${kind}`, ...own, ...(kind === 'live' ? { websocket: true } : {}) },
    {
      name: `public-${kind}`,
      methods: ['GET'],
      path: `/public/${kind}`,
      access: 'public',
      ...(kind === 'live' ? { websocket: true } : {}),
    },
  ]),
  { name: 'reserved', methods: ['POST'], path: '/reserved', ...own, idempotency: 'required' },
  { name: 'plain', methods: ['POST'], path: '/plain', ...own, idempotency: 'none' },
  { name: 'public-plain', methods: ['POST'], path: '/public/plain', access: 'public', idempotency: 'none' },
];

/** Tokens that outlive the run. */
function claimsOf(sub: string): Claims {
  return { sub, exp: Math.floor(Date.now() / 1_000) + 3_600 };
}

/** What honest callers saw in one part of the run. */
export interface Seen {
  readonly reads: number[];
  readonly writes: number[];
  readonly failed: string[];
}

export interface Report {
  readonly rest: Seen;
  readonly attacked: Seen;
  readonly after: Seen;
  readonly lives: boolean;
  readonly peakMiB: number;
  /** Open files at most, most of them connections. */
  readonly peakDescriptors: number;
  /** What it held before and afterwards. */
  readonly held: readonly Held[];
  readonly strain: { readonly rest: Strain; readonly attacked: Strain };
  /** Answers of `/readyz`, and how often each came. */
  readonly readiness: ReadonlyMap<string, number>;
  /** Series that tell of the attack, with what they came to. */
  readonly told: readonly string[];
  /** What the attackers sent. */
  readonly sent: string;
  readonly output: string;
}

export interface Onslaught {
  readonly seconds: number;
  /** How long what honest callers see is measured before and after. */
  readonly restSeconds: number;
  /** Only attacks whose name has this in it; all of them unless given. */
  readonly only?: string;
  /** No attacks whose name has one of these in it; parts of names, separated by `|`. */
  readonly without?: string;
}

export async function withstandAll(
  t: Scope,
  { seconds, restSeconds, only = '', without = '' }: Onslaught,
): Promise<Report> {
  const redis = await startRedis(t);
  const service = await startAttackedService(t, 1, 10);
  // A machine that does other things besides must not look like a proxy that refuses.
  const store = { redis: { url: `redis://127.0.0.1:${String(redis.port)}`, reserve_timeout: '5s' } };
  const proxy = await startProxyProcess(t, {
    env: asInTheImage,
    config: { routes, upstream: { url: service.url }, store, probes: { host: '127.0.0.1', port: 0 } },
  });
  placeMeasured(proxy.process.pid);
  placeLoad(process.pid);
  for (const pid of [proxy.process.pid, process.pid, service.pid]) goFirst(pid);
  const watched: Watched = { readiness: new Map(), peakDescriptors: 0 };
  let isOver = false;
  const probing = watch(proxy, watched, () => isOver);

  // Compiles what is measured.
  await beHonest(proxy, Math.min(5, restSeconds));
  const [rest, restStrain] = await withStrain(proxy, async () => beHonest(proxy, restSeconds));
  const held = [await holding(proxy)];
  const bearer = proxy.authorization(claimsOf(attacker))['Authorization'] ?? '';
  const ports = [proxy.port, await proxy.process.port('probes'), proxy.adminPort].join(',');
  const attackers = startLoad(t, 'onslaught-attackers.js', [ports, bearer, String(seconds), only, without]);
  let sent = '';
  attackers.stdout.on('data', (text: string) => (sent += text));
  const ended = once(attackers, 'close');
  const [attacked, strain] = await withStrain(proxy, async () => beHonest(proxy, seconds));
  const lives = proxy.process.isRunning();
  const peakMiB = lives ? mebibytes(peakBytes(proxy.process.pid)) : NaN;
  await ended;
  if (lives) {
    await givenBack(proxy);
    held.push(await holding(proxy));
  }
  const after = await beHonest(proxy, lives ? restSeconds : 0);
  isOver = true;
  await probing;
  return {
    rest,
    attacked,
    after,
    lives,
    peakMiB,
    peakDescriptors: watched.peakDescriptors,
    readiness: watched.readiness,
    held,
    strain: { rest: restStrain, attacked: strain },
    told: lives ? await told(proxy) : [],
    sent: sent.trim(),
    output: proxy.process.output().slice(-2_000),
  };
}

/** Each honest caller reads on a connection that it keeps and on a new one, and writes, again and again. */
async function beHonest(proxy: ProxyProcess, seconds: number): Promise<Seen> {
  const seen: Seen = { reads: [], writes: [], failed: [] };
  const endsAt = performance.now() + seconds * 1_000;
  await Promise.all(
    honestSubjects.map(async (subject) => {
      const headers = proxy.authorization(claimsOf(subject));
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      while (performance.now() < endsAt && proxy.process.isRunning()) {
        const id = randomUUID();
        await timed(seen.reads, seen.failed, { proxy, subject, headers, method: 'GET', id, agent });
        await timed(seen.reads, seen.failed, { proxy, subject, headers, method: 'GET', id, agent: null });
        await timed(seen.writes, seen.failed, {
          proxy,
          subject,
          headers: { ...headers, 'Idempotency-Key': id },
          method: 'POST',
          id,
          agent,
        });
        await sleep(20);
      }
      agent.destroy();
    }),
  );
  return seen;
}

interface HonestRequest {
  readonly proxy: ProxyProcess;
  readonly subject: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly method: 'GET' | 'POST';
  readonly id: string;
  readonly agent: Agent | null;
}

/** The answer has to be its own, and of the first run. */
async function timed(
  took: number[],
  failed: string[],
  { proxy, subject, headers, method, id, agent }: HonestRequest,
): Promise<void> {
  const started = performance.now();
  const outcome = await new Promise<string>((resolve) => {
    const body = method === 'POST' ? '{"amount":1}' : '';
    const options = {
      host: '127.0.0.1',
      port: proxy.port,
      localAddress: honestAddress,
      path: `/orders/${id}`,
      method,
      agent: agent ?? false,
      headers: { ...headers, 'Content-Length': body.length },
    };
    const request = httpRequest(options, (res) => {
      let text = '';
      res
        .setEncoding('utf8')
        .on('data', (chunk: string) => (text += chunk))
        .on('error', (error) => resolve(String(error)))
        .on('end', () => {
          const isOwn = text === `${method} /orders/${id} 1` && res.headers['x-subject'] === subject;
          resolve(res.statusCode === 200 && isOwn ? 'ok' : `${String(res.statusCode)} ${text.slice(0, 200)}`);
        });
    });
    request.on('error', (error) => resolve(String(error))).end(body);
  });
  took.push(performance.now() - started);
  if (outcome !== 'ok') failed.push(`${method}: ${outcome}`);
}

interface Watched {
  readonly readiness: Map<string, number>;
  peakDescriptors: number;
}

/** Looks four times a second. */
async function watch(proxy: ProxyProcess, watched: Watched, isOver: () => boolean): Promise<void> {
  const { readiness } = watched;
  while (!isOver() && proxy.process.isRunning()) {
    watched.peakDescriptors = Math.max(watched.peakDescriptors, openDescriptors(proxy.process.pid));
    const answered = await proxy.admin('/readyz').then(
      ({ status }) => String(status),
      (error: unknown) => String(error),
    );
    readiness.set(answered, (readiness.get(answered) ?? 0) + 1);
    await sleep(250);
  }
}

/** What a task took of the proxy meanwhile. */
interface Strain {
  /** Share of one CPU. */
  readonly cpu: number;
  /** How late its event loop was, at most in 99 of 100 turns, and at most in all; milliseconds. */
  readonly lagMs: readonly [p99: number, max: number];
}

async function withStrain<T>(proxy: ProxyProcess, task: () => Promise<T>): Promise<readonly [T, Strain]> {
  // Each look at the lag begins it anew.
  await proxy.metric('nodejs_eventloop_lag_max_seconds');
  const [cpuBefore, before] = [cpuSeconds(proxy), performance.now()];
  const result = await task();
  const cpu = ((cpuSeconds(proxy) - cpuBefore) * 1_000) / (performance.now() - before);
  if (!proxy.process.isRunning()) return [result, { cpu, lagMs: [NaN, NaN] }];
  const { text } = await proxy.admin('/metrics');
  const [p99 = NaN, max = NaN] = ['p99', 'max'].map(
    (name) => seriesValue(text, `nodejs_eventloop_lag_${name}_seconds`) * 1_000,
  );
  return [result, { cpu, lagMs: [p99, max] }];
}

/** User and system time, in the kernel's hundredths of a second: fields 14 and 15 of `stat` (proc_pid_stat(5)). */
function cpuSeconds({ process: { pid, isRunning } }: ProxyProcess): number {
  if (!isRunning()) return NaN;
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

interface Held {
  readonly residentMiB: number;
  readonly heapMiB: number;
  readonly descriptors: number;
}

async function holding(proxy: ProxyProcess): Promise<Held> {
  const { pid } = proxy.process;
  const heapMiB = mebibytes(await proxy.metric('nodejs_heap_size_used_bytes'));
  return { residentMiB: mebibytes(residentBytes(pid)), heapMiB, descriptors: openDescriptors(pid) };
}

/** Waits until nothing of the attackers is left. */
async function givenBack(proxy: ProxyProcess): Promise<void> {
  for (const gauge of ['sallyport_requests_in_flight', 'sallyport_websockets_open', 'sallyport_connections_open']) {
    await until(`${gauge} is 0`, async () => (await proxy.metric(gauge)) === 0, 180_000);
  }
}

const telling =
  /^sallyport_(connections_ended_total|denials_total|failures_total|websocket_closes_total|duplicate_dispatches_total)\{?/;

async function told(proxy: ProxyProcess): Promise<readonly string[]> {
  const { text } = await proxy.admin('/metrics');
  return text.split('\n').filter((line) => telling.test(line) && !line.endsWith(' 0'));
}

/** What is said of a run, line by line. */
export function linesOf(report: Report): readonly string[] {
  const part = (name: string, { reads, writes, failed }: Seen): string =>
    `${name}: reads ${shown(reads)}; writes ${shown(writes)}; failed ${String(failed.length)}`;
  return [
    part('at rest', report.rest),
    part('attacked', report.attacked),
    part('after', report.after),
    `p99 attacked / at rest: reads ${times(report, 'reads').toFixed(1)}, writes ${times(report, 'writes').toFixed(1)}`,
    `at most ${String(report.peakMiB)} MiB resident; before and after: ` +
      report.held
        .map(
          ({ residentMiB, heapMiB, descriptors }) =>
            `${String(residentMiB)} MiB, heap ${String(heapMiB)} MiB, ${String(descriptors)} open files`,
        )
        .join('; '),
    `the proxy at rest: ${strained(report.strain.rest)}; attacked: ${strained(report.strain.attacked)}`,
    `readyz: ${[...report.readiness].map(([answered, count]) => `${answered} × ${String(count)}`).join(', ')}`,
    `the attackers sent: ${report.sent}`,
    ...report.told,
    ...[...new Set(report.attacked.failed)].slice(0, 20),
  ];
}

/** The head of a table of attacks, each alone. */
export const tableHead = [
  '| attack | most memory | CPU | open files | 99 of 100 reads of others | of writes | failed |',
  '| --- | ---: | ---: | ---: | ---: | ---: | ---: |',
];

/** Its row. */
export function rowOf(name: string, { rest, attacked, peakMiB, peakDescriptors, strain }: Report): string {
  const longer = (kind: 'reads' | 'writes'): string =>
    [rest, attacked].map((seen) => `${percentile(seen[kind], 0.99).toFixed(0)} ms`).join(' → ');
  const cpu = [strain.rest, strain.attacked].map((share) => share.cpu.toFixed(2)).join(' → ');
  const failed = `${String(attacked.failed.length)} of ${String(attacked.reads.length + attacked.writes.length)}`;
  const cells = [
    name,
    `${String(peakMiB)} MiB`,
    cpu,
    String(peakDescriptors),
    longer('reads'),
    longer('writes'),
    failed,
  ];
  return `| ${cells.join(' | ')} |`;
}

function strained({ cpu, lagMs: [p99, max] }: Strain): string {
  return `${cpu.toFixed(2)} of a CPU, event loop late by ${p99.toFixed(0)} ms (p99), ${max.toFixed(0)} ms (max)`;
}

/** How many times longer one request in a hundred took under attack than at rest. */
export function times({ rest, attacked }: Report, kind: 'reads' | 'writes'): number {
  return percentile(attacked[kind], 0.99) / percentile(rest[kind], 0.99);
}

function shown(values: readonly number[]): string {
  const [p50, p90, p99, most] = [0.5, 0.9, 0.99, 1].map((share) => percentile(values, share).toFixed(1));
  return `p50 ${p50 ?? ''} ms, p90 ${p90 ?? ''} ms, p99 ${p99 ?? ''} ms, at most ${most ?? ''} ms, of ${String(values.length)}`;
}

function mebibytes(bytes: number): number {
  return Math.round(bytes / 1024 / 1024);
}
