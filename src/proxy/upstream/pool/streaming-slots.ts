import { slotOf, type Slot } from '../../exchange/concurrency.js';

/**
 * The part of the requests that may be under way whose bodies may be to come. The bodies of others are read before
 * they are sent.
 */
const earlyShare = 1 / 4;

/** Makes what gives places to requests whose bodies are yet to come; `null` where there is none. */
export function createStreamingSlots(capacity: () => number): () => Slot | null {
  let taken = 0;
  return () => {
    if (taken >= Math.ceil(capacity() * earlyShare)) return null;
    taken += 1;
    return slotOf(() => {
      taken -= 1;
    });
  };
}
