import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { placeMeasured } from './affinity.js';
import type { Child } from './child.js';
import { cpuMicroseconds, residentMib } from './cpu.js';
import { openIdle } from './idle-connections.js';
import { runLoad } from './load.js';
import { writePlan, type PlanFiles } from './request-plan.js';
import { readMetrics, type Proxy } from './sallyport.js';
import { scoped } from './scoped.js';
import { median } from './statistics.js';
import { prepareWorkloads, type Entrant, type Workload, type WorkloadName } from './workloads.js';

export interface LoadRounds {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly wrk: boolean;
  readonly onRun?: (text: string) => void;
}

export interface WorkloadSettings extends LoadRounds {
  readonly names: readonly WorkloadName[];
  /** How many tokens are minted where many are needed. */
  readonly tokens?: number;
}

interface Run {
  /** Microseconds of the process's CPU for a request. */
  readonly cpuUs: number;
  readonly requestsPerS: number;
  readonly slowMs: number;
  readonly memoryMib: number;
  /** Share of the tokens that the proxy remembered; `null` where it says nothing of that. */
  readonly hitShare: number | null;
}

/** Medians over the rounds. */
export interface MeasuredEntrant extends Run {
  readonly name: string;
  /** CPU beside that of the entrant it is compared with; `null` where that is not here. */
  readonly ratio: number | null;
  /** Microseconds of CPU for a MiB of body, where the workload is about bodies. */
  readonly cpuUsPerMib: number | null;
}

export interface MeasuredWorkload {
  readonly name: string;
  readonly title: string;
  readonly against: string;
  readonly entrants: readonly MeasuredEntrant[];
}

interface Running {
  readonly entrant: Entrant;
  readonly child: Child | Proxy;
  readonly plan: PlanFiles;
  readonly runs: Run[];
}

/** Puts each workload on its entrants in turn, round by round. One that fails is told of and left out. */
export async function measureWorkloads(t: Scope, settings: WorkloadSettings): Promise<readonly MeasuredWorkload[]> {
  const measured: MeasuredWorkload[] = [];
  for (const workload of await prepareWorkloads(t, settings.names, settings.tokens)) {
    try {
      measured.push(await scoped(async (scope) => measureWorkload(scope, workload, settings)));
    } catch (error) {
      settings.onRun?.(`${workload.name} is left out: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return measured;
}

/** Starts the entrants of a workload and puts it on each in turn, round by round. */
export async function measureWorkload(t: Scope, workload: Workload, settings: LoadRounds): Promise<MeasuredWorkload> {
  const running: Running[] = [];
  for (const entrant of workload.entrants) {
    const one: Running = {
      entrant,
      child: await entrant.start(t),
      plan: writePlan(tempDir(t), entrant.plan),
      runs: [],
    };
    if (entrant.primed !== undefined) {
      const plan = writePlan(tempDir(t), entrant.primed);
      await runOnce({ ...one, plan }, workload, { ...settings, seconds: 0, wrk: false });
    }
    placeMeasured(one.child.pid);
    running.push(one);
  }
  // The first round warms up and does not count.
  for (let round = 0; round <= settings.rounds; round += 1) {
    for (const one of running) {
      const run = await runOnce(one, workload, {
        ...settings,
        seconds: round === 0 ? Math.min(1, settings.seconds) : settings.seconds,
      });
      if (round === 0) continue;
      one.runs.push(run);
      settings.onRun?.(`${workload.name}, round ${String(round)}, ${one.entrant.name}: ${run.cpuUs.toFixed(1)} µs`);
    }
  }
  const medians = running.map(({ entrant, runs }) => ({ name: entrant.name, ...medianOf(runs) }));
  const base = medians.find(({ name }) => name === workload.against)?.cpuUs;
  const { name, title, against, bodyBytes } = workload;
  return {
    name,
    title,
    against,
    entrants: medians.map((one) => ({
      ...one,
      ratio: base === undefined ? null : one.cpuUs / base,
      cpuUsPerMib: bodyBytes === undefined ? null : (one.cpuUs * 1024 ** 2) / bodyBytes,
    })),
  };
}

async function runOnce({ entrant, child, plan }: Running, workload: Workload, settings: LoadRounds): Promise<Run> {
  const close = await openIdle(child.port, entrant.idle ?? 0, entrant.plan.tokens[0] ?? '');
  const lookups = await readLookups(child);
  const before = cpuMicroseconds(child.pid);
  const load = await runLoad({ ...settings, port: child.port, plan });
  const cpuUs = (cpuMicroseconds(child.pid) - before) / Math.max(load.requests, 1);
  const memoryMib = residentMib(child.pid);
  close();
  const hitShare = hitShareOf(lookups, await readLookups(child));
  const wrong = workload.answer === 'success' ? load.refused : load.requests - load.refused;
  if (wrong + load.broken > 0 || load.requests === 0) {
    throw new Error(
      `${entrant.name}: of ${String(load.requests)} answers ${String(wrong)} were wrong; ${String(load.broken)} connections failed`,
    );
  }
  return { cpuUs, requestsPerS: load.requests / load.seconds, slowMs: load.slowMs, memoryMib, hitShare };
}

function medianOf(runs: readonly Run[]): Run {
  const middle = (of: (run: Run) => number): number => median(runs.map(of));
  return {
    cpuUs: middle(({ cpuUs }) => cpuUs),
    requestsPerS: middle(({ requestsPerS }) => requestsPerS),
    slowMs: middle(({ slowMs }) => slowMs),
    memoryMib: middle(({ memoryMib }) => memoryMib),
    hitShare: runs.some(({ hitShare }) => hitShare === null) ? null : middle(({ hitShare }) => hitShare ?? 0),
  };
}

interface Lookups {
  readonly hits: number;
  readonly misses: number;
}

async function readLookups(child: Child | Proxy): Promise<Lookups | null> {
  if (!('adminPort' in child)) return null;
  const metric = await readMetrics(child);
  const count = (result: string): number => metric(`sallyport_token_cache_lookups_total{result="${result}"}`);
  return { hits: count('hit'), misses: count('miss') };
}

function hitShareOf(before: Lookups | null, after: Lookups | null): number | null {
  if (before === null || after === null) return null;
  const [hits, misses] = [after.hits - before.hits, after.misses - before.misses];
  return hits + misses === 0 ? null : hits / (hits + misses);
}
