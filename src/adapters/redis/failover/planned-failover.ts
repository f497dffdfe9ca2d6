import { setTimeout as delay } from 'node:timers/promises';
import { replyOf, createCommandConnection, type CommandConnection } from '../client/command-connection.js';
import { nameOf } from '../topology/discovery.js';
import type { FailoverPlan } from './checks.js';
import { replicationOf, type ListedReplica, type Replication } from './replication-info.js';
import type { RedisAddress, RedisSettings } from '../client/settings.js';
import { createWriteHold, type WriteHold } from './write-hold.js';

/** What a fail-over came to. Durations in milliseconds. */
export interface FailoverOutcome {
  /** Whether another server is primary now, and the old one its replica. */
  readonly isDone: boolean;
  readonly newPrimary: RedisAddress | null;
  /** From the first moment of the hold until the new primary was there; `null` where it is not. */
  readonly promotedAfterMs: number | null;
  /** How long writes were held on the old primary. */
  readonly heldMs: number;
  /** Replicas of the new primary. */
  readonly replicas: readonly ListedReplica[];
  /** What went wrong, or looks so. */
  readonly problems: readonly string[];
}

interface FailoverOptions {
  /** Name by which the Sentinels know the primary. */
  readonly name: string;
  /** From the hold's first moment, milliseconds. */
  readonly timeoutMs: number;
  /** Told of each step. */
  readonly say: (step: string) => void;
  /** How often the operator has asked to stop. */
  readonly stops: () => number;
}

/** Pause between two looks, and how long replicas may take to catch up once writes are held, milliseconds. */
const lookEveryMs = 200;
const catchUpWithinMs = 5_000;
/** How long the new primary may take to have the replicas that the config asks for, milliseconds. */
const replicasWithinMs = 10_000;

/**
 * Holds writes, has the Sentinels promote a replica, makes the old primary a replica of it, and lets go: let go before,
 * it confirms writes that the new one never sees. The Sentinels would make it a replica, too, but not while writes are
 * held: what they announce themselves with is held, and so is all that they say after. They cannot be stopped once they
 * were told.
 */
export async function failOver(
  settings: RedisSettings,
  plan: FailoverPlan,
  options: FailoverOptions,
): Promise<FailoverOutcome> {
  const open = (address: RedisAddress): CommandConnection => createCommandConnection(settings, address, 'server');
  const servers = {
    old: open(plan.primary),
    hold: open(plan.primary),
    replicas: plan.replicas.map(({ address }) => open(address)),
  };
  const sentinel = createCommandConnection(settings, plan.sentinel, 'sentinel');
  try {
    return await run({
      settings,
      plan,
      options,
      sentinel,
      old: servers.old,
      replicas: servers.replicas,
      hold: createWriteHold(servers.hold),
    });
  } finally {
    for (const server of [sentinel, servers.old, servers.hold, ...servers.replicas]) server.close();
  }
}

interface Parts {
  readonly settings: RedisSettings;
  readonly plan: FailoverPlan;
  readonly options: FailoverOptions;
  readonly sentinel: CommandConnection;
  readonly old: CommandConnection;
  readonly replicas: readonly CommandConnection[];
  readonly hold: WriteHold;
}

async function run(parts: Parts): Promise<FailoverOutcome> {
  const {
    options: { timeoutMs, say, name },
    plan,
    hold,
    sentinel,
  } = parts;
  const problems: string[] = [];
  const deadlineMs = performance.now() + timeoutMs;
  const failed = async (problem: string): Promise<FailoverOutcome> => {
    problems.push(`${problem}; no fail-over was begun`, ...(await letGo(parts)));
    return { isDone: false, newPrimary: null, promotedAfterMs: null, heldMs: hold.heldMs(), replicas: [], problems };
  };

  const unheld = await hold.begin();
  if (unheld?.mayHold === false) {
    problems.push(`writes could not be held: ${unheld.reason}; nothing was done`);
    return { isDone: false, newPrimary: null, promotedAfterMs: null, heldMs: 0, replicas: [], problems };
  }
  if (unheld !== null) return failed(`writes could not be held: ${unheld.reason}`);
  say(`writes are held on ${nameOf(plan.primary)}`);
  const atHold = await caughtUp(parts, Math.min(deadlineMs, performance.now() + catchUpWithinMs));
  if (typeof atHold === 'string') return failed(atHold);
  say('the replicas have all that was written');
  if (parts.options.stops() > 0) return failed('stopped by a signal');
  const told = await replyOf(sentinel, 'sentinel', 'failover', name);
  if ('failure' in told && told.isRefused) return failed(`the Sentinel refused: ${told.failure}`);
  if ('failure' in told) problems.push(`the Sentinel gave no answer (${told.failure}); it may have begun all the same`);
  else say('the Sentinel has begun');
  return followed(parts, atHold, deadlineMs, problems);
}

