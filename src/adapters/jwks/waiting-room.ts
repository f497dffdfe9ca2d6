import { createFairQueue, type Waiting } from '../../decision/limits/fair-queue.js';
import { clientNetworks } from '../../lib/ip-ranges.js';
import type { KeyAsker, KeyLookup } from '../../ports/auth.js';

/**
 * Requests that may wait for keys of one issuer: half of them on connections that have shown a good credential before,
 * half on others. Each holds what a request in flight does, 48 KiB at most: as much in all as those that are served.
 */
export const maxWaiting = 512;

/** A look-up that waits. */
export interface Waiter {
  readonly keyId: string;
  /** When it came; monotonic milliseconds. */
  readonly sinceMs: number;
  /** `null` where nobody waits for more than a fetch that is under way. */
  readonly asker: KeyAsker | null;
  readonly resolve: (lookup: KeyLookup) => void;
}

/** Look-ups that wait for a fetch. */
interface WaitingRoom {
  /** `false` where there is no place for it. It may take the place of another, which is answered `busy`. */
  readonly enter: (waiter: Waiter) => boolean;
  /** Asks for the look-up of each, in the order in which they came, and lets those go that have one. */
  readonly settle: (lookupOf: (waiter: Waiter) => KeyLookup | null) => void;
  readonly size: () => number;
}

interface Place extends Waiting {
  readonly waiter: Waiter;
}

const busy: KeyLookup = { kind: 'busy' };

/**
 * Nothing tells a made-up key id from one that was just rotated in. So that nobody who sends many of them takes all
 * places, these are shared out fairly among the networks of callers (`createFairQueue`); who loses a place is answered
 * `busy`.
 */
export function createWaitingRoom(max = maxWaiting): WaitingRoom {
  const known = createFairQueue<Place>(max / 2);
  const strangers = createFairQueue<Place>(max / 2);

  function enter(waiter: Waiter): boolean {
    const { asker } = waiter;
    const section = asker?.hasAuthenticated() === true ? known : strangers;
    const { entered, ousted } = section.enter({
      waiter,
      networks: clientNetworks(asker?.address() ?? ''),
      isGone: () => asker?.isGone() === true,
    });
    ousted?.waiter.resolve(busy);
    return entered;
  }

  function settle(lookupOf: (waiter: Waiter) => KeyLookup | null): void {
    for (const section of [known, strangers]) {
      const lookups = new Map<Place, KeyLookup>();
      const settled = section.takeAll((place) => {
        const lookup = lookupOf(place.waiter);
        if (lookup !== null) lookups.set(place, lookup);
        return lookup !== null;
      });
      for (const place of settled) place.waiter.resolve(lookups.get(place) ?? busy);
    }
  }

  return { enter, settle, size: () => known.size() + strangers.size() };
}
