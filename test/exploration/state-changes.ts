/** What a step changes in a state, and what an attempt's caller is told. */
import type { Reserved } from '../../src/decision/idempotency/record.js';
import type { Settlement, UpstreamOutcome } from '../../src/decision/idempotency/settlement.js';
import { leaseMs, type Answer, type Attempt, type Command, type Disturbance, type State, type Told } from './model.js';

/** Statuses that mean *not applied*. */
export const releaseOn: ReadonlySet<number> = new Set([429]);

export function withAttempt(state: State, index: number, change: Partial<Attempt>): State {
  return {
    ...state,
    attempts: state.attempts.map((attempt, at) => (at === index ? { ...attempt, ...change } : attempt)),
  };
}

export function spent(state: State, what: Disturbance): State {
  return { ...state, left: { ...state.left, [what]: state.left[what] - 1 } };
}

export function aged(state: State, ms: number): State {
  return {
    ...state,
    attempts: state.attempts.map((attempt) =>
      attempt.phase === 'idle' ? attempt : { ...attempt, ageMs: Math.min(leaseMs, attempt.ageMs + ms) },
    ),
  };
}

/** What a process that lives settled before a fail-over it offers again. */
export function offering(attempt: Attempt): Attempt {
  return attempt.phase === 'done' && attempt.settlement !== null ? { ...attempt, phase: 'offering' } : attempt;
}

export function commandOf(settlement: Settlement): Command {
  if (settlement.kind !== 'complete') return settlement;
  const { state, response } = settlement;
  return { kind: 'complete', state, status: response.status, text: Buffer.from(response.body).toString() };
}

export function responseOf({ status, text }: Answer): {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Uint8Array;
} {
  return { status, headers: [], body: Buffer.from(text) };
}

/** Whether the receiver says that it did nothing. */
export function isRefusal({ status, outcome }: Answer): boolean {
  return outcome === 'not-applied' || (outcome === null && releaseOn.has(status));
}

export function toldOf(outcome: UpstreamOutcome): Told {
  switch (outcome.kind) {
    case 'not_dispatched':
      return { kind: 'not sent' };
    case 'no_status':
      return { kind: 'in doubt' };
    case 'cut_off':
      return { kind: 'cut off' };
    case 'whole':
      return { kind: 'answer', status: outcome.response.status, text: Buffer.from(outcome.response.body).toString() };
  }
}

export function toldBy(reserved: Exclude<Reserved, { kind: 'acquired' }>): Told {
  switch (reserved.kind) {
    case 'in_progress':
      return { kind: 'in progress' };
    case 'replayed':
      return { kind: 'replay', status: reserved.response.status, text: Buffer.from(reserved.response.body).toString() };
    case 'tombstone':
      return { kind: 'not replayable' };
    case 'unknown':
    case 'mismatch':
      return { kind: reserved.kind };
    case 'token_replayed':
      return { kind: 'token replayed' };
    case 'unsupported':
      return { kind: 'not sent' };
  }
}
