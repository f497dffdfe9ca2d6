import type { KeySourceState } from '../../src/ports/auth.js';

/** The state of a key source that nothing is wrong with and nobody waits for, but for these. */
export function keyState(over: Partial<KeySourceState> = {}): KeySourceState {
  return {
    issuer: 'core',
    usable: true,
    stale: false,
    ageMs: 0,
    servesForMs: null,
    nextFetchMs: null,
    stalePart: null,
    keys: [],
    withdrawn: [],
    emptySet: null,
    lastError: null,
    waiting: 0,
    metadata: null,
    ...over,
  };
}
