/** What one primary of Redis takes in reserved writes, and what three of a Cluster take. */
import { setTimeout } from 'node:timers/promises';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { startCluster } from '../support/redis-cluster.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { mintToken } from '../support/tokens.js';
import type { ConfigTree } from '../support/proxy-process.js';
import { startServer } from './child.js';
import { runWrites } from './load.js';
import { markdown } from './markdown.js';
import { startSallyport, type Proxy } from './sallyport.js';
import { median } from './statistics.js';

export interface PrimariesSettings {
  readonly seconds: number;
  readonly rounds: number;
  readonly connections: number;
  readonly onRun?: (text: string) => void;
}

/** Medians over the rounds. */
export interface MeasuredPrimaries {
  readonly count: number;
  /** What went through the proxy, which is what gives way first here. */
  readonly writesPerS: number;
  /**
   * Microseconds of CPU for a write, of all primaries and of the one that was busiest, without what they take at rest.
   */
  readonly cpuUs: number;
  readonly busiestUs: number;
  /** Writes a second at which the busiest has 70 % of a core to do. */
  readonly capacity: number;
}

interface Contender {
  readonly count: number;
  readonly proxy: Proxy;
  readonly primaries: readonly RedisServer[];
}

type Result = Omit<MeasuredPrimaries, 'count' | 'capacity'>;

interface Run {
  readonly contender: Contender;
  /** Of each primary, microseconds of CPU in a second in which nobody writes. */
  readonly restUsPerS: readonly number[];
  readonly results: Result[];
}

/** Each writes as often as the others; a primary gets those whose keys lie in its slots. */
const callers = Array.from({ length: 300 }, (_, index) => `caller-${String(index)}`);
/** Share of a core that a primary is to have to do, as docs/performance.md plans. */
const plannedShare = 0.7;
const restS = 1;

/** Puts the same writes on a proxy before one primary and on one before three, in turn, round by round. */
export async function measurePrimaries(t: Scope, settings: PrimariesSettings): Promise<readonly MeasuredPrimaries[]> {
  const key = rsaKey();
  const tokens = callers.map((sub) => mintToken({ key, claims: { sub, exp: Math.floor(Date.now() / 1000) + 7000 } }));
  const receiver = (await startServer(t, 'receiver')).port;
  const jwks = (await startJwksServer(t, { keys: [key] })).url;
  const one = await startRedis(t, ['--appendfsync', 'everysec']);
  const cluster = await startCluster(t, 3, 0);
  const start = async (primaries: readonly RedisServer[], redis: ConfigTree): Promise<Contender> => {
    const headers = { Authorization: `Bearer ${tokens[0] ?? ''}`, 'Idempotency-Key': 'ready' };
    const proxy = await startSallyport(
      t,
      {
        upstream: { url: `http://127.0.0.1:${String(receiver)}` },
        issuers: { core: { jwks_url: jwks } },
        shutdown: { delay: '0s', grace: '20s' },
        store: { redis: { ...redis, reserve_timeout: '5s', settle_timeout: '5s' } },
        routes: [
          {
            name: 'create-order',
            methods: ['POST'],
            path: '/orders',
            subjects: callers,
            permissions: ['orders:write'],
            idempotency: 'required',
          },
        ],
      },
      { method: 'POST', path: '/orders', headers, body: '' },
    );
    return { count: primaries.length, proxy, primaries };
  };
  const nodes = cluster.nodes.map(({ port }) => `127.0.0.1:${String(port)}`);
  const contenders = [
    await start([one], { url: `redis://127.0.0.1:${String(one.port)}` }),
    await start(cluster.nodes, { cluster: { nodes } }),
  ];
  const runs: Run[] = [];
  for (const contender of contenders) {
    runs.push({ contender, restUsPerS: await atRest(contender.primaries), results: [] });
  }
  // The first round warms up and does not count.
  for (let round = 0; round <= settings.rounds; round += 1) {
    for (const run of runs) {
      const { contender, results } = run;
      const result = await runOnce(run, tokens, {
        ...settings,
        seconds: round === 0 ? Math.min(settings.seconds, 2) : settings.seconds,
      });
      if (round === 0) continue;
      results.push(result);
      const figures = `${result.cpuUs.toFixed(1)} µs, busiest ${result.busiestUs.toFixed(1)} µs`;
      settings.onRun?.(`round ${String(round)}, primaries: ${String(contender.count)}: ${figures}`);
    }
  }
  return runs.map(({ contender: { count }, results }) => {
    const busiestUs = median(results.map((result) => result.busiestUs));
    return {
      count,
      writesPerS: median(results.map(({ writesPerS }) => writesPerS)),
      cpuUs: median(results.map(({ cpuUs }) => cpuUs)),
      busiestUs,
      capacity: (plannedShare * 1_000_000) / busiestUs,
    };
  });
}

export function primariesTable(measured: readonly MeasuredPrimaries[]): string {
  const [one] = measured;
  const head = [
    'primaries',
    'writes/s here',
    'CPU of all for a write, µs',
    'of the busiest, µs',
    `writes/s at ${String(plannedShare * 100)} % of it`,
    'times',
  ];
  const rows = measured.map(({ count, writesPerS, cpuUs, busiestUs, capacity }) => [
    String(count),
    writesPerS.toFixed(0),
    cpuUs.toFixed(1),
    busiestUs.toFixed(1),
    capacity.toFixed(0),
    (capacity / (one?.capacity ?? capacity)).toFixed(2),
  ]);
  return markdown(head, rows, 0);
}

async function runOnce(
  { contender: { proxy, primaries }, restUsPerS }: Run,
  tokens: readonly string[],
  { seconds, connections }: PrimariesSettings,
): Promise<Result> {
  const before = await Promise.all(primaries.map(redisCpuUs));
  const load = await runWrites({ port: proxy.port, seconds, connections, tokens });
  const after = await Promise.all(primaries.map(redisCpuUs));
  if (load.refused + load.broken > 0 || load.requests === 0) {
    throw new Error(`${String(load.refused + load.broken)} of ${String(load.requests)} writes failed`);
  }
  const used = after.map(
    (value, index) =>
      Math.max(0, value - (before[index] ?? 0) - (restUsPerS[index] ?? 0) * load.seconds) / load.requests,
  );
  return {
    writesPerS: load.requests / load.seconds,
    cpuUs: used.reduce((sum, one) => sum + one, 0),
    busiestUs: Math.max(...used),
  };
}

async function atRest(primaries: readonly RedisServer[]): Promise<readonly number[]> {
  const before = await Promise.all(primaries.map(redisCpuUs));
  await setTimeout(restS * 1000);
  const after = await Promise.all(primaries.map(redisCpuUs));
  return after.map((value, index) => (value - (before[index] ?? 0)) / restS);
}

/** Of all its threads, the one that syncs its file too. */
async function redisCpuUs({ client }: RedisServer): Promise<number> {
  const text = await client.info('cpu');
  const read = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1] ?? 0);
  return (read('used_cpu_user') + read('used_cpu_sys')) * 1_000_000;
}
