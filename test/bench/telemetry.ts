/** What telemetry costs: CPU of one authorized GET with it off, and with so many requests traced. */
import { createServer } from 'node:http';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { listen } from '../support/listening.js';
import type { ConfigTree } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { startServer } from './child.js';
import { cpuMicroseconds } from './cpu.js';
import { runLoad } from './load.js';
import { markdown } from './markdown.js';
import { planOf, writePlan } from './request-plan.js';
import { readMetrics, startSallyport, type Proxy } from './sallyport.js';
import { median } from './statistics.js';

export interface TelemetrySettings {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly wrk: boolean;
  /** Told of each run as it ends. */
  readonly onRun?: (text: string) => void;
}

export interface MeasuredTelemetry {
  readonly name: string;
  /** Microseconds of the proxy's CPU for a request: the median over the rounds. */
  readonly cpuUs: number;
  /** Spans of all rounds that the collector took, and those for which there was no room, in one for each request. */
  readonly exported: number;
  readonly dropped: number;
}

const ratios: readonly (readonly [name: string, ratio: number | null])[] = [
  ['off', null],
  ['on, none sampled', 0],
  ['on at 1 %', 0.01],
  ['on at 100 %', 1],
];

/** Puts the same load on each in turn, round by round. The first round warms up and does not count. */
export async function measureTelemetry(t: Scope, settings: TelemetrySettings): Promise<readonly MeasuredTelemetry[]> {
  const { seconds, rounds, connections, wrk } = settings;
  const key = rsaKey();
  const token = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 7000 } });
  const base: ConfigTree = {
    upstream: { url: urlOf((await startServer(t, 'receiver')).port) },
    issuers: { core: { jwks_url: (await startJwksServer(t, { keys: [key] })).url } },
  };
  const collector = createServer({ keepAliveTimeout: 600_000 }, (req, res) => req.resume().on('end', () => res.end()));
  const endpoint = urlOf((await listen(t, collector)).port);
  const ready = { path: '/orders', headers: { Authorization: `Bearer ${token}` } };
  const plan = writePlan(tempDir(t), planOf(token));
  const results: { name: string; proxy: Proxy; cpuUs: number[]; requests: number }[] = [];
  for (const [name, ratio] of ratios) {
    const telemetry = ratio === null ? {} : { telemetry: { otlp: { endpoint }, traces: { ratio } } };
    const proxy = await startSallyport(t, { ...base, ...telemetry }, ready);
    results.push({ name, proxy, cpuUs: [], requests: 1 });
  }
  for (let round = 0; round <= rounds; round += 1) {
    for (const result of results) {
      const { name, proxy, cpuUs } = result;
      const beforeUs = cpuMicroseconds(proxy.pid);
      const load = await runLoad({ port: proxy.port, plan, seconds, connections, wrk });
      if (load.broken > 0 || load.requests === 0) throw new Error(`${name}: ${String(load.broken)} broke`);
      result.requests += load.requests;
      if (round === 0) continue;
      const perRequestUs = (cpuMicroseconds(proxy.pid) - beforeUs) / load.requests;
      cpuUs.push(perRequestUs);
      settings.onRun?.(`round ${String(round)}, ${name}: ${perRequestUs.toFixed(1)} µs`);
    }
  }
  return Promise.all(
    results.map(async ({ name, proxy, cpuUs, requests }) => {
      const metric = await readMetrics(proxy);
      const share = (result: string): number =>
        metric(`sallyport_telemetry_items_total{signal="traces",result="${result}"}`) / requests;
      return { name, cpuUs: median(cpuUs), exported: share('exported'), dropped: share('dropped') };
    }),
  );
}

/** The result as a Markdown table. */
export function telemetryTable(measured: readonly MeasuredTelemetry[]): string {
  const unit = measured[0]?.cpuUs ?? 1;
  const rows = measured.map(({ name, cpuUs, exported, dropped }) => [
    name,
    cpuUs.toFixed(1),
    (cpuUs / unit).toFixed(3),
    exported.toFixed(2),
    dropped.toFixed(2),
  ]);
  const head = ['telemetry', 'CPU, µs a request', 'to off', 'spans exported a request', 'spans dropped a request'];
  return markdown(head, rows, 1);
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${String(port)}`;
}
