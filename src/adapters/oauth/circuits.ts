import { closedCircuit, release, tryAcquire, type CircuitState } from '../../decision/limits/circuit-breaker.js';

/** Those with failures, some 100 bytes each. Beyond, the one that was used least lately is closed. */
const maxCircuits = 4_096;

/** Circuits by name, each closed at first. */
interface Circuits {
  /** Whether a question may be asked now. It has to end with `release` or `leave`. */
  readonly tryAcquire: (name: string, nowMs: number) => boolean;
  /** Takes in how a question went. */
  readonly release: (name: string, succeeded: boolean, nowMs: number) => void;
  /** The question says nothing of the issuer. */
  readonly leave: (name: string) => void;
  /** Closes all. */
  readonly close: () => void;
}

export function createCircuits(): Circuits {
  const states = new Map<string, CircuitState>();

  function put(name: string, state: CircuitState): void {
    states.delete(name);
    if (state.failures === 0) return;
    states.set(name, state);
    if (states.size <= maxCircuits) return;
    const [oldest = ''] = states.keys();
    states.delete(oldest);
  }

  const stateOf = (name: string): CircuitState => states.get(name) ?? closedCircuit;

  return {
    tryAcquire: (name, nowMs) => {
      const { state, allowed } = tryAcquire(stateOf(name), nowMs);
      put(name, state);
      return allowed;
    },
    release: (name, succeeded, nowMs) => {
      put(name, release(stateOf(name), succeeded, nowMs));
    },
    leave: (name) => {
      put(name, { ...stateOf(name), trying: false });
    },
    close: () => {
      states.clear();
    },
  };
}
