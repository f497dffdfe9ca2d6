import type { Redis } from 'ioredis';
import { connectTimeoutMs, createConnection, useDatabase, withDeadline } from './connection.js';
import { parseInfo, type ServerFacts } from '../topology/server-checks.js';
import { runScript, type ScriptCall, type ScriptReply } from '../scripts/run-script.js';
import type { RedisAddress, RedisSettings } from './settings.js';
import { DatabaseRefused, OthersReply, reasonOf, replyCode } from '../scripts/errors.js';

/**
 * One connection of its own: what waits on it holds up nobody else. Nothing is asked of it before its server was looked
 * at.
 */
export interface NodeConnection {
  /** What the server said of itself since this connected, at the last look; `null` before the first. */
  readonly facts: () => ServerFacts | null;
  /** Rejects with what ioredis says, or with `DeadlinePassed`. */
  readonly run: (call: ScriptCall) => Promise<ScriptReply>;
  /** Looks at the server again now. */
  readonly look: () => void;
  /** Connects anew: who is behind the address may have changed. `why` is told as long as nothing else is known. */
  readonly renew: (why?: string) => void;
  readonly close: () => void;
}

/** What a connection tells. */
export interface NodeConnectionEvents {
  /** Called with each look before it counts; what fails in it fails the look. `ask` runs a script on the connection. */
  readonly examine?: (facts: ServerFacts, ask: (call: ScriptCall) => Promise<ScriptReply>) => Promise<void>;
  readonly looked: (facts: ServerFacts) => void;
  /** The server took the connection, and has not said anything yet. */
  readonly connected?: () => void;
  readonly lost: (reason: string) => void;
}

/** Milliseconds that a look may take. */
const lookTimeoutMs = 5_000;
/** Longest pause between two attempts to connect, milliseconds. */
const longestPauseMs = 1_000;

/** Connects to a server, looks at it, and keeps doing so after each loss. */
export function createNodeConnection(
  settings: RedisSettings,
  address: RedisAddress,
  events: NodeConnectionEvents,
): NodeConnection {
  let facts: ServerFacts | null = null;
  let closed = false;
  let looking = false;
  let attempts = 0;
  let reason: string | null = null;
  let overdue: NodeJS.Timeout | null = null;
  const connection = createConnection(settings, address, () => pauseMs(attempts));

  connection.on('connecting', () => {
    attempts += 1;
    // A server that takes the connection and then says nothing, not even to AUTH, would leave us waiting for ever.
    expect(connectTimeoutMs + lookTimeoutMs);
  });
  connection.on('connect', () => {
    reason = null;
    events.connected?.();
  });
  connection.on('ready', () => void look());
  connection.on('error', (error: Error) => {
    reason = reasonOf(error);
  });
  connection.on('close', lose);
  connection.connect().catch(ignore);

  return {
    facts: () => facts,
    run: async (call) => withDeadline(runScript(connection, call, facts?.majorVersion ?? 6), call.deadlineMs),
    look: () => void look(),
    renew,
    close: () => {
      closed = true;
      facts = null;
      if (overdue !== null) clearTimeout(overdue);
      connection.disconnect(false);
    },
  };

  async function look(): Promise<void> {
    if (looking || closed || connection.status !== 'ready') return;
    looking = true;
    try {
      const found = await withDeadline(examined(), lookTimeoutMs);
      if (overdue !== null) clearTimeout(overdue);
      attempts = 0;
      reason = null;
      facts = found;
      events.looked(found);
    } catch (error) {
      // Where we connect anew, it is known why. What ioredis had to say of the database names neither it nor a fix.
      if (reason === null || error instanceof DatabaseRefused) reason = reasonOf(error);
      renew();
    } finally {
      looking = false;
    }
  }

  async function examined(): Promise<ServerFacts> {
    if (facts === null) await useDatabase(connection, settings);
    const found = await inspect(connection, settings);
    await events.examine?.(found, async (call) => runScript(connection, call, found.majorVersion ?? 6));
    return found;
  }

  function expect(withinMs: number): void {
    if (overdue !== null) clearTimeout(overdue);
    overdue = setTimeout(() => {
      reason = 'no answer to the first questions';
      renew();
    }, withinMs);
    overdue.unref();
  }

  function renew(why?: string): void {
    if (closed || connection.status === 'reconnecting' || connection.status === 'end') return;
    reason = why ?? reason;
    facts = null;
    connection.disconnect(true);
  }

  function lose(): void {
    facts = null;
    if (!closed) events.lost(reason ?? 'the connection was lost');
  }
}

async function inspect(connection: Redis, { replicas }: RedisSettings): Promise<ServerFacts> {
  const found = parseInfo(await infoOf(connection));
  // Waits for nobody; a user without the right to wait is told of here, not by the first write.
  if (replicas > 0 && found.role === 'master') await connection.call('wait', '0', '0');
  return found;
}

/** A user without the right to ask learns nothing: what is missing then is said in the words of `unfitnessOf`. */
async function infoOf(connection: Redis): Promise<string> {
  try {
    const info: unknown = await connection.info();
    if (info === '' || (typeof info === 'string' && info.includes('redis_version:'))) return info;
    throw new OthersReply();
  } catch (error) {
    if (replyCode(error) === 'NOPERM') return '';
    throw error;
  }
}

/** Grows with the attempts and differs between processes: a server that comes back is not met by all at once. */
function pauseMs(attempts: number): number {
  return Math.min(longestPauseMs, 25 * 2 ** Math.min(attempts, 6)) * (0.5 + Math.random() / 2);
}

function ignore(): void {
  // What went wrong is told by the events.
}
