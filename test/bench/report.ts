import { cpus, release } from 'node:os';
import { keepsApart } from './affinity.js';
import { floodTable, timedRate, type MeasuredFlood } from './flood.js';
import type { MeasuredLatency } from './latency.js';
import { markdown } from './markdown.js';
import type { MeasuredWorkload } from './measure-workloads.js';
import type { Measured } from './measure.js';
import { reservedTable, type MeasuredWrite } from './reserved.js';
import { restS, startTable, type MeasuredStart } from './startup.js';
import { median } from './statistics.js';

/** What the figures depend on. */
export interface Conditions {
  readonly command: string;
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly load: string;
  /** Programs beside Node.js, as they name themselves; `null` where one is not installed. */
  readonly programs: Readonly<Record<string, string | null>>;
  /** What else the machine was doing: its load average before the first run. */
  readonly otherLoad: number;
}

/** All that `--all` measures. */
export interface Results {
  readonly measured: readonly Measured[];
  readonly workloads: readonly MeasuredWorkload[];
  readonly latencies: readonly MeasuredLatency[];
  readonly starts: readonly MeasuredStart[];
  /** `null` where there is no `redis-server`. */
  readonly writes: readonly MeasuredWrite[] | null;
  readonly floods: readonly MeasuredFlood[];
}

/** The contenders that the others are compared with, where they are here. */
const references = [
  '@fastify/http-proxy',
  'Sallyport, before',
  'HAProxy, jwt_verify',
  'Apache, mod_auth_openidc',
] as const;

/** The result as a Markdown table. Times a reference are those in the same round, and of them the median. */
export function tableOf(measured: readonly Measured[]): string {
  const bases = measured.filter(({ name }) => references.some((reference) => reference === name));
  const head = [
    'proxy',
    'for each request',
    'CPU, µs',
    ...bases.map(({ name }) => `× ${name}`),
    'requests/s',
    'median, ms',
    '99 %, ms',
    'memory, MiB',
  ];
  const rows = measured.map(({ name, work, cpuUs, cpuUsOfRounds, requestsPerS, medianMs, slowMs, memoryMib }) => [
    name,
    work,
    cpuUs.toFixed(1),
    ...bases.map((base) => median(cpuUsOfRounds.map((us, round) => us / (base.cpuUsOfRounds[round] ?? 0))).toFixed(2)),
    requestsPerS.toFixed(0),
    medianMs.toFixed(2),
    slowMs.toFixed(2),
    memoryMib.toFixed(0),
  ]);
  return markdown(head, rows, 2);
}

/** The workloads as a Markdown table, one row for each that took part. */
export function workloadTable(measured: readonly MeasuredWorkload[]): string {
  const head = ['workload', 'proxy', 'CPU, µs', 'times', 'for a MiB, µs', 'requests/s', '99 %, ms', 'memory, MiB'];
  const rows = measured.flatMap(({ title, entrants }) =>
    entrants.map(({ name, cpuUs, ratio, cpuUsPerMib, requestsPerS, slowMs, memoryMib }, index) => [
      index === 0 ? title : '',
      name,
      cpuUs.toFixed(1),
      ratio?.toFixed(2) ?? '',
      cpuUsPerMib?.toFixed(0) ?? '',
      requestsPerS.toFixed(0),
      slowMs.toFixed(2),
      memoryMib.toFixed(0),
    ]),
  );
  return markdown(head, rows, 2);
}

export function latencyTable(latencies: readonly MeasuredLatency[]): string {
  const rows = latencies.map(({ rate, name, p50Ms, p99Ms, p999Ms }) => [
    name,
    String(rate),
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
    p999Ms.toFixed(2),
  ]);
  return markdown(['proxy', 'requests/s', '50 %, ms', '99 %, ms', '99.9 %, ms'], rows, 1);
}

/** The part of docs/performance.md that `--all` measures. */
export function allPartOf(
  { measured, workloads, latencies, starts, writes, floods }: Results,
  conditions: Conditions,
): string {
  const { command, seconds, rounds, connections, load, programs, otherLoad } = conditions;
  const part = partSeconds(seconds);
  const there = Object.values(programs).filter((version) => version !== null);
  const missing = Object.entries(programs)
    .filter(([, version]) => version === null)
    .map(([name]) => name);
  return `What one authorized \`GET\` costs in the proxy's process: user and system time from \`/proc/PID/stat\`, divided by the requests
answered. ${
    keepsApart
      ? `Here and for the workloads, each proxy runs on the first CPU, and load and receiver on the others: on a virtual machine no two CPUs are alike, and
where a process is left for a while is chance`
      : 'Load, proxy and receiver share all CPUs, since there is one only, or no \`taskset\`'
  }. Throughput and latency say more of the machine than of the proxy;
compare rows, not machines.

${tableOf(measured)}

Every request carries the same service token of one issuer. Sallyport remembers the tokens that it verified (\`token_cache\`), so this is
the cost of a token that comes again; HAProxy verifies every time. It checks the same claims with one key from a file; it runs one thread, as Node.js does.
Apache runs one process with threads.${missing.length === 0 ? '' : ` Not installed here, and so not measured: ${missing.join(', ')}.`}

![CPU for a request by contender and by workload, as bars](performance.svg)

### Start and rest

From the start of the process until it answers, with the keys on loopback, and its memory ${String(restS)} s later, when nobody asked anything of it.

${startTable(starts)}

### Workloads

CPU for a request under other loads; *times* is beside the row that says 1.00. A flood's requests are all refused with 401. Of a body of 1 MiB the time
for a MiB is the same figure. Routes are asked for in turn, and so are tokens; a new token is verified, and so is each where \`token_cache\` is null. One
token again and again is the request of the first table, measured some minutes later: where the two differ, the host was busier in one of them.

${workloadTable(workloads)}

### Latency at fixed rates

Each request is sent at its time, whether or not those before it were answered, and its latency counts from that time (no coordinated omission). The first row
is what load and machine need by themselves.

${latencyTable(latencies)}

### Reserved writes

A write of 160 bytes with its \`Idempotency-Key\`, each a new one, beside the same write unreserved. [What is in it](idempotency.md#what-it-costs).

${writes === null ? '\`redis-server\` is not installed here, and so they were not measured.' : reservedTable(writes)}

### Floods of new tokens

Latency of ${String(timedRate)} requests a second with one token that is remembered, beside others. A new token is verified at once, on the
thread that serves all: a request waits for one signature at a time, and no more of them are before it than there are connections that bring them.

${floodTable(floods)}

### Conditions

- Command: \`${command}\`
- ${String(seconds)} s for each contender and round, ${String(part.workload)} s for workloads, ${String(part.rate)} s for latency, ${String(part.flood)} s
  for floods, medians of ${String(rounds)} rounds in turn, ${String(connections)} connections
- Machine: ${machine()}, load average before the first run ${otherLoad.toFixed(1)}
- ${[`Node.js ${process.version}`, ...there].join(', ')}, load by ${load}
`;
}

/** What figures depend on, in a few words. */
export function machine(): string {
  return `${String(cpus().length)} × ${cpus()[0]?.model ?? 'unknown processor'}, Linux ${release()}`;
}

/** Seconds of one run of a workload and of a rate, of which there are many; `wrk` takes whole ones. */
export function partSeconds(seconds: number): {
  readonly workload: number;
  readonly rate: number;
  readonly flood: number;
} {
  return { workload: Math.ceil(seconds / 2), rate: Math.ceil(seconds / 3), flood: Math.ceil(seconds) };
}
