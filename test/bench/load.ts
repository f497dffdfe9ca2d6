import { join } from 'node:path';
import { asLoad } from './affinity.js';
import { outputOf } from './child.js';
import type { PlanFiles } from './request-plan.js';

/** What one run of load gave. */
export interface LoadResult {
  /** Answers. */
  readonly requests: number;
  /** Answers that were no success. */
  readonly refused: number;
  /** Connections that failed. */
  readonly broken: number;
  readonly seconds: number;
  readonly medianMs: number;
  readonly slowMs: number;
}

export interface LoadSettings {
  readonly port: number;
  readonly plan: PlanFiles;
  readonly seconds: number;
  readonly connections: number;
  /** Whether `wrk` is there; else a loader of our own takes its place, which is itself the bottleneck. */
  readonly wrk: boolean;
  /** Whether the connections speak TLS, which takes `wrk`; nobody looks at the certificate. */
  readonly tls?: boolean;
}

/** Sends what the plan says over kept connections for a while. */
export async function runLoad(settings: LoadSettings): Promise<LoadResult> {
  const { port, plan, seconds, connections, wrk, tls = false } = settings;
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${String(port)}`;
  if (!wrk) {
    const args = [join(import.meta.dirname, 'plain-load.js'), plan.json, url, String(seconds), String(connections)];
    return JSON.parse(await outputOf(...asLoad(process.execPath, args))) as LoadResult;
  }
  const args = ['-t1', `-c${String(connections)}`, `-d${String(seconds)}s`, '--latency', '-s', plan.script, url];
  return readWrk(await outputOf(...asLoad('wrk', args)), seconds);
}

export interface WriteSettings {
  readonly port: number;
  readonly seconds: number;
  readonly connections: number;
  /** Writes a second; as many as there is time for unless given. */
  readonly perSecond?: number;
  /** They take turns. */
  readonly tokens: readonly string[];
}

/** Sends writes to `/orders`, each with a key of its own. */
export async function runWrites({
  port,
  seconds,
  connections,
  perSecond = 0,
  tokens,
}: WriteSettings): Promise<LoadResult> {
  const numbers = [seconds, connections, perSecond].map(String);
  const args = [
    join(import.meta.dirname, 'write-load.js'),
    `http://127.0.0.1:${String(port)}/orders`,
    ...numbers,
    ...tokens.map((token) => `Bearer ${token}`),
  ];
  return JSON.parse(await outputOf(process.execPath, args)) as LoadResult;
}

/** Reads what `wrk --latency` prints. */
export function readWrk(output: string, seconds: number): LoadResult {
  const total = /(\d+) requests in ([\d.]+)(ms|s|m)/.exec(output);
  const wrong = /Non-2xx or 3xx responses: (\d+)/.exec(output)?.[1] ?? '0';
  const broken = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(output)?.slice(1) ?? [];
  return {
    requests: Number(total?.[1] ?? 0),
    refused: Number(wrong),
    broken: broken.map(Number).reduce((sum, count) => sum + count, 0),
    seconds: total === null ? seconds : Number(total[2]) * unitSeconds(total[3]),
    medianMs: quantileMs(output, '50%'),
    slowMs: quantileMs(output, '99%'),
  };
}

function quantileMs(output: string, share: string): number {
  const match = new RegExp(`^\\s+${share}\\s+([\\d.]+)(us|ms|s|m)`, 'm').exec(output);
  return match === null ? 0 : Number(match[1]) * unitSeconds(match[2]) * 1000;
}

function unitSeconds(unit: string | undefined): number {
  return { us: 0.000_001, ms: 0.001, s: 1, m: 60 }[unit ?? 's'] ?? 1;
}
