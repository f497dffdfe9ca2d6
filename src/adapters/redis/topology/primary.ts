import { refuse, type Result } from '../../../lib/result.js';
import type { Clock } from '../../../ports/system.js';
import type { StoreFailure } from '../../../ports/idempotency.js';
import {
  circuitPauseMs,
  closedCircuit,
  isOpen,
  release,
  tryAcquire,
} from '../../../decision/limits/circuit-breaker.js';
import {
  identityOf,
  takesSettlements,
  unfitnessOf,
  wordsOf,
  type ServerFacts,
  type Unfitness,
} from './server-checks.js';
import { createNodeConnection, type NodeConnection, type NodeConnectionEvents } from '../client/node-connection.js';
import { createWaitPool, type WaitPool } from '../client/wait-pool.js';
import type { ScriptCall, ScriptReply } from '../scripts/run-script.js';
import type { RedisAddress, RedisSettings } from '../client/settings.js';
import { failureOf, isServerRefusal, replyCode } from '../scripts/errors.js';

/** One server that is said to be a primary, and all connections to it. */
export interface Primary {
  readonly address: RedisAddress;
  /** Runs a script, or says why not. What is not fit to be asked is not asked. */
  readonly run: (call: ScriptCall) => Promise<RunResult>;
  readonly view: () => PrimaryView;
  readonly close: () => void;
}

/** How a call went; `cause` is what the server or the connection said, where they did. */
export type RunResult = Result<ScriptReply, StoreFailure & { readonly cause?: unknown }>;

interface PrimaryView {
  /** At the last look; `null` while there is no connection. */
  readonly facts: ServerFacts | null;
  readonly unfitness: readonly Unfitness[];
  /** Why reservations are not taken, or `null`. */
  readonly problem: string | null;
}

/** The problem before anything was learned. */
export const notConnectedYet = 'not connected yet';
/** The same, once the server has taken the connection. */
export const noAnswerYet = 'connected, and no answer yet';

interface PrimaryDeps {
  readonly clock: Clock;
  /** Asks a primary that is looked at what it remembers. */
  readonly examine: NonNullable<NodeConnectionEvents['examine']>;
  /** Called with each look, before anything is asked of the server on the strength of it. */
  readonly looked: (facts: ServerFacts) => void;
  /**
   * Called with each reply to a script before it counts, and when it was asked for and had come, monotonic. `identity`
   * is that of the server which the connection was found to lead to.
   */
  readonly ran: (
    call: ScriptCall,
    reply: unknown,
    at: { readonly identity: string; readonly fromMs: number; readonly toMs: number },
  ) => void;
  /** Called whenever what `view` says may have changed. */
  readonly changed: () => void;
}

/** Pause between two looks at a server that is fit, and at one that is not, milliseconds. */
const lookEveryMs = 2_000;
const lookSoonMs = 500;

