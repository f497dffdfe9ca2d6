import type { RedisTopology } from '../../../config/types.js';
import { randomUUID } from 'node:crypto';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { replyOf, createCommandConnection, type CommandConnection } from '../client/command-connection.js';
import { nameOf } from '../topology/discovery.js';
import {
  replicationOf,
  watchedServer,
  watchedServers,
  type Replication,
  type WatchedServer,
} from './replication-info.js';
import type { RedisAddress, RedisSettings } from '../client/settings.js';

export type SentinelTopology = Extract<RedisTopology, { kind: 'sentinel' }>;

/** What a fail-over would begin with. */
export interface FailoverPlan {
  readonly primary: RedisAddress;
  /** The Sentinel that is told to begin. */
  readonly sentinel: RedisAddress;
  /** Replicas that may be promoted, all of them in step. */
  readonly replicas: readonly PlannedReplica[];
  /** Sentinels of the config that answered. */
  readonly sentinels: number;
  /** What stands in nobody's way, and is to be known. */
  readonly warnings: readonly string[];
}

interface PlannedReplica {
  readonly address: RedisAddress;
  readonly lagS: number;
  /** Bytes that it had not confirmed yet. */
  readonly behind: number;
}

/** Why nothing is done. */
interface FailoverRefusal {
  /** Whether something is out of reach that would have to tell. */
  readonly isUnreachable: boolean;
  readonly reasons: readonly string[];
}

/** Seconds for which a replica in step may have confirmed nothing: it does so every second. */
const maxLagS = 2;

/** Flags of Sentinel for a server that it promotes by no means. */
const awayFlags = ['s_down', 'o_down', 'disconnected'];

/** Asks everybody whether a fail-over without loss can be begun. Changes nothing. */
export async function checkFailover(
  settings: RedisSettings,
  topology: SentinelTopology,
): Promise<Result<FailoverPlan, FailoverRefusal>> {
  const sentinels = topology.nodes.map((address) => createCommandConnection(settings, address, 'sentinel'));
  try {
    return await checked(settings, topology, sentinels);
  } finally {
    for (const sentinel of sentinels) sentinel.close();
  }
}

async function checked(
  settings: RedisSettings,
  { name }: SentinelTopology,
  sentinels: readonly CommandConnection[],
): Promise<Result<FailoverPlan, FailoverRefusal>> {
  const views = await Promise.all(sentinels.map(async (sentinel) => viewOf(sentinel, name)));
  const silent = views.flatMap(({ failure }) => (failure === null ? [] : [failure]));
  const seen = views.flatMap(({ sentinel, primary }) => (primary === null ? [] : [{ sentinel, primary }]));
  const [first] = seen;
  if (first === undefined) {
    return refuse({ isUnreachable: views.every(({ isRefused }) => !isRefused), reasons: silent });
  }
  const {
    sentinel,
    primary: { address },
  } = first;
  const others = seen.filter(({ primary }) => nameOf(primary.address) !== nameOf(address));
  if (others.length > 0) {
    return no('the Sentinels name different primaries: a fail-over is in progress, or one of them is cut off');
  }
  const reasons = [...new Set(seen.flatMap(({ primary }) => primaryProblems(primary)))];
  if (reasons.length > 0) return no(...reasons);
  reasons.push(...(await sentinelProblems(sentinel, name)));

  const replicas = await replyOf(sentinel, 'sentinel', 'replicas', name);
  if ('failure' in replicas) {
    return no(...reasons, `the Sentinel ${nameOf(sentinel.address)} does not tell the replicas: ${replicas.failure}`);
  }
  const listed = await askPrimary(settings, address);
  if (!listed.ok) return refuse({ ...listed.error, reasons: [...reasons, ...listed.error.reasons] });
  const found = await checkReplicas(settings, watchedServers(replicas.reply), listed.value);
  reasons.push(...found.reasons);
  if (reasons.length > 0) return no(...reasons);
  return accept({
    primary: address,
    sentinel: sentinel.address,
    replicas: found.replicas,
    sentinels: seen.length,
    warnings: [...silent, ...found.warnings],
  });
}

function no(...reasons: readonly string[]): Result<never, FailoverRefusal> {
  return refuse({ isUnreachable: false, reasons });
}

interface SentinelView {
  readonly sentinel: CommandConnection;
  readonly primary: WatchedServer | null;
  readonly failure: string | null;
  readonly isRefused: boolean;
}

async function viewOf(sentinel: CommandConnection, name: string): Promise<SentinelView> {
  const asked = await replyOf(sentinel, 'sentinel', 'master', name);
  if (!('failure' in asked)) return { sentinel, primary: watchedServer(asked.reply), failure: null, isRefused: false };
  return {
    sentinel,
    primary: null,
    failure: `the Sentinel ${nameOf(sentinel.address)} gives no answer: ${asked.failure}`,
    isRefused: asked.isRefused,
  };
}

/** Only the Sentinel that leads a fail-over flags it, so that all are asked. */
function primaryProblems({ address, flags }: WatchedServer): readonly string[] {
  if (flags.includes('failover_in_progress')) return [`a fail-over of ${nameOf(address)} is in progress`];
  return awayFlags.some((flag) => flags.includes(flag))
    ? [`the primary ${nameOf(address)} is down, as a Sentinel sees it (${flags.join(', ')})`]
    : [];
}

