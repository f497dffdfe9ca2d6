import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { startContenders } from './contenders.js';
import { cpuMicroseconds, residentMib } from './cpu.js';
import { runLoad } from './load.js';
import { planOf, writePlan } from './request-plan.js';
import { scoped } from './scoped.js';
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
  /**
   * How often all are started anew, for so many rounds each: two processes of the same program differ by a few percent
   * for as long as they live. 1 unless given.
   */
  readonly starts?: number;
  /** Told of each run as it ends. */
  readonly onRun?: (text: string) => void;
}

/** Medians over the rounds. */
export interface Measured {
  readonly name: string;
  readonly work: string;
  /** Microseconds of the process's CPU, user and system, for a request. */
  readonly cpuUs: number;
  /** The same of each round. */
  readonly cpuUsOfRounds: readonly number[];
  readonly requestsPerS: number;
  readonly medianMs: number;
  readonly slowMs: number;
  /** MiB at the end of a run. */
  readonly memoryMib: number;
}

/** What one of them took in a round. */
type Round = Omit<Measured, 'name' | 'work' | 'cpuUsOfRounds'>;

interface Run {
  readonly name: string;
  readonly work: string;
  readonly rounds: Round[];
  failed: number;
}

/**
 * Puts the same load on each contender in turn, round by round, so that what else the machine does falls on all alike.
 * One that does not start, or does not answer all requests, is told of and left out.
 */
export async function measure(settings: MeasureSettings): Promise<readonly Measured[]> {
  const runs = new Map<string, Run>();
  const { starts = 1, rounds: roundsOfStart } = settings;
  for (let start = 0; start < starts; start += 1) {
    await scoped(async (scope) => measureStart(scope, settings, runs));
  }
  for (const { name, failed } of runs.values()) {
    if (failed > 0) settings.onRun?.(`${name} is left out: ${String(failed)} requests failed`);
  }
  return (
    [...runs.values()]
      // One that missed a start has no round beside each of the others'.
      .filter(({ failed, rounds }) => failed === 0 && rounds.length === starts * roundsOfStart)
      .map(({ name, work, rounds }) => {
        const middle = (of: (round: Round) => number): number => median(rounds.map(of));
        return {
          name,
          work,
          cpuUs: middle(({ cpuUs }) => cpuUs),
          cpuUsOfRounds: rounds.map(({ cpuUs }) => cpuUs),
          requestsPerS: middle(({ requestsPerS }) => requestsPerS),
          medianMs: middle(({ medianMs }) => medianMs),
          slowMs: middle(({ slowMs }) => slowMs),
          memoryMib: middle(({ memoryMib }) => memoryMib),
        };
      })
  );
}

async function measureStart(t: Scope, settings: MeasureSettings, runs: Map<string, Run>): Promise<void> {
  const { contenders, token } = await startContenders(t, settings);
  const plan = writePlan(tempDir(t), planOf(token));
  // The first round warms up compilers and connections and does not count.
  for (let round = 0; round <= settings.rounds; round += 1) {
    const seconds = round === 0 ? Math.min(settings.seconds, 2) : settings.seconds;
    for (const { name, work, pid, port } of contenders) {
      const run = runs.get(name) ?? { name, work, rounds: [], failed: 0 };
      runs.set(name, run);
      const before = cpuMicroseconds(pid);
      const load = await runLoad({ ...settings, seconds, port, plan });
      const cpuUs = (cpuMicroseconds(pid) - before) / Math.max(load.requests, 1);
      run.failed += load.requests === 0 ? 1 : load.refused + load.broken;
      if (round === 0) continue;
      const { medianMs, slowMs } = load;
      const requestsPerS = load.requests / load.seconds;
      run.rounds.push({ cpuUs, requestsPerS, medianMs, slowMs, memoryMib: residentMib(pid) });
      settings.onRun?.(`round ${String(run.rounds.length)}, ${name}: ${cpuUs.toFixed(1)} µs`);
    }
  }
}
