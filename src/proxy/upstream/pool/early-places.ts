import { slotOf, type Slot } from '../../exchange/concurrency.js';

/**
 * Of those that may be under way, as many may be requests whose bodies are yet to come: others are read first, and then
 * sent.
 */
const earlyShare = 1 / 4;

/** Makes what gives places to requests whose bodies are yet to come; `null` where there is none. */
export function createEarlyPlaces(capacity: () => number): () => Slot | null {
  let taken = 0;
  return () => {
    if (taken >= Math.ceil(capacity() * earlyShare)) return null;
    taken += 1;
    return slotOf(() => {
      taken -= 1;
    });
  };
}
