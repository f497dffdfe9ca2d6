/**
 * Measures what a request costs here and elsewhere.
 *
 *   npm run bench -- --seconds 10 --rounds 3 [--connections 32] [--write]
 *
 * Prints a table; `--write` puts it into `docs/performance.md`.
 *
 *   npm run bench -- --workloads [NAME …] [--seconds 10] [--rounds 3]
 *
 * Measures other loads than one token again and again, all of them or those named.
 *
 *   npm run bench -- --reserved [--seconds 5] [--rounds 3] [--connections 8]
 *
 * Measures what a reserved write costs beside the same write unreserved; needs `redis-server`.
 *
 *   npm run bench -- --capacity
 *
 * Measures the memory of a proxy that is full, and what a write takes of Redis, for docs/capacity.md; needs `redis-server`.
 *
 *   npm run bench -- --import
 *
 * Measures `sallyport import` beside a loop of calls, with files of growing sizes.
 */
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { projectDir } from '../support/project-dir.js';
import { measureCapacity } from './capacity.js';
import { versionOf } from './child.js';
import { importTable, measureImport } from './import.js';
import { measureWorkloads } from './measure-workloads.js';
import { measure, median } from './measure.js';
import { pageOf, tableOf, workloadTable } from './report.js';
import { measureReserved, reservedTable } from './reserved.js';
import { startToReady } from './startup.js';
import { workloadNames, type WorkloadName } from './workloads.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    connections: { type: 'string' },
    write: { type: 'boolean', default: false },
    workloads: { type: 'boolean', default: false },
    reserved: { type: 'boolean', default: false },
    capacity: { type: 'boolean', default: false },
    import: { type: 'boolean', default: false },
  },
});
const defaults = values.reserved ? { seconds: 5, connections: 8 } : { seconds: 10, connections: 32 };
const [seconds, rounds] = [Number(values.seconds ?? defaults.seconds), Number(values.rounds)];
const connections = Number(values.connections ?? defaults.connections);
const wrk = versionOf('wrk', '-v');
const [otherLoad = 0] = loadavg();
const closers: (() => unknown)[] = [];

const scope = { teardown: (close: () => unknown): unknown => closers.unshift(close) };
const onRun = (text: string): void => {
  console.error(text);
};
const settings = { seconds, rounds, connections, wrk: wrk !== null, onRun };

try {
  if (values.reserved) console.log(reservedTable(await measureReserved(scope, { seconds, rounds, connections, onRun })));
  else if (values.capacity) console.log(await measureCapacity(scope));
  else if (values.workloads) console.log(workloadTable(await measureWorkloads(scope, { names: namedWorkloads(), ...settings })));
  else if (values.import) console.log(importTable(await measureImport(scope, { sizes: [5_000, 20_000, 80_000], onRun })));
  else await measureReads();
} finally {
  for (const close of closers) await close();
}

async function measureReads(): Promise<void> {
  const measured = await measure(scope, settings);
  const starts: number[] = [];
  for (let i = 0; i < 5; i += 1) starts.push(await startToReady());
  console.log(`${tableOf(measured)}\n\nstart to ready: ${median(starts).toFixed(0)} ms`);
  const page = pageOf(measured, {
    startToReadyMs: median(starts),
    otherLoad,
    command: `npm run bench -- --seconds ${String(seconds)} --rounds ${String(rounds)}`,
    seconds, rounds, connections, load: wrk?.split(' Copyright')[0] ?? 'a loader of our own', haproxy: versionOf('haproxy', '-v')?.split(' - ')[0] ?? null,
  });
  if (values.write) writeFileSync(join(projectDir, 'docs/performance.md'), page);
}

function namedWorkloads(): readonly WorkloadName[] {
  const unknown = positionals.filter((name) => !workloadNames.some((known) => known === name));
  if (unknown.length > 0) throw new Error(`no such workload: ${unknown.join(', ')}; there are ${workloadNames.join(', ')}`);
  return positionals.length === 0 ? workloadNames : workloadNames.filter((name) => positionals.includes(name));
}
