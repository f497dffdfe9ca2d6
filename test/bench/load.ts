import { loadOutput, outputOf } from './child.js';
import type { LoadResult } from './servers.js';

export interface LoadSettings {
  readonly port: number;
  readonly token: string;
  readonly seconds: number;
  readonly connections: number;
  /** Whether `wrk` is there; else a loader of our own takes its place, which is itself the bottleneck. */
  readonly wrk: boolean;
}

/** Sends `GET /orders` over kept connections for a while. */
export async function runLoad({ port, token, seconds, connections, wrk }: LoadSettings): Promise<LoadResult> {
  const url = `http://127.0.0.1:${String(port)}/orders`;
  const authorization = `Bearer ${token}`;
  if (!wrk) return JSON.parse(await loadOutput([url, String(seconds), String(connections), authorization])) as LoadResult;
  const args = ['-t1', `-c${String(connections)}`, `-d${String(seconds)}s`, '--latency', '-H', `Authorization: ${authorization}`, url];
  return readWrk(await outputOf('wrk', args), seconds);
}

/** Reads what `wrk --latency` prints. */
export function readWrk(output: string, seconds: number): LoadResult {
  const total = /(\d+) requests in ([\d.]+)(ms|s|m)/.exec(output);
  const wrong = /Non-2xx or 3xx responses: (\d+)/.exec(output)?.[1] ?? '0';
  const broken = /Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(output)?.slice(1) ?? [];
  return {
    requests: Number(total?.[1] ?? 0),
    failed: [wrong, ...broken].map(Number).reduce((sum, count) => sum + count, 0),
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
