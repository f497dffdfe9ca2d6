import { createHash } from 'node:crypto';
import { Cluster } from 'ioredis';
import type { StoreFailure } from '../../ports.js';
import { createClient, type RedisClient } from './client.js';
import { scriptText, type Script } from './scripts.js';
import { inspectServers, type Inspection } from './server-watch.js';
import type { RedisSettings } from './settings.js';

/** One connection of its own: what waits on it holds up nobody else. */
export interface Lane {
  /** Whether its servers were inspected since it connected, and are fit. */
  readonly isUsable: () => boolean;
  /** Calls under way. */
  readonly load: () => number;
  /** Runs a script, and with `replicas` waits on the same connection until so many confirmed, in one round trip. */
  readonly run: (script: Script, call: ScriptCall) => Promise<ScriptReply>;
  readonly close: () => void;
}

export interface ScriptCall {
  readonly keys: readonly [string, string];
  readonly values: readonly (string | Buffer)[];
  /** 0 asks nobody. */
  readonly replicas: number;
  /** Milliseconds from now. */
  readonly deadlineMs: number;
}

export interface ScriptReply {
  readonly reply: unknown;
  readonly confirmedReplicas: number | null;
}

/** What a lane tells of its connection. */
export interface LaneEvents {
  /** After each connect. The lane is used only where nothing was found unfit. */
  readonly inspected: (inspection: Inspection) => void;
  readonly lost: (failure: StoreFailure) => void;
}

/** How often a Cluster's primaries are looked at: it changes them without a reconnect. Milliseconds. */
const clusterLookMs = 1_000;

/** Connects, inspects, and keeps doing so after each loss. */
export function createLane(settings: RedisSettings, events: LaneEvents): Lane {
  const client = createClient(settings);
  let inspection: Inspection | null = null;
  let running = 0;
  let closed = false;
  let look: NodeJS.Timeout | null = null;

  client.on('ready', () => void inspect());
  client.on('close', () => lose({ kind: 'unreachable', reason: 'the connection was closed', mayHaveRun: true }));
  client.on('end', () => lose({ kind: 'unreachable', reason: 'the connection ended', mayHaveRun: true }));
  client.on('error', (error: Error) => lose({ kind: 'unreachable', reason: reasonOf(error), mayHaveRun: true }));
  if (client instanceof Cluster) {
    look = setInterval(() => void (client.status === 'ready' ? inspect() : undefined), clusterLookMs);
    look.unref();
  }
  client.connect().catch((error: unknown) => lose({ kind: 'unreachable', reason: reasonOf(error), mayHaveRun: true }));

  return {
    isUsable: () => !closed && inspection !== null && inspection.unfitness.length === 0,
    load: () => running,
    run: async (script, call) => {
      running += 1;
      try {
        return await withDeadline(runScript(client, script, call, majorVersion()), call.deadlineMs);
      } finally {
        running -= 1;
      }
    },
    close: () => {
      closed = true;
      if (look !== null) clearInterval(look);
      client.disconnect(false);
    },
  };

  async function inspect(): Promise<void> {
    try {
      const found = await withDeadline(inspectServers(client, settings), 5_000);
      inspection = found;
      events.inspected(found);
    } catch (error) {
      lose({ kind: 'unreachable', reason: reasonOf(error), mayHaveRun: true });
      // Without an inspection the lane is not used; a fresh connection is the next chance for one.
      if (!closed && client.status === 'ready') client.disconnect(true);
    }
  }

  function lose(failure: StoreFailure): void {
    inspection = null;
    if (!closed) events.lost(failure);
  }

  function majorVersion(): number {
    return Math.min(...[...(inspection?.servers.values() ?? [])].map((facts) => facts.majorVersion ?? 6));
  }
}

async function runScript(client: RedisClient, script: Script, call: ScriptCall, version: number): Promise<ScriptReply> {
  const text = scriptText(script, version);
  const values = ['2', ...call.keys, ...call.values];
  try {
    return await send(client, 'evalsha', shaOf(text), values, call);
  } catch (error) {
    // The server lost its script cache (a restart, SCRIPT FLUSH): this one time the text goes along.
    if (error instanceof Error && error.message.startsWith('NOSCRIPT')) return send(client, 'eval', text, values, call);
    throw error;
  }
}

async function send(client: RedisClient, command: 'eval' | 'evalsha', script: string, values: readonly (string | Buffer)[], call: ScriptCall): Promise<ScriptReply> {
  if (call.replicas === 0) return { reply: await callBuffer(client, command, [script, ...values]), confirmedReplicas: null };
  // One write, one round trip: the reply of WAIT counts the replicas that hold what the script wrote.
  const pipeline = client.pipeline();
  pipeline.callBuffer(command, script, ...values);
  pipeline.call('wait', String(call.replicas), String(Math.max(1, Math.floor(call.deadlineMs * 0.9))));
  const [ran, waited] = await pipeline.exec() ?? [];
  if (ran?.[0]) throw ran[0];
  if (waited?.[0]) throw waited[0];
  return { reply: ran?.[1], confirmedReplicas: Number(waited?.[1]) };
}

function callBuffer(client: RedisClient, command: string, values: readonly (string | Buffer)[]): Promise<unknown> {
  return client.callBuffer(command, ...values);
}

const shas = new Map<string, string>();

function shaOf(text: string): string {
  const known = shas.get(text);
  if (known !== undefined) return known;
  const sha = createHash('sha1').update(text).digest('hex');
  shas.set(text, sha);
  return sha;
}

/** The deadline passed: the command may still run. */
export class DeadlinePassed extends Error {
  constructor() {
    super('no answer within the deadline');
    this.name = 'DeadlinePassed';
  }
}

function withDeadline<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new DeadlinePassed()), deadlineMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Words of ioredis and of the system; neither holds a password or a command's arguments. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : '';
  return `${code}${error.message}`.slice(0, 200);
}
