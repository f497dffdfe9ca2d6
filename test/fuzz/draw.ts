/** Chance that can be had again: the same seed draws the same. */

/** Where a generator takes its decisions from. */
export interface Draw {
  /** A whole number from 0 to `below` - 1. */
  readonly below: (below: number) => number;
}

/** Of the run: `SALLYPORT_SEED`, or a new one. Whoever uses it prints it. */
export const runSeed = readSeed(process.env['SALLYPORT_SEED']);

/** Draws from a seed and the number of a case, so that each case can be had without those before it. */
export function drawFrom(seed: number, number: number): Draw {
  let state = (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(number + 1, 0xc2b2ae35)) >>> 0;
  // mulberry32: 32 bits of state are plenty for the few hundred numbers of a case.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  return { below: (below) => next() % below };
}

/**
 * Draws what fast-check chose; 0, the plainest choice, where that ends. What fast-check shortens makes a plainer case.
 */
export function drawOf(numbers: readonly number[]): Draw {
  let at = 0;
  return {
    below: (below) => {
      const number = numbers[at] ?? 0;
      at += 1;
      return number % below;
    },
  };
}

/** One of the list; the first is the plainest. */
export function pick<T>(draw: Draw, list: readonly T[]): T {
  const found = list[draw.below(list.length)];
  if (found === undefined) throw new Error('nothing to pick from');
  return found;
}

/** True once in `odds` times, and never where nothing is left to draw. */
export function once(draw: Draw, odds: number): boolean {
  return draw.below(odds) === odds - 1;
}

/** So many things drawn in turn. */
export function several<T>(draw: Draw, count: number, one: (draw: Draw) => T): T[] {
  return Array.from({ length: count }, () => one(draw));
}

function readSeed(text: string | undefined): number {
  if (text === undefined) return Math.floor(Math.random() * 0x100000000);
  const seed = Number(text);
  if (!Number.isSafeInteger(seed)) throw new Error('SALLYPORT_SEED has to be a whole number');
  return seed >>> 0;
}