/** @returns why not, in words; or what the old primary was when every replica had all of it. */
async function caughtUp({ old, plan, options }: Parts, deadlineMs: number): Promise<Replication | string> {
  let held: Replication | null = null;
  let late: readonly string[] = [];
  do {
    if (options.stops() > 0) return 'stopped by a signal';
    const info = await replyOf(old, 'info');
    if (!('failure' in info)) {
      const found = replicationOf(String(info.reply));
      if (found.role !== 'master') return `${nameOf(plan.primary)} is a ${found.role} now`;
      // What was written before the hold is in the first reply; it grows by what servers say to each other.
      held ??= found;
      const wanted = held.offset;
      late = plan.replicas
        .map(({ address }) => nameOf(address))
        .filter((name) => (found.replicas.find(({ address }) => nameOf(address) === name)?.offset ?? -1) < wanted);
      if (late.length === 0) return held;
    }
    await delay(lookEveryMs);
  } while (performance.now() < deadlineMs);
  return held === null ? `${nameOf(plan.primary)} gave no answer` : `not in step in time: ${late.join(', ')}`;
}

interface Progress {
  /** Which of the replicas was promoted. */
  readonly next: CommandConnection | null;
  readonly promotedAfterMs: number | null;
  readonly isDemoted: boolean;
  readonly problems: readonly string[];
}

async function followed(
  parts: Parts,
  atHold: Replication,
  deadlineMs: number,
  before: readonly string[],
): Promise<FailoverOutcome> {
  const { plan, hold, settings } = parts;
  const progress = await watched(parts, atHold, deadlineMs);
  const { next, promotedAfterMs, isDemoted } = progress;
  const problems = [...before, ...progress.problems];
  if (!isDemoted) problems.push(...undone(parts, next));
  const lapsedMs = hold.lapsedMs();
  if (lapsedMs > 0) {
    problems.push(
      `the hold may have been over for ${seconds(lapsedMs)} before the end: what was written then may be lost`,
    );
  }
  // The new primary takes writes: what waits at the old one is better never confirmed.
  if (!isDemoted && next !== null && parts.options.stops() < 2) {
    hold.leave();
    const left = `for up to ${seconds(hold.leftMs())} more`;
    problems.push(
      `writes stay held on ${nameOf(plan.primary)} ${left}: make it a replica of ${nameOf(next.address)} within that time`,
    );
  } else problems.push(...(await letGo(parts)));
  const heldMs = hold.heldMs();
  const replication =
    next === null
      ? null
      : await settled(parts, next, settings.replicas, Math.min(deadlineMs, performance.now() + replicasWithinMs));
  if (next !== null) problems.push(...newPrimaryProblems(next.address, replication, atHold, settings.replicas));
  return {
    isDone: isDemoted,
    newPrimary: next?.address ?? null,
    promotedAfterMs,
    heldMs,
    replicas: replication?.replicas ?? [],
    problems,
  };
}

