import { refuse, type Result } from '../../decision/result.js';
import type { Clock, Log, StoreFailure, StoreState } from '../../ports.js';
import { circuitPauseMs, closedCircuit, enter, leave } from './circuit.js';
import { createLane, DeadlinePassed, reasonOf, type Lane, type ScriptCall, type ScriptReply } from './lane.js';
import type { Script } from './scripts.js';
import { mayHaveForgotten, type Inspection } from './server-watch.js';
import type { RedisSettings } from './settings.js';

/** Connections for reservations that wait on replicas: each of them is held for one at a time. */
const waitingLanes = 16;

/** All connections to the store, and what is known of it. */
export interface Lanes {
  readonly run: (script: Script, call: ScriptCall) => Promise<Result<ScriptReply, StoreFailure>>;
  readonly state: () => StoreState;
  /** The first inspection that says something lasting: fit, or unfit by its settings; `null` while out of reach. */
  readonly verdict: () => { readonly fit: boolean; readonly problem: string | null } | null;
  readonly issuedBeforeFloorS: () => number | null;
  readonly close: () => void;
}

export interface LaneDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** How long a token may live, milliseconds: so long does the floor of a fail-over last. */
  readonly maxTokenLifetimeMs: number;
  readonly onFailover: () => void;
}

export function createLanes(settings: RedisSettings, deps: LaneDeps): Lanes {
  const { clock, log } = deps;
  let last: Inspection | null = null;
  let failure: StoreFailure | null = { kind: 'unreachable', reason: 'not connected yet', mayHaveRun: false };
  let circuit = closedCircuit;
  let floor: { readonly issuedBeforeS: number; readonly untilMs: number } | null = null;
  const events = { inspected, lost };
  const shared = createLane(settings, events);
  const reserving = settings.replicas === 0 ? [shared] : Array.from({ length: waitingLanes }, () => createLane(settings, events));

  return {
    run: async (script, call) => {
      const entry = enter(circuit, clock.monotonic());
      circuit = entry.state;
      if (!entry.allowed) return refuse(untried(failure, `no answers; tried again every ${circuitPauseMs} ms`));
      const lane = script.name === 'reserve' ? leastLoaded(reserving) : shared;
      if (lane?.isUsable() !== true) {
        // Nothing was tried, so nothing was learned: the connection tells when it is back.
        circuit = entry.state.trying ? { ...circuit, trying: false } : circuit;
        return refuse(untried(failure, 'not connected'));
      }
      return runOn(lane, script, call);
    },
    state: () => {
      const up = shared.isUsable() && reserving.some((lane) => lane.isUsable());
      return { kind: 'redis', up, problem: up ? null : failure?.reason ?? 'not connected' };
    },
    verdict: () => {
      if (last === null) return null;
      const lasting = last.unfitness.filter((found) => found.lasting);
      return { fit: lasting.length === 0, problem: lasting.length === 0 ? null : lasting.map((found) => `${found.problem}; ${found.fix}`).join('; ') };
    },
    issuedBeforeFloorS: () => {
      if (floor !== null && clock.now() >= floor.untilMs) floor = null;
      return floor?.issuedBeforeS ?? null;
    },
    close: () => {
      for (const lane of new Set([shared, ...reserving])) lane.close();
    },
  };

  async function runOn(lane: Lane, script: Script, call: ScriptCall): Promise<Result<ScriptReply, StoreFailure>> {
    try {
      const value = await lane.run(script, call);
      circuit = leave(circuit, true, clock.monotonic());
      return { ok: true, value };
    } catch (error) {
      circuit = leave(circuit, false, clock.monotonic());
      return refuse(failureOf(error));
    }
  }

  function inspected(inspection: Inspection): void {
    if (last !== null && mayHaveForgotten(last, inspection)) raiseFloor();
    last = inspection;
    if (inspection.unfitness.length === 0) {
      if (failure !== null) log.info('the store is in use', { servers: [...inspection.servers.keys()] });
      failure = null;
      circuit = closedCircuit;
      return;
    }
    const reason = inspection.unfitness.map((found) => `${found.problem}; ${found.fix}`).join('; ');
    if (failure?.reason !== reason) log.error('the store is not fit to hold reservations; reserving routes answer 503', { reason });
    failure = { kind: 'unfit', reason, mayHaveRun: false };
  }

  function lost(found: StoreFailure): void {
    if (failure === null) log.error('the store is out of reach; reserving routes answer 503', { reason: found.reason });
    // Many connections tell of one outage in their own words: the first is enough.
    if (failure === null || failure.kind !== 'unfit') failure = failure?.reason === 'not connected yet' ? found : failure ?? found;
  }

  function raiseFloor(): void {
    const now = clock.now();
    floor = { issuedBeforeS: Math.ceil(now / 1000), untilMs: now + deps.maxTokenLifetimeMs };
    log.warn('the store failed over or restarted and may have forgotten: single-use tokens issued before now are refused', {
      until: new Date(floor.untilMs).toISOString(),
    });
    deps.onFailover();
  }
}

function leastLoaded(lanes: readonly Lane[]): Lane | undefined {
  let best: Lane | undefined;
  for (const lane of lanes) {
    if (!lane.isUsable()) continue;
    if (best === undefined || lane.load() < best.load()) best = lane;
    if (best.load() === 0) break;
  }
  return best;
}

/** Nothing was sent, for a reason that is known from before. */
function untried(failure: StoreFailure | null, reason: string): StoreFailure {
  return { kind: failure?.kind ?? 'unreachable', reason: failure?.reason ?? reason, mayHaveRun: false };
}

function failureOf(error: unknown): StoreFailure {
  if (error instanceof DeadlinePassed) return { kind: 'timeout', reason: error.message, mayHaveRun: true };
  const reason = reasonOf(error);
  const isReply = error instanceof Error && error.name === 'ReplyError';
  return { kind: isReply ? 'refused' : 'unreachable', reason, mayHaveRun: !isReply };
}
