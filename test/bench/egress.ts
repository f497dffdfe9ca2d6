/**
 * What the calling side costs: CPU of a request through it and through both sides, of a retry, and memory of a body
 * that is held.
 */
import { writeFileSync } from 'node:fs';
import { createServer, request, type ClientRequest, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { freePort, listen } from '../support/listening.js';
import type { ConfigTree } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { mintToken } from '../support/tokens.js';
import { until } from '../support/until.js';
import { startServer } from './child.js';
import { cpuMicroseconds, residentMib } from './cpu.js';
import { runLoad } from './load.js';
import { markdown } from './markdown.js';
import { planOf, writePlan, type RequestPlan } from './request-plan.js';
import { readMetrics, startSallyport, type Proxy } from './sallyport.js';
import { median } from './statistics.js';

export interface EgressSettings {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly wrk: boolean;
  /** Told of each run as it ends. */
  readonly onRun?: (text: string) => void;
}

/** Medians over the rounds. */
export interface MeasuredWay {
  readonly name: string;
  /** Microseconds of CPU of a request in all of our processes on the way. */
  readonly cpuUs: number;
}

export interface MeasuredEgress {
  /** The answering side alone is the one that the others are compared with. */
  readonly ways: readonly MeasuredWay[];
  /** KiB that a process grows by for each body that it holds, and the size of a body. */
  readonly heldKib: number;
  readonly bodyKib: number;
}

interface Way {
  readonly name: string;
  readonly port: number;
  readonly plan: RequestPlan;
  readonly pids: readonly number[];
}

/** Bodies that are held at once for each target: one caller has three quarters of the 128 connections to one. */
const bodies = 64;
/** Targets that hold bodies: so many that what V8 has not collected yet is little beside what is held. */
const holding = Array.from({ length: 4 }, (_, index) => `far-${String(index)}`);
/** Processes that hold bodies, one after the other: where memory is collected differs from one to the next. */
const heldProcesses = 5;
/** Bodies of 1 KiB that are held before. */
const smallBodies = 16;
const bodyBytes = 256 * 1024;
const prefix = '/far';

export async function measureEgress(t: Scope, settings: EgressSettings): Promise<MeasuredEgress> {
  const { seconds, rounds, connections, wrk } = settings;
  const key = rsaKey();
  const token = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 7000 } });
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, token, { mode: 0o600 });
  const receiver = (await startServer(t, 'receiver')).port;
  const base: ConfigTree = {
    upstream: { url: urlOf(receiver) },
    issuers: { core: { jwks_url: (await startJwksServer(t, { keys: [key] })).url } },
  };
  const ready = { path: '/orders', headers: { Authorization: `Bearer ${token}` } };
  const startCalling = async (target: number): Promise<Proxy & { readonly egressPort: number }> => {
    const egressPort = await freePort();
    const egress = {
      listen: { port: egressPort },
      tokens: { own: { file: tokenFile } },
      hold_bodies: '256MiB',
      targets: ['far', ...holding].map((name) => ({
        name,
        prefix: `/${name}`,
        url: urlOf(target),
        token: 'own',
        allow: [{ methods: ['*'], path: '/**' }],
        idempotency: 'generate',
        retries: { budget: '100%' },
      })),
    };
    return { ...(await startSallyport(t, { ...base, egress }, ready)), egressPort };
  };
  const answering = await startSallyport(t, base, ready);
  const alone = await startCalling(receiver);
  const before = await startCalling(answering.port);
  const steady = await startCalling(await serve(t, (_req, res) => res.end('done')));
  let isSecond = false;
  const failing = await startCalling(
    await serve(t, (_req, res) => {
      isSecond = !isSecond;
      if (isSecond) res.writeHead(503, { 'Proxy-Status': 'sallyport', 'Retry-After': '0' });
      res.end('done');
    }),
  );
  const plain: RequestPlan = { ...planOf(token), tokens: [] };
  const through: RequestPlan = { ...plain, paths: [`${prefix}/orders`] };
  const ways: readonly Way[] = [
    { name: 'answering side alone', port: answering.port, plan: planOf(token), pids: [answering.pid] },
    { name: 'direct', port: receiver, plan: plain, pids: [] },
    { name: 'calling side alone', port: alone.egressPort, plan: through, pids: [alone.pid] },
    { name: 'both sides', port: before.egressPort, plan: through, pids: [before.pid, answering.pid] },
    { name: 'calling side, no retry', port: steady.egressPort, plan: through, pids: [steady.pid] },
    { name: 'calling side, about one retry each', port: failing.egressPort, plan: through, pids: [failing.pid] },
  ];
  const results = ways.map((way) => ({ way, plan: writePlan(tempDir(t), way.plan), cpuUs: [] as number[] }));
  // The first round warms up and does not count.
  for (let round = 0; round <= rounds; round += 1) {
    for (const { way, plan, cpuUs } of results) {
      const cpu = (): number => way.pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
      const beforeUs = cpu();
      const load = await runLoad({ port: way.port, plan, seconds, connections, wrk });
      const perRequestUs = (cpu() - beforeUs) / Math.max(1, load.requests);
      if (load.broken > 0 || load.requests === 0) throw new Error(`${way.name}: ${String(load.broken)} broke`);
      if (round === 0) continue;
      cpuUs.push(perRequestUs);
      settings.onRun?.(`round ${String(round)}, ${way.name}: ${perRequestUs.toFixed(0)} µs`);
    }
  }
  const held: number[] = [];
  for (let process = 0; process < heldProcesses; process += 1) {
    held.push(await heldKib(await startCalling(await serve(t, (req) => void req.resume()))));
    settings.onRun?.(`held body: ${(held.at(-1) ?? 0).toFixed(0)} KiB`);
  }
  return {
    ways: results.map(({ way: { name }, cpuUs }) => ({ name, cpuUs: median(cpuUs) })),
    heldKib: median(held),
    bodyKib: bodyBytes / 1024,
  };
}