async function watched(parts: Parts, atHold: Replication, deadlineMs: number): Promise<Progress> {
  const {
    old,
    replicas,
    hold,
    options: { say, stops },
  } = parts;
  const problems: string[] = [];
  let next: CommandConnection | null = null;
  let promotedAfterMs: number | null = null;
  let stopsSaid = 0;
  while (performance.now() < deadlineMs && stops() < 2) {
    if (stops() > stopsSaid) {
      stopsSaid = stops();
      say(
        'the Sentinels cannot be stopped; writes are held until the old primary is a replica, so that none is lost. Another signal lets go at once',
      );
    }
    const [was, ...are] = await Promise.all([lookAt(old), ...replicas.map(lookAt)]);
    const promoted = are.findIndex((replication) => replication?.role === 'master');
    if (next === null && promoted !== -1) {
      next = replicas[promoted] ?? null;
      promotedAfterMs = hold.heldMs();
      if (next !== null) say(`${nameOf(next.address)} is primary`);
    }
    if (was?.role === 'master' && was.runId !== atHold.runId && problems.length === 0) {
      problems.push(
        `${nameOf(old.address)} restarted meanwhile, which ended the hold: what was written then may be lost`,
      );
    }
    if (next !== null && was?.role === 'slave') {
      say(`${nameOf(old.address)} is a replica`);
      return { next, promotedAfterMs, isDemoted: true, problems };
    }
    if (next !== null && (await isNamed(parts, next.address))) await demote(parts, next.address);
    else await delay(lookEveryMs);
  }
  return { next, promotedAfterMs, isDemoted: false, problems };
}

/** Whether the Sentinel has seen the promotion, and so carries it on. */
async function isNamed({ sentinel, options: { name } }: Parts, address: RedisAddress): Promise<boolean> {
  const named = await replyOf(sentinel, 'sentinel', 'get-master-addr-by-name', name);
  return (
    'reply' in named &&
    Array.isArray(named.reply) &&
    nameOf({ host: String(named.reply[0]), port: Number(named.reply[1]) }) === nameOf(address)
  );
}

/** What comes of it is seen at the next look. */
async function demote({ old, options: { say } }: Parts, { host, port }: RedisAddress): Promise<void> {
  const told = await replyOf(old, 'replicaof', host, String(port));
  if ('failure' in told) {
    await delay(lookEveryMs);
    return;
  }
  const written = await replyOf(old, 'config', 'rewrite');
  if ('failure' in written && !written.failure.includes('without a config file')) {
    say(
      `${nameOf(old.address)} did not write it to its file (${written.failure}): restarted now, it is a primary until the Sentinels see it`,
    );
  }
}

async function lookAt(server: CommandConnection): Promise<Replication | null> {
  const info = await replyOf(server, 'info');
  return 'failure' in info ? null : replicationOf(String(info.reply));
}

function undone({ plan, options }: Parts, next: CommandConnection | null): readonly string[] {
  const when = options.stops() > 1 ? 'when a signal ended the wait' : `within ${seconds(options.timeoutMs)}`;
  if (next === null) {
    return [
      `no replica was promoted ${when}; the Sentinels may still do so: see what SENTINEL MASTER ${options.name} says`,
    ];
  }
  return [`${nameOf(plan.primary)} was no replica ${when}: what it takes from now on is lost`];
}

async function letGo({ hold, plan }: Parts): Promise<readonly string[]> {
  const reason = await hold.release();
  const place = nameOf(plan.primary);
  return reason === null
    ? []
    : [`writes could not be let go on ${place} (${reason}); the hold ends by itself within ${seconds(hold.leftMs())}`];
}

/** Waits until the new primary has the replicas that reservations wait for. */
async function settled(
  { options }: Parts,
  next: CommandConnection,
  needed: number,
  deadlineMs: number,
): Promise<Replication | null> {
  for (;;) {
    const found = await lookAt(next);
    const isEnough = found !== null && onlineOf(found) >= needed;
    if (isEnough || performance.now() >= deadlineMs || options.stops() > 0) return found;
    await delay(lookEveryMs);
  }
}

function onlineOf({ replicas }: Replication): number {
  return replicas.filter(({ state }) => state === 'online').length;
}

function newPrimaryProblems(
  address: RedisAddress,
  found: Replication | null,
  atHold: Replication,
  needed: number,
): readonly string[] {
  const place = nameOf(address);
  if (found === null) return [`the new primary ${place} gives no answer`];
  if (found.role !== 'master') return [`the new primary ${place} says that it is a ${found.role}`];
  const hasAll = found.formerReplid === atHold.replid && found.formerEnd > atHold.offset;
  return [
    ...(hasAll
      ? []
      : [`${place} does not say that it has all that was written before the hold: what is missing is lost`]),
    ...(onlineOf(found) >= needed
      ? []
      : [
          `${place} has ${String(onlineOf(found))} replicas in step and store.redis.replicas asks for ${String(needed)}: reserved writes get 503 until it has`,
        ]),
  ];
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
