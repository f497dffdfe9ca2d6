/**
 * Fails fast while the store, or an issuer, does not answer, and lets one call at a time find out whether it does
 * again.
 */
export interface CircuitState {
  /** Failures in a row. */
  readonly failures: number;
  /** Until then nothing is tried; milliseconds, monotonic. */
  readonly openUntilMs: number;
  /** Whether one trial is under way. */
  readonly trying: boolean;
}

/** Failures in a row that open the circuit. */
export const circuitThreshold = 5;
/** Milliseconds that it stays open before one call is let through. */
export const circuitPauseMs = 500;

export const closedCircuit: CircuitState = { failures: 0, openUntilMs: 0, trying: false };

/** Whether calls are refused without being tried. */
export function isOpen({ failures }: CircuitState): boolean {
  return failures >= circuitThreshold;
}

/** Decides whether a call may be made now, and remembers the trial. */
export function tryAcquire(
  state: CircuitState,
  nowMs: number,
): { readonly state: CircuitState; readonly allowed: boolean } {
  if (!isOpen(state)) return { state, allowed: true };
  if (state.trying || nowMs < state.openUntilMs) return { state, allowed: false };
  return { state: { ...state, trying: true }, allowed: true };
}

/** Takes in how a call went. */
export function release(state: CircuitState, succeeded: boolean, nowMs: number): CircuitState {
  if (succeeded) return closedCircuit;
  return { failures: state.failures + 1, openUntilMs: nowMs + circuitPauseMs, trying: false };
}
