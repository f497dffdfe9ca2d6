import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { startContenders } from './contenders.js';
import { cpuMicroseconds, residentMib } from './cpu.js';
import { runLoad } from './load.js';
import { planOf, writePlan } from './request-plan.js';
import { median } from './statistics.js';

export interface MeasureSettings {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly wrk: boolean;
  /** Names of contenders; all of them unless given. */
  readonly only?: readonly string[];
  /** A built checkout of an earlier commit, to be measured beside this one. */
  readonly before?: string;
  /** Told of each run as it ends. */
  readonly onRun?: (text: string) => void;
}

/** Medians over the rounds. */
export interface Measured {
  readonly name: string;
  readonly work: string;
  /** Microseconds of the process's CPU, user and system, for a request. */
  readonly cpuUs: number;
  readonly requestsPerS: number;
  readonly medianMs: number;
  readonly slowMs: number;
  /** MiB at the end of a run. */
  readonly memoryMib: number;
}

/**
 * Puts the same load on each contender in turn, round by round, so that what else the machine does falls on all alike.
 * One that does not start, or does not answer all requests, is told of and left out.
 */
export async function measure(t: Scope, settings: MeasureSettings): Promise<readonly Measured[]> {
  const { contenders, token } = await startContenders(t, settings);
  const plan = writePlan(tempDir(t), planOf(token));
  const runs = contenders.map((contender) => ({
    contender,
    results: [] as Omit<Measured, 'name' | 'work'>[],
    failed: 0,
  }));
  // The first round warms up compilers and connections and does not count.
  for (let round = 0; round <= settings.rounds; round += 1) {
    const seconds = round === 0 ? Math.min(settings.seconds, 2) : settings.seconds;
    for (const run of runs) {
      const { contender, results } = run;
      const before = cpuMicroseconds(contender.pid);
      const load = await runLoad({ ...settings, seconds, port: contender.port, plan });
      const cpuUs = (cpuMicroseconds(contender.pid) - before) / Math.max(load.requests, 1);
      run.failed += load.requests === 0 ? 1 : load.refused + load.broken;
      if (round === 0) continue;
      results.push({
        cpuUs,
        requestsPerS: load.requests / load.seconds,
        medianMs: load.medianMs,
        slowMs: load.slowMs,
        memoryMib: residentMib(contender.pid),
      });
      settings.onRun?.(`round ${String(round)}, ${contender.name}: ${cpuUs.toFixed(1)} µs`);
    }
  }
  for (const { contender, failed } of runs) {
    if (failed > 0) settings.onRun?.(`${contender.name} is left out: ${String(failed)} requests failed`);
  }
  return runs
    .filter(({ failed }) => failed === 0)
    .map(({ contender, results }) => ({
      name: contender.name,
      work: contender.work,
      cpuUs: median(results.map((result) => result.cpuUs)),
      requestsPerS: median(results.map((result) => result.requestsPerS)),
      medianMs: median(results.map((result) => result.medianMs)),
      slowMs: median(results.map((result) => result.slowMs)),
      memoryMib: median(results.map((result) => result.memoryMib)),
    }));
}
