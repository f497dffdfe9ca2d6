/** How long callers with remembered tokens wait while others bring new ones, each of which takes a signature. */
import { join } from 'node:path';
import { startJwksServer } from '../support/jwks-server.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { outputOf, startServer } from './child.js';
import { cpuMicroseconds } from './cpu.js';
import type { RateResult } from './latency.js';
import { runLoad } from './load.js';
import { markdown } from './markdown.js';
import { writePlan, type RequestPlan } from './request-plan.js';
import { startSallyport, type Proxy } from './sallyport.js';
import { quantile } from './statistics.js';
import { mintTokenFile, openTokens } from './token-file.js';

export interface FloodSettings {
  /** Where tokens are kept for the next run. */
  readonly dir: string;
  /**
   * How many take turns; far more than the cache holds unless given, so that none is remembered when it comes again.
   */
  readonly tokens?: number;
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly wrk: boolean;
  readonly onRun?: (text: string) => void;
}

/** Over all rounds. */
export interface MeasuredFlood {
  readonly name: string;
  /** Requests beside those that are timed. */
  readonly perSecond: number;
  /** CPU of the proxy, of one core. */
  readonly cpuShare: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
}

interface Flood {
  readonly name: string;
  /** `null` without a flood. */
  readonly plan: ((run: number) => RequestPlan) | null;
}

/** So many requests with one token are timed in a second. */
export const timedRate = 200;
/** More than a run takes. */
const tokensOfRun = 20_000;

/** Asks with one token at a low rate, first alone and then beside each flood, round by round. */
export async function measureFlood(t: Scope, settings: FloodSettings): Promise<readonly MeasuredFlood[]> {
  const tokenCount = settings.tokens ?? 60_000;
  const { key, tokens } = await mintTokenFile({
    dir: settings.dir,
    count: tokenCount,
    nowS: Math.floor(Date.now() / 1000),
  });
  const opened = openTokens(tokens);
  const [hot, other] = [opened.at(tokenCount - 1), opened.at(tokenCount - 2)];
  opened.close();
  const receiver = (await startServer(t, 'receiver')).port;
  const jwksUrl = (await startJwksServer(t, { keys: [key] })).url;
  const proxy = await startSallyport(
    t,
    {
      upstream: { url: `http://127.0.0.1:${String(receiver)}` },
      issuers: { core: { jwks_url: jwksUrl, max_lifetime: '24h' } },
    },
    { path: '/orders', headers: { Authorization: `Bearer ${hot}` } },
  );

  const reads = { method: 'GET', paths: ['/orders'], tokens: [], bodyBytes: 0 } as const;
  const fresh = (run: number): RequestPlan => ({
    ...reads,
    tokenFile: tokens,
    tokensFrom: (run * tokensOfRun) % tokenCount,
  });
  // The first warms up, the second says what a new token costs.
  await floodWith(t, proxy, fresh(0), settings);
  const cpuUs = await costOf(t, proxy, fresh(1), settings);
  const half = Math.round(500_000 / cpuUs);
  const floods: readonly Flood[] = [
    { name: 'nothing else', plan: null },
    { name: 'new tokens that take half a core', plan: (run) => ({ ...fresh(run), perSecond: half }) },
    { name: `as many new tokens as ${String(settings.connections)} connections bring`, plan: fresh },
    {
      name: `one more token, as often as ${String(settings.connections)} connections bring it`,
      plan: () => ({ ...reads, tokens: [other] }),
    },
  ];
  const runs = floods.map((flood) => ({ flood, latenciesMs: [] as number[], requests: 0, cpuUs: 0, seconds: 0 }));
  let count = 0;
  for (let round = 1; round <= settings.rounds; round += 1) {
    for (const run of runs) {
      count += 1;
      const plan = run.flood.plan?.(count) ?? null;
      const before = { cpuUs: cpuMicroseconds(proxy.pid), ms: performance.now() };
      const [requests, latenciesMs] = await Promise.all([
        plan === null ? 0 : floodWith(t, proxy, plan, settings),
        timed(proxy, hot, settings.seconds),
      ]);
      run.cpuUs += cpuMicroseconds(proxy.pid) - before.cpuUs;
      run.seconds += (performance.now() - before.ms) / 1000;
      run.requests += requests;
      run.latenciesMs.push(...latenciesMs);
      settings.onRun?.(`round ${String(round)}, ${run.flood.name}: 99 % ${quantile(latenciesMs, 0.99).toFixed(2)} ms`);
    }
  }
  return runs.map(({ flood: { name }, latenciesMs, requests, cpuUs: used, seconds }) => ({
    name,
    perSecond: requests / seconds,
    cpuShare: used / 1_000_000 / seconds,
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
    p999Ms: quantile(latenciesMs, 0.999),
  }));
}

export function floodTable(measured: readonly MeasuredFlood[]): string {
  const rows = measured.map(({ name, perSecond, cpuShare, p50Ms, p99Ms, p999Ms }) => [
    name,
    perSecond.toFixed(0),
    cpuShare.toFixed(2),
    p50Ms.toFixed(2),
    p99Ms.toFixed(2),
    p999Ms.toFixed(2),
  ]);
  return markdown(['beside it', 'requests/s', 'cores', '50 %, ms', '99 %, ms', '99.9 %, ms'], rows, 1);
}

async function costOf(t: Scope, proxy: Proxy, plan: RequestPlan, settings: FloodSettings): Promise<number> {
  const before = cpuMicroseconds(proxy.pid);
  const requests = await floodWith(t, proxy, plan, settings);
  return Math.max(1, (cpuMicroseconds(proxy.pid) - before) / Math.max(1, requests));
}

async function floodWith(t: Scope, { port }: Proxy, plan: RequestPlan, settings: FloodSettings): Promise<number> {
  const { requests, refused, broken } = await runLoad({ ...settings, port, plan: writePlan(tempDir(t), plan) });
  if (refused + broken > 0) {
    throw new Error(
      `of ${String(requests)} answers ${String(refused)} were refusals; ${String(broken)} connections failed`,
    );
  }
  return requests;
}

async function timed({ port }: Proxy, token: string, seconds: number): Promise<readonly number[]> {
  const args = [
    join(import.meta.dirname, 'rate-load.js'),
    `http://127.0.0.1:${String(port)}/orders`,
    String(timedRate),
    String(seconds),
    '8',
    `Bearer ${token}`,
  ];
  const { latenciesMs, failed } = JSON.parse(await outputOf(process.execPath, args)) as RateResult;
  if (failed > 0) throw new Error(`${String(failed)} of the requests that are timed failed`);
  return latenciesMs;
}