export function createPrimary(
  settings: RedisSettings,
  address: RedisAddress,
  { clock, examine, looked, ran: hasRun, changed }: PrimaryDeps,
): Primary {
  const needs = { ...settings, clustered: settings.topology.kind === 'cluster' };
  let unfitness: readonly Unfitness[] = [];
  /** Why there is no connection, when there is none. */
  let lost = notConnectedYet;
  /** What the server says of itself when it is asked to write, until it takes a write again. */
  let refusal: string | null = null;
  let circuit = closedCircuit;
  let next: NodeJS.Timeout | null = null;
  const shared = createNodeConnection(settings, address, {
    examine,
    looked: sharedLooked,
    connected: () => {
      if (lost === notConnectedYet) lost = noAnswerYet;
    },
    lost: sharedLost,
  });
  const pool = settings.replicas === 0 ? null : createWaitPool(openConnection, isUsable);

  return {
    address,
    run,
    view: () => ({ facts: shared.facts(), unfitness, problem: problem() }),
    close: () => {
      if (next !== null) clearTimeout(next);
      shared.close();
      pool?.close();
    },
  };

  async function run(call: ScriptCall): Promise<RunResult> {
    const obstacle = obstacleTo(call);
    if (obstacle !== null) return refuse({ ...obstacle, mayHaveRun: false });
    const entry = tryAcquire(circuit, clock.monotonic());
    circuit = entry.state;
    // What is revoked is asked for by one call at a time, which has longer than a reservation and must not wait behind
    // their trials.
    if (!entry.allowed && call.script.name !== 'revocations') {
      return refuse({
        kind: 'timeout',
        reason: `no answers; one call every ${circuitPauseMs} ms finds out`,
        mayHaveRun: false,
      });
    }
    return pool === null || call.replicas === 0 ? runOn(shared, call) : runWaiting(pool, call);
  }

  async function runWaiting(connections: WaitPool, call: ScriptCall): Promise<RunResult> {
    const startedMs = clock.monotonic();
    // Later there would be no time left to hear of replicas.
    const connection = await connections.take(call.deadlineMs / 2);
    if (connection === null) {
      // Nothing was tried, so nothing was learned.
      circuit = { ...circuit, trying: false };
      return refuse({ kind: 'timeout', reason: 'no connection came free within the deadline', mayHaveRun: false });
    }
    try {
      const ran = await runOn(connection, {
        ...call,
        deadlineMs: Math.max(1, call.deadlineMs - (clock.monotonic() - startedMs)),
      });
      // It may wait for replicas still, and would hold up who gets it next.
      if (!ran.ok && ran.error.kind === 'timeout') connection.renew();
      return ran;
    } finally {
      connections.give(connection);
    }
  }

  async function runOn(connection: NodeConnection, call: ScriptCall): Promise<RunResult> {
    try {
      const facts = connection.facts();
      const fromMs = clock.monotonic();
      const value = await connection.run(call);
      if (facts !== null) hasRun(call, value.reply, { identity: identityOf(facts), fromMs, toMs: clock.monotonic() });
      replied(call, null);
      return { ok: true, value };
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind === 'refused') replied(call, isServerRefusal(error) ? failure.reason : null);
      else silent();
      // Demoted under our feet: the address may lead elsewhere by now.
      if (replyCode(error) === 'READONLY') renewAll();
      return refuse({ ...failure, cause: error });
    }
  }

  /** Any reply, a refusal too, says that the server is there. */
  function replied({ script }: ScriptCall, refused: string | null): void {
    const wasOpen = isOpen(circuit);
    circuit = release(circuit, true, clock.monotonic());
    const isNews = script.name === 'reserve' && refused !== refusal;
    if (isNews) refusal = refused;
    if (isNews || wasOpen) changed();
  }

  function silent(): void {
    const wasOpen = isOpen(circuit);
    circuit = release(circuit, false, clock.monotonic());
    if (isOpen(circuit) !== wasOpen) changed();
  }

  function sharedLooked(facts: ServerFacts): void {
    looked(facts);
    unfitness = unfitnessOf(facts, needs);
    circuit = closedCircuit;
    for (const connection of pool?.connections() ?? []) {
      if (connection.facts() !== null && !isUsable(connection)) connection.look();
    }
    pool?.offer();
    lookAgain(facts);
    changed();
  }

  function sharedLost(reason: string): void {
    lost = reason;
    changed();
  }

  function lookAgain(facts: ServerFacts): void {
    if (next !== null) clearTimeout(next);
    next = setTimeout(
      () => {
        if (takesSettlements(facts)) shared.look();
        else renewAll();
      },
      unfitness.length === 0 ? lookEveryMs : lookSoonMs,
    );
    next.unref();
  }

  function renewAll(): void {
    // What was wrong with it is so until it is looked at again, and from before its connection is closed.
    const why = unfitness.length > 0 ? wordsOf(unfitness) : undefined;
    lost = why ?? lost;
    shared.renew(why);
    for (const connection of pool?.connections() ?? []) connection.renew();
  }

  function openConnection(): NodeConnection {
    const connection = createNodeConnection(settings, address, {
      looked: () => {
        if (isUsable(connection)) pool?.offer();
        else shared.look();
      },
      lost: () => undefined,
    });
    return connection;
  }

  /** Whether the connection leads to the server that the shared one was found to lead to. */
  function isUsable(connection: NodeConnection): boolean {
    const [here, there] = [shared.facts(), connection.facts()];
    return here !== null && there !== null && identityOf(here) === identityOf(there);
  }

  function obstacleTo({ script }: ScriptCall): Pick<StoreFailure, 'kind' | 'reason'> | null {
    const facts = shared.facts();
    if (facts === null) return { kind: 'unreachable', reason: lost };
    const isFit = script.name === 'reserve' ? unfitness.length === 0 : takesSettlements(facts);
    return isFit ? null : { kind: 'unfit', reason: wordsOf(unfitness) };
  }

  function problem(): string | null {
    if (shared.facts() === null) return lost;
    if (unfitness.length > 0) return wordsOf(unfitness);
    return refusal ?? (isOpen(circuit) ? 'it does not answer' : null);
  }
}