/** The result as Markdown. */
export function egressTable({ ways, heldKib: held, bodyKib }: MeasuredEgress): string {
  const unit = ways[0]?.cpuUs ?? 1;
  const rows = ways.map(({ name, cpuUs }) => [name, cpuUs.toFixed(0), (cpuUs / unit).toFixed(2)]);
  const table = markdown(['way', 'CPU of ours, µs a request', 'to the answering side'], rows, 1);
  return `${table}\n\nA held body of ${String(bodyKib)} KiB takes ${held.toFixed(0)} KiB.`;
}

/** What a process grows by for each large body that it holds beyond small ones, while the target says nothing. */
async function heldKib(calling: Proxy & { readonly egressPort: number }): Promise<number> {
  const sent: ClientRequest[] = [];
  let heldBytes = 0;
  const hold = async (count: number, bytes: number): Promise<number> => {
    const body = Buffer.alloc(bytes, 'x');
    for (const name of holding) {
      const url = `${urlOf(calling.egressPort)}/${name}/orders`;
      for (let at = 0; at < count; at += 1) {
        const one = request(url, { method: 'POST' }).on('error', () => undefined);
        one.end(body);
        sent.push(one);
        heldBytes += bytes;
      }
    }
    await until('all of it is held', async () => {
      const metric = await readMetrics(calling);
      return metric('sallyport_egress_held_bytes') === heldBytes;
    });
    return residentMib(calling.pid);
  };
  // What connections, requests and code that has run take is not what is asked.
  const smallMib = await hold(smallBodies, 1024);
  const largeMib = await hold(bodies, bodyBytes);
  for (const one of sent) one.destroy();
  return ((largeMib - smallMib) * 1024) / (bodies * holding.length);
}

async function serve(t: Scope, answer: RequestListener): Promise<number> {
  return (await listen(t, createServer({ keepAliveTimeout: 600_000 }, answer))).port;
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${String(port)}`;
}
