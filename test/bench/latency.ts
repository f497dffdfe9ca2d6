import { join } from 'node:path';
import type { Scope } from '../support/scope.js';
import { outputOf } from './child.js';
import { startContenders } from './contenders.js';
import { quantile } from './statistics.js';

/** What `rate-load.ts` prints. */
export interface RateResult {
  readonly latenciesMs: readonly number[];
  readonly failed: number;
}

export interface LatencySettings {
  /** Requests per second. */
  readonly rates: readonly number[];
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  /** Names of contenders; those that are not here are passed by. */
  readonly only: readonly string[];
  readonly onRun?: (text: string) => void;
}

/** Over all rounds. */
export interface MeasuredLatency {
  readonly rate: number;
  readonly name: string;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
}

/** The contenders whose latency is measured; the first is the floor: what load and machine need by themselves. */
export const latencyContenders = ['node:http', 'Sallyport', 'HAProxy, jwt_verify', 'Apache, mod_auth_openidc'] as const;

/**
 * Asks each contender in turn at each rate, round by round. One that does not answer all of them is told of and left
 * out.
 */
export async function measureLatency(t: Scope, settings: LatencySettings): Promise<readonly MeasuredLatency[]> {
  const { contenders, token } = await startContenders(t, settings);
  const runs = settings.rates.flatMap((rate) =>
    contenders.map((contender) => ({ rate, contender, latenciesMs: [] as number[], failed: 0 })),
  );
  // The first round warms up and does not count.
  for (let round = 0; round <= settings.rounds; round += 1) {
    for (const run of runs) {
      const seconds = round === 0 ? Math.min(1, settings.seconds) : settings.seconds;
      const { name, port } = run.contender;
      const url = `http://127.0.0.1:${String(port)}/orders`;
      const args = [
        join(import.meta.dirname, 'rate-load.js'),
        url,
        String(run.rate),
        String(seconds),
        String(settings.connections),
        `Bearer ${token}`,
      ];
      const { latenciesMs, failed } = JSON.parse(await outputOf(process.execPath, args)) as RateResult;
      run.failed += failed;
      if (round === 0) continue;
      run.latenciesMs.push(...latenciesMs);
      const [half, slow] = [quantile(latenciesMs, 0.5), quantile(latenciesMs, 0.99)];
      settings.onRun?.(
        `${String(run.rate)}/s, round ${String(round)}, ${name}: ${half.toFixed(2)} ms, 99 % ${slow.toFixed(2)} ms`,
      );
    }
  }
  for (const { rate, contender, failed } of runs) {
    if (failed > 0) {
      settings.onRun?.(`${contender.name} at ${String(rate)}/s is left out: ${String(failed)} requests failed`);
    }
  }
  return runs
    .filter(({ failed }) => failed === 0)
    .map(({ rate, contender: { name }, latenciesMs }) => ({
      rate,
      name,
      p50Ms: quantile(latenciesMs, 0.5),
      p99Ms: quantile(latenciesMs, 0.99),
      p999Ms: quantile(latenciesMs, 0.999),
    }));
}