async function sentinelProblems(sentinel: CommandConnection, name: string): Promise<readonly string[]> {
  const place = `the Sentinel ${nameOf(sentinel.address)}`;
  const quorum = await replyOf(sentinel, 'sentinel', 'ckquorum', name);
  // A name that nobody has: it is refused for the name, or before for the right.
  const right = await replyOf(sentinel, 'sentinel', 'failover', randomUUID());
  return [
    ...('failure' in quorum ? [`${place} says that there is no quorum: ${quorum.failure}`] : []),
    ...('failure' in right && isMissingRight(right.failure)
      ? [`${place} refuses SENTINEL FAILOVER: ${right.failure}`]
      : []),
  ];
}

function isMissingRight(failure: string): boolean {
  return /^(NOPERM|NOAUTH)/.test(failure);
}

async function askPrimary(
  settings: RedisSettings,
  address: RedisAddress,
): Promise<Result<Replication, FailoverRefusal>> {
  const server = createCommandConnection(settings, address, 'server');
  try {
    const info = await replyOf(server, 'info');
    const place = `the primary ${nameOf(address)}`;
    if ('failure' in info) {
      return refuse({ isUnreachable: !info.isRefused, reasons: [`${place} gives no answer: ${info.failure}`] });
    }
    const replication = replicationOf(String(info.reply));
    if (replication.role !== 'master') {
      return no(`${place} says that it is a ${replication.role}: a fail-over is in progress`);
    }
    const missing = await missingRights(server);
    return missing.length === 0
      ? accept(replication)
      : no(...missing.map((failure) => `${place} refuses what a fail-over needs: ${failure}`));
  } finally {
    server.close();
  }
}

/**
 * Finds out without doing anything: what is queued and discarded has no effect, and is refused all the same without the
 * right.
 */
async function missingRights(server: CommandConnection): Promise<readonly string[]> {
  const begun = await replyOf(server, 'multi');
  if ('failure' in begun) return [begun.failure];
  const asked = [
    await replyOf(server, 'client', 'pause', 'none', 'write'),
    await replyOf(server, 'client', 'unpause'),
    await replyOf(server, 'replicaof', 'none', 'none'),
  ];
  const discarded = await replyOf(server, 'discard');
  const failures = [...asked, discarded].flatMap((reply) =>
    'failure' in reply && isMissingRight(reply.failure) ? [reply.failure] : [],
  );
  return [...new Set(failures)];
}

interface CheckedReplicas {
  readonly replicas: readonly PlannedReplica[];
  readonly reasons: readonly string[];
  readonly warnings: readonly string[];
}

/** Whichever the Sentinels may promote has to be in step: they do not ask who is. */
async function checkReplicas(
  settings: RedisSettings,
  watched: readonly WatchedServer[],
  primary: Replication,
): Promise<CheckedReplicas> {
  const isAway = ({ flags }: WatchedServer): boolean => awayFlags.some((flag) => flags.includes(flag));
  const candidates = watched.filter((replica) => !isAway(replica) && replica.priority !== 0);
  const looked = await Promise.all(
    candidates.map(async ({ address }) => ({ address, ...(await checkReplica(settings, address, primary)) })),
  );
  const replicas = looked.flatMap(({ address, lagS, behind, problem }) =>
    problem === null ? [{ address, lagS, behind }] : [],
  );
  const reasons = looked.flatMap(({ problem }) => (problem === null ? [] : [problem]));
  const warnings = watched
    .filter(isAway)
    .map(({ address, flags }) => `the replica ${nameOf(address)} is down (${flags.join(', ')}), and takes no part`);
  const needed = Math.max(1, settings.replicas);
  if (replicas.length >= needed) return { replicas, reasons, warnings };
  const asked =
    settings.replicas > 0 ? `store.redis.replicas asks for ${String(settings.replicas)}` : 'one is needed to take over';
  return {
    replicas,
    warnings,
    reasons: [`replicas in step that may be promoted: ${String(replicas.length)}; ${asked}`, ...reasons, ...warnings],
  };
}

interface LookedReplica {
  readonly lagS: number;
  readonly behind: number;
  readonly problem: string | null;
}

async function checkReplica(
  settings: RedisSettings,
  address: RedisAddress,
  primary: Replication,
): Promise<LookedReplica> {
  const place = `the replica ${nameOf(address)}`;
  const bad = (problem: string): LookedReplica => ({ lagS: Infinity, behind: 0, problem: `${place} ${problem}` });
  const listed = primary.replicas.find((replica) => nameOf(replica.address) === nameOf(address));
  if (listed === undefined) return bad('is not in step: its primary does not list it');
  if (listed.state !== 'online') return bad(`is not in step: its state is ${listed.state}`);
  if (listed.lagS > maxLagS) return bad(`is not in step: it confirmed nothing for ${String(listed.lagS)} s`);
  const server = createCommandConnection(settings, address, 'server');
  try {
    const info = await replyOf(server, 'info', 'replication');
    if ('failure' in info) return bad(`gives no answer here: ${info.failure}`);
    const { role, linkUp } = replicationOf(String(info.reply));
    if (role !== 'slave') return bad(`says that it is a ${role}`);
    if (!linkUp) return bad('is not in step: its link to the primary is down');
    return { lagS: listed.lagS, behind: Math.max(0, primary.offset - listed.offset), problem: null };
  } finally {
    server.close();
  }
}
