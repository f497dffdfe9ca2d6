/** What a second worker brings, and what it takes: throughput, CPU and memory with one and with two. */
import { readFileSync } from 'node:fs';
import { childrenOf } from '../support/linux.js';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { startServer } from './child.js';
import { cpuMicroseconds } from './cpu.js';
import { runLoad } from './load.js';
import { markdown } from './markdown.js';
import { planOf, writePlan } from './request-plan.js';
import { startSallyport, type Proxy } from './sallyport.js';
import { median } from './statistics.js';

export interface WorkerCountSettings {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly wrk: boolean;
  /** Told of each run as it ends. */
  readonly onRun?: (text: string) => void;
}

export interface MeasuredWorkers {
  readonly workers: number;
  /** By the wall clock: what the machine had left beside the load and the upstream. */
  readonly perSecond: number;
  /** Microseconds of CPU for a request: of those that serve, and of the process that hands connections to them. */
  readonly servingUs: number;
  readonly primaryUs: number;
  /** Proportional set size in MiB, of each process that serves and of the primary; 0 where there is none. */
  readonly servingMib: readonly number[];
  readonly primaryMib: number;
}

/** Puts the same load on each in turn, round by round. The first round warms up and does not count. */
export async function measureWorkers(
  t: Scope,
  { seconds, rounds, connections, wrk, onRun }: WorkerCountSettings,
): Promise<readonly MeasuredWorkers[]> {
  const key = rsaKey();
  const token = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 7000 } });
  const base = {
    upstream: { url: `http://127.0.0.1:${String((await startServer(t, 'receiver')).port)}` },
    issuers: { core: { jwks_url: (await startJwksServer(t, { keys: [key] })).url } },
  };
  const plan = writePlan(tempDir(t), planOf(token));
  const ready = { path: '/orders', headers: { Authorization: `Bearer ${token}` } };
  const all: {
    workers: number;
    proxy: Proxy;
    runs: Omit<MeasuredWorkers, 'workers' | 'servingMib' | 'primaryMib'>[];
  }[] = [];
  for (const workers of [1, 2]) {
    all.push({ workers, proxy: await startSallyport(t, { ...base, workers }, ready), runs: [] });
  }
  for (let round = 0; round <= rounds; round += 1) {
    for (const { workers, proxy, runs } of all) {
      const { serving, primary } = processesOf(proxy);
      const used = (): readonly [number, number] => [sumOf(serving, cpuMicroseconds), sumOf(primary, cpuMicroseconds)];
      const before = used();
      const load = await runLoad({ port: proxy.port, plan, seconds, connections, wrk });
      const after = used();
      if (load.broken > 0 || load.requests === 0) throw new Error(`${String(load.broken)} broke`);
      if (round === 0) continue;
      const run = {
        perSecond: load.requests / seconds,
        servingUs: (after[0] - before[0]) / load.requests,
        primaryUs: (after[1] - before[1]) / load.requests,
      };
      runs.push(run);
      onRun?.(
        `round ${String(round)}, ${String(workers)}: ${run.perSecond.toFixed(0)}/s, ${run.servingUs.toFixed(1)} + ${run.primaryUs.toFixed(1)} µs`,
      );
    }
  }
  return all.map(({ workers, proxy, runs }) => {
    const { serving, primary } = processesOf(proxy);
    return {
      workers,
      perSecond: median(runs.map(({ perSecond }) => perSecond)),
      servingUs: median(runs.map(({ servingUs }) => servingUs)),
      primaryUs: median(runs.map(({ primaryUs }) => primaryUs)),
      servingMib: serving.map(proportionalMib),
      primaryMib: sumOf(primary, proportionalMib),
    };
  });
}

/** The result as a Markdown table. */
export function workersTable(measured: readonly MeasuredWorkers[]): string {
  return markdown(
    [
      'workers',
      'requests/s',
      'requests per CPU second of a worker',
      'CPU µs: workers',
      'primary',
      'PSS MiB: workers',
      'primary',
    ],
    measured.map(({ workers, perSecond, servingUs, primaryUs, servingMib, primaryMib }) => [
      String(workers),
      perSecond.toFixed(0),
      (1_000_000 / servingUs).toFixed(0),
      servingUs.toFixed(1),
      primaryUs.toFixed(1),
      servingMib.map((mib) => mib.toFixed(0)).join(', '),
      primaryMib.toFixed(0),
    ]),
    1,
  );
}

/** One process alone serves by itself. */
function processesOf({ pid }: Proxy): { readonly serving: readonly number[]; readonly primary: readonly number[] } {
  const children = childrenOf(pid);
  return children.length === 0 ? { serving: [pid], primary: [] } : { serving: children, primary: [pid] };
}

function sumOf(pids: readonly number[], of: (pid: number) => number): number {
  return pids.reduce((sum, pid) => sum + of(pid), 0);
}

/** What of its memory is shared counts in part: pages of the program are those of all its processes. */
function proportionalMib(pid: number): number {
  const [, kib = '0'] = /^Pss:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${String(pid)}/smaps_rollup`, 'utf8')) ?? [];
  return Number(kib) / 1024;
}
