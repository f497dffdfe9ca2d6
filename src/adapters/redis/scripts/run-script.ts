import { createHash, randomBytes } from 'node:crypto';
import type { Redis } from 'ioredis';
import { textOf } from './replies.js';
import { echoingText, type Script } from './reservation.js';
import { OthersReply, replyCode, ScriptMissing, WaitFailed } from './errors.js';

/** One script to run. */
export interface ScriptCall {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly values: readonly (string | Buffer)[];
  /** Replicas that have to confirm what it wrote; 0 asks nobody. */
  readonly replicas: number;
  /** Milliseconds from now. */
  readonly deadlineMs: number;
  /**
   * Whether the text goes along at once: no server keeps what hardly anybody runs, and would `WAIT` for nothing before
   * it says so.
   */
  readonly withText?: boolean;
  /** Whether the server was named by another one that is handing the keys over to it (Cluster, `ASK`). */
  readonly asking?: boolean;
}

export interface ScriptReply {
  readonly reply: unknown;
  readonly confirmedReplicas: number | null;
}

/** Begins the name of each call of this process. */
const processName = randomBytes(6).toString('base64url');
let calls = 0;

/**
 * Runs a script, and with `replicas` waits on the same connection until so many confirmed, in one round trip. Replies
 * say which call they answer: a connection on which one went astray would give each call what another one asked for.
 *
 * @throws what ioredis throws, `ScriptMissing`, `WaitFailed`, or `OthersReply`, with which the connection has ended.
 */
export async function runScript(connection: Redis, call: ScriptCall, majorVersion: number): Promise<ScriptReply> {
  const { text, sha } = loadable(call.script, majorVersion);
  if (call.withText === true) return send(connection, 'eval', text, call);
  const startedMs = performance.now();
  try {
    return await send(connection, 'evalsha', sha, call);
  } catch (error) {
    // The server lost its script cache (a restart, SCRIPT FLUSH): this one time the text goes along. Where no replica
    // is there, the WAIT that came with it took most of the time.
    const leftMs = call.deadlineMs - (performance.now() - startedMs);
    if (replyCode(error) !== 'NOSCRIPT') throw error;
    if (leftMs <= 0) throw new ScriptMissing();
    return send(connection, 'eval', text, { ...call, deadlineMs: leftMs });
  }
}

async function send(
  connection: Redis,
  command: 'eval' | 'evalsha',
  script: string,
  call: ScriptCall,
): Promise<ScriptReply> {
  calls += 1;
  const name = `${processName}${String(calls)}`;
  const values = [script, String(call.keys.length), ...call.keys, ...call.values, name];
  if (call.replicas === 0 && call.asking !== true) {
    const reply = await connection.callBuffer(command, ...values);
    return { reply: ownReply(connection, name, reply), confirmedReplicas: null };
  }
  // One write, one round trip: the reply of WAIT counts the replicas that hold what the script wrote.
  const pipeline = connection.pipeline();
  if (call.asking === true) pipeline.call('asking');
  pipeline.callBuffer(command, ...values);
  if (call.replicas > 0) pipeline.call('wait', String(call.replicas), String(waitMs(call.deadlineMs)));
  const replies = (await pipeline.exec()) ?? [];
  const [ran, waited] = call.asking === true ? replies.slice(1) : replies;
  if (ran === undefined) throw new Error('the connection was lost');
  if (ran[0] !== null) throw ran[0];
  if (waited?.[0]) throw new WaitFailed(waited[0]);
  return {
    reply: ownReply(connection, name, ran[1]),
    confirmedReplicas: call.replicas > 0 ? replicaCount(connection, waited?.[1]) : null,
  };
}

/** What the script answered, where it was this call of it. What else is to come on the connection is displaced, too. */
function ownReply({ stream }: Pick<Redis, 'stream'>, name: string, reply: unknown): unknown {
  const [named, own] = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
  return textOf(named) === name ? own : endDisplaced(stream);
}

/** How many replicas confirmed, where the reply to WAIT says so: what is no number is what something else asked for. */
function replicaCount({ stream }: Pick<Redis, 'stream'>, reply: unknown): number {
  const isCount = typeof reply === 'number' && Number.isSafeInteger(reply) && reply >= 0;
  return isCount ? reply : endDisplaced(stream);
}

function endDisplaced(stream: Redis['stream']): never {
  const error = new OthersReply();
  stream.destroy(error);
  throw error;
}

/** The server's reply that too few confirmed has to be here before the deadline: it says more than silence. */
function waitMs(deadlineMs: number): number {
  return Math.max(1, Math.floor(deadlineMs * 0.8));
}

/** A script as servers keep it, and the name by which they do. */
interface Loadable {
  readonly text: string;
  readonly sha: string;
}

const loadables = new WeakMap<Script, Map<number, Loadable>>();

function loadable(script: Script, majorVersion: number): Loadable {
  const byVersion = loadables.get(script) ?? new Map<number, Loadable>();
  loadables.set(script, byVersion);
  const known = byVersion.get(majorVersion);
  if (known !== undefined) return known;
  const text = echoingText(script, majorVersion);
  const made = { text, sha: createHash('sha1').update(text).digest('hex') };
  byVersion.set(majorVersion, made);
  return made;
}
