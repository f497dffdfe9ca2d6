/** Trouble that is put between callers and the Core, for the tests of those who have to live with it. */
export interface FaultOptions {
  /** Share of the calls that meet trouble, from 0 to 1. */
  readonly share: number;
  /** The same seed makes the same trouble in the same order; 1 unless given. */
  readonly seed?: number;
}

/**
 * `too_many_requests`: 429, and nothing was done. `server_error`: 500, and nothing was done. `cut_before`: the
 * connection is cut, and nothing was done. `cut_after`: the call took effect, and the connection is cut before the
 * answer.
 */
export type Fault = 'too_many_requests' | 'server_error' | 'cut_before' | 'cut_after';

const kinds: readonly Fault[] = ['too_many_requests', 'server_error', 'cut_before', 'cut_after'];

/** Draws, for each call, the trouble that it meets. */
export function createFaults({ share, seed = 1 }: FaultOptions): () => Fault | null {
  const random = createRandom(seed);
  return () => (random() < share ? (kinds[Math.floor(random() * kinds.length)] ?? null) : null);
}

/** Mulberry32: numbers from 0 to 1 that a seed repeats. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
