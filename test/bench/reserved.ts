/**
 * What a reserved write costs beside the same write unreserved, in CPU of the proxy, in time, and in round trips to
 * Redis.
 */
import type { Redis } from 'ioredis';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { startRedis, startReplica } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { mintToken } from '../support/tokens.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { startServer, type Child } from './child.js';
import { cpuMicroseconds } from './cpu.js';
import { runWrites } from './load.js';
import { markdown } from './markdown.js';
import { startSallyport } from './sallyport.js';
import { median } from './statistics.js';

export interface ReservedSettings {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  /** Told of each run as it ends. */
  readonly onRun?: (text: string) => void;
}

/** Medians over the rounds. */
interface ReservedRun {
  /** Microseconds of the proxy's CPU for a write. */
  readonly cpuUs: number;
  readonly writesPerS: number;
  readonly medianMs: number;
  readonly slowMs: number;
  /** Calls of scripts, and of WAIT, that Redis counted for a write. */
  readonly scripts: number;
  readonly waits: number;
}

export interface MeasuredWrite extends ReservedRun {
  readonly name: string;
}

interface Contender extends Child {
  readonly name: string;
  readonly redis: Redis | null;
}

/** Puts the same load of writes on each, in turn, round by round. */
export async function measureReserved(t: Scope, settings: ReservedSettings): Promise<readonly MeasuredWrite[]> {
  const key = rsaKey();
  const token = mintToken({ key, claims: { exp: Math.floor(Date.now() / 1000) + 7000 } });
  const runs = (await startContenders(t, token)).map((contender) => ({ contender, results: [] as ReservedRun[] }));
  // The first round warms up and does not count.
  for (let round = 0; round <= settings.rounds; round += 1) {
    for (const { contender, results } of runs) {
      const result = await runOnce(contender, token, {
        ...settings,
        seconds: round === 0 ? Math.min(settings.seconds, 2) : settings.seconds,
      });
      if (round === 0) continue;
      results.push(result);
      settings.onRun?.(
        `round ${round}, ${contender.name}: ${result.cpuUs.toFixed(0)} µs, ${result.medianMs.toFixed(2)} ms`,
      );
    }
  }
  return runs.map(({ contender: { name }, results }) => {
    const middle = (of: (result: ReservedRun) => number): number => median(results.map(of));
    return {
      name,
      cpuUs: middle(({ cpuUs }) => cpuUs),
      writesPerS: middle(({ writesPerS }) => writesPerS),
      medianMs: middle(({ medianMs }) => medianMs),
      slowMs: middle(({ slowMs }) => slowMs),
      scripts: middle(({ scripts }) => scripts),
      waits: middle(({ waits }) => waits),
    };
  });
}

/** The result as a Markdown table. */
export function reservedTable(measured: readonly MeasuredWrite[]): string {
  const [plain] = measured;
  const head = ['write', 'CPU of a write, µs', 'more, µs', 'writes/s', 'median, ms', '99 %, ms', 'scripts', 'WAIT'];
  const rows = measured.map(({ name, cpuUs, writesPerS, medianMs, slowMs, scripts, waits }) => [
    name,
    cpuUs.toFixed(0),
    (cpuUs - (plain?.cpuUs ?? 0)).toFixed(0),
    writesPerS.toFixed(0),
    medianMs.toFixed(2),
    slowMs.toFixed(2),
    scripts.toFixed(2),
    waits.toFixed(2),
  ]);
  return markdown(head, rows, 1);
}

async function runOnce(
  contender: Contender,
  token: string,
  { seconds, connections }: ReservedSettings,
): Promise<ReservedRun> {
  const counted = await countCalls(contender.redis);
  const cpuBefore = cpuMicroseconds(contender.pid);
  const load = await runWrites({ port: contender.port, seconds, connections, tokens: [token] });
  const cpuUs = (cpuMicroseconds(contender.pid) - cpuBefore) / Math.max(1, load.requests);
  if (load.refused + load.broken > 0) {
    throw new Error(`${contender.name}: ${load.refused + load.broken} of ${load.requests} writes failed`);
  }
  const calls = await countCalls(contender.redis);
  return {
    cpuUs,
    writesPerS: load.requests / load.seconds,
    medianMs: load.medianMs,
    slowMs: load.slowMs,
    scripts: (calls.scripts - counted.scripts) / load.requests,
    waits: (calls.waits - counted.waits) / load.requests,
  };
}

async function startContenders(t: Scope, token: string): Promise<readonly Contender[]> {
  const receiver = (await startServer(t, 'receiver')).port;
  const jwks = (await startJwksServer(t, { keys: [rsaKey()] })).url;
  const alone = await startRedis(t);
  const primary = await startRedis(t);
  await startReplica(t, primary.port);
  const start = async (name: string, redis: Redis | null, store: ConfigTree | null): Promise<Contender> => {
    const config = {
      upstream: { url: `http://127.0.0.1:${receiver}` },
      issuers: { core: { jwks_url: jwks } },
      ...(store === null ? {} : { store }),
    };
    const idempotency = store === null ? 'none' : 'required';
    const route = {
      name: 'create-order',
      methods: ['POST'],
      path: '/orders',
      subjects: ['checkout'],
      permissions: ['orders:write'],
      idempotency,
    };
    const headers = { Authorization: `Bearer ${token}`, 'Idempotency-Key': 'ready' };
    const ready = { method: 'POST', path: '/orders', headers, body: '' };
    return {
      name,
      redis,
      ...(await startSallyport(t, { ...config, shutdown: { delay: '0s', grace: '20s' }, routes: [route] }, ready)),
    };
  };
  const place = (port: number): ConfigTree => ({
    url: `redis://127.0.0.1:${port}`,
    reserve_timeout: '5s',
    settle_timeout: '5s',
  });
  return [
    await start('unreserved', null, null),
    await start('reserved, memory', null, { memory: {} }),
    await start('reserved, Redis', alone.client, { redis: place(alone.port) }),
    await start('reserved, Redis, replicas: 1', primary.client, { redis: { ...place(primary.port), replicas: 1 } }),
  ];
}

/** Calls that Redis has counted. */
async function countCalls(redis: Redis | null): Promise<{ readonly scripts: number; readonly waits: number }> {
  if (redis === null) return { scripts: 0, waits: 0 };
  const stats = await redis.info('commandstats');
  const count = (name: string): number => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
  return { scripts: count('eval') + count('evalsha'), waits: count('wait') };
}
