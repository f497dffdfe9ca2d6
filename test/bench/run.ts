/**
 * Measures what a request costs here and elsewhere.
 *
 *   npm run bench -- [--seconds 10] [--rounds 3] [--connections 32]
 *
 * Prints what one authorized GET costs, and what it costs with others.
 *
 *   npm run bench -- --workloads [NAME …] | --latency
 *
 * Measures other loads than one token again and again, all of them or those named; or latency at fixed rates.
 *
 *   npm run bench -- --all [--seconds 3] [--rounds 3] [--out docs]
 *
 * Measures all of that, and writes `performance.md` and `performance.svg`.
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
import { mkdirSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { projectDir } from '../support/project-dir.js';
import { apacheVersion } from './apache.js';
import { measureCapacity } from './capacity.js';
import { versionOf } from './child.js';
import { importTable, measureImport } from './import.js';
import { latencyContenders, measureLatency, type MeasuredLatency } from './latency.js';
import { measureWorkloads, type MeasuredWorkload } from './measure-workloads.js';
import { measure, type Measured } from './measure.js';
import { plotOf } from './plot.js';
import { latencyTable, pageOf, partSeconds, tableOf, workloadTable } from './report.js';
import { measureReserved, reservedTable } from './reserved.js';
import { scoped } from './scoped.js';
import { startToReady } from './startup.js';
import { median } from './statistics.js';
import { workloadNames, type WorkloadName } from './workloads.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string' },
    rounds: { type: 'string', default: '3' },
    connections: { type: 'string' },
    all: { type: 'boolean', default: false },
    latency: { type: 'boolean', default: false },
    out: { type: 'string', default: join(projectDir, 'docs') },
    workloads: { type: 'boolean', default: false },
    reserved: { type: 'boolean', default: false },
    capacity: { type: 'boolean', default: false },
    import: { type: 'boolean', default: false },
  },
});
const defaults = values.reserved ? { seconds: 5, connections: 8 } : { seconds: values.all ? 3 : 10, connections: 32 };
const [seconds, rounds] = [Number(values.seconds ?? defaults.seconds), Number(values.rounds)];
const connections = Number(values.connections ?? defaults.connections);
const wrk = versionOf('wrk', '-v');
const [otherLoad = 0] = loadavg();
const onRun = (text: string): void => {
  console.error(text);
};
const settings = { seconds, rounds, connections, wrk: wrk !== null, onRun };

if (values.reserved) console.log(reservedTable(await scoped(async (scope) => measureReserved(scope, settings))));
else if (values.capacity) console.log(await scoped(measureCapacity));
else if (values.import) console.log(importTable(await scoped(async (scope) => measureImport(scope, { sizes: [5_000, 20_000, 80_000], onRun }))));
else if (values.workloads) console.log(workloadTable(await workloadsOf(seconds)));
else if (values.latency) console.log(latencyTable(await latenciesOf(seconds)));
else if (values.all) await measureAll();
else console.log(tableOf(await readsOf()), `\n\nstart to ready: ${(await startOf()).toFixed(0)} ms`);

async function readsOf(): Promise<readonly Measured[]> {
  return scoped(async (scope) => measure(scope, settings));
}

async function workloadsOf(runSeconds: number): Promise<readonly MeasuredWorkload[]> {
  return scoped(async (scope) => measureWorkloads(scope, { ...settings, names: namedWorkloads(), seconds: runSeconds }));
}

async function latenciesOf(runSeconds: number): Promise<readonly MeasuredLatency[]> {
  return scoped(async (scope) => measureLatency(scope, { ...settings, rates: [1_000, 3_000], only: latencyContenders, seconds: runSeconds }));
}

async function startOf(): Promise<number> {
  const starts: number[] = [];
  for (let i = 0; i < 5; i += 1) starts.push(await startToReady());
  return median(starts);
}

async function measureAll(): Promise<void> {
  const measured = await readsOf();
  const startToReadyMs = await startOf();
  const workloads = await workloadsOf(partSeconds(seconds).workload);
  const latencies = await latenciesOf(partSeconds(seconds).rate);
  const page = pageOf({ measured, workloads, latencies }, {
    startToReadyMs,
    otherLoad,
    command: `npm run bench -- --all --seconds ${String(seconds)} --rounds ${String(rounds)}`,
    seconds, rounds, connections, load: wrk?.split(' Copyright')[0] ?? 'a loader of our own',
    programs: { HAProxy: versionOf('haproxy', '-v')?.split(' - ')[0] ?? null, 'Apache with mod_auth_openidc': apacheVersion() },
  });
  mkdirSync(values.out, { recursive: true });
  writeFileSync(join(values.out, 'performance.md'), page);
  writeFileSync(join(values.out, 'performance.svg'), plotOf(measured, workloads));
  console.log(page);
}

function namedWorkloads(): readonly WorkloadName[] {
  const unknown = positionals.filter((name) => !workloadNames.some((known) => known === name));
  if (unknown.length > 0) throw new Error(`no such workload: ${unknown.join(', ')}; there are ${workloadNames.join(', ')}`);
  return positionals.length === 0 ? workloadNames : workloadNames.filter((name) => positionals.includes(name));
}
