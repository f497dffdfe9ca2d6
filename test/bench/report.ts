import { cpus, release } from 'node:os';
import type { MeasuredWorkload } from './measure-workloads.js';
import type { Measured } from './measure.js';

/** What the figures depend on. */
export interface Conditions {
  readonly command: string;
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly load: string;
  readonly haproxy: string | null;
  /** What else the machine was doing: its load average before the first run. */
  readonly otherLoad: number;
  /** From the start of the process to `/readyz` saying 200; median. */
  readonly startToReadyMs: number;
}

/** The contender that the others are compared with. */
const reference = '@fastify/http-proxy';

/** The result as a Markdown table. */
export function tableOf(measured: readonly Measured[]): string {
  const base = measured.find(({ name }) => name === reference)?.cpuUs ?? Number.NaN;
  const head = ['proxy', 'for each request', 'CPU, µs', `× ${reference}`, 'requests/s', 'median, ms', '99 %, ms', 'memory, MiB'];
  const rows = measured.map(({ name, work, cpuUs, requestsPerS, medianMs, slowMs, memoryMib }) => [
    name, work, cpuUs.toFixed(1), (cpuUs / base).toFixed(2), requestsPerS.toFixed(0), medianMs.toFixed(2), slowMs.toFixed(2), memoryMib.toFixed(0),
  ]);
  return markdown(head, rows, 2);
}

/** The workloads as a Markdown table, one row for each that took part. */
export function workloadTable(measured: readonly MeasuredWorkload[]): string {
  const head = ['workload', 'proxy', 'CPU, µs', 'times', 'for a MiB, µs', 'requests/s', '99 %, ms', 'memory, MiB'];
  const rows = measured.flatMap(({ title, entrants }) => entrants.map(({ name, cpuUs, ratio, cpuUsPerMib, requestsPerS, slowMs, memoryMib }, index) => [
    index === 0 ? title : '', name, cpuUs.toFixed(1), ratio?.toFixed(2) ?? '', cpuUsPerMib?.toFixed(0) ?? '', requestsPerS.toFixed(0), slowMs.toFixed(2),
    memoryMib.toFixed(0),
  ]));
  return markdown(head, rows, 2);
}

/** The first columns hold words, the others numbers. */
function markdown(head: readonly string[], rows: readonly (readonly string[])[], words: number): string {
  const line = head.map((_cell, index) => (index < words ? '---' : '---:'));
  return [head, line, ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** The page `docs/performance.md`. */
export function pageOf(measured: readonly Measured[], conditions: Conditions): string {
  const { command, seconds, rounds, connections, load, haproxy, otherLoad, startToReadyMs } = conditions;
  const processor = cpus()[0]?.model ?? 'unknown processor';
  return `# Performance

What one authorized \`GET\` costs in the proxy's process: user and system time from \`/proc/PID/stat\`, divided by the requests
answered. Throughput and latency say more of the machine than of the proxy, since load, proxy and receiver share it; compare
rows, not machines.

${tableOf(measured)}

Every request carries the same service token of one issuer. Sallyport remembers the tokens that it verified (\`token_cache\`), so this is
the cost of a token that comes again; HAProxy verifies every time. It checks the same claims with one key from a file; it runs one thread, as Node.js does.

From the start of \`sallyport serve\` to \`/readyz\` answering 200, with the keys on loopback: ${startToReadyMs.toFixed(0)} ms.

- Command: \`${command}\` (${String(seconds)} s for each contender and round, medians of ${String(rounds)} rounds in turn, ${String(connections)} connections)
- Machine: ${String(cpus().length)} × ${processor}, Linux ${release()}, load average before the first run ${otherLoad.toFixed(1)}
- Node.js ${process.version}, ${haproxy ?? 'no HAProxy'}, load by ${load}
`;
}
