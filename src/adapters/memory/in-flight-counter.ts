import type { InFlightCounter } from '../../ports/limits.js';

/** Counts in this process: a place is had or not at once. */
interface LocalInFlightCounter extends InFlightCounter {
  readonly enter: (name: string, max: number) => (() => void) | null;
}

export function createInFlightCounter(): LocalInFlightCounter {
  const inFlight = new Map<string, number>();
  return {
    enter: (name, max) => {
      const count = inFlight.get(name) ?? 0;
      if (count >= max) return null;
      inFlight.set(name, count + 1);
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        const left = (inFlight.get(name) ?? 1) - 1;
        if (left === 0) inFlight.delete(name);
        else inFlight.set(name, left);
      };
    },
  };
}
