import { networkOf } from '../../lib/ip-ranges.js';
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
  readonly resolve: (answer: KeyLookup) => void;
}

/** Look-ups that wait for a fetch. */
interface WaitingRoom {
  /** `false` where there is no place for it. It may take the place of another, which is answered `busy`. */
  readonly enter: (waiter: Waiter) => boolean;
  /** Asks for the answer to each, in the order in which they came, and lets those go that have one. */
  readonly settle: (answerTo: (waiter: Waiter) => KeyLookup | null) => void;
  readonly size: () => number;
}

interface Section {
  /** By the network of their clients, each in the order in which they came. */
  readonly networks: Map<string, Waiter[]>;
  size: number;
}

const busy: KeyLookup = { kind: 'busy' };

/**
 * Nothing tells a made-up key id from one that was just rotated in. So that nobody who sends many of them takes all
 * places, a newcomer for whom there is none takes that of a caller who left, else the newest of the network that holds
 * the most, where that is two or more ahead of its own: one network among strangers keeps nobody out, and to keep one
 * caller out takes as many networks as there are places.
 */
export function createWaitingRoom(max = maxWaiting): WaitingRoom {
  const newSection = (): Section => ({ networks: new Map(), size: 0 });
  const known = newSection();
  const strangers = newSection();
  const ofSection = max / 2;

  function enter(waiter: Waiter): boolean {
    const section = waiter.asker?.isKnown() === true ? known : strangers;
    const network = networkOf(waiter.asker?.address() ?? '');
    if (section.size >= ofSection && !makeRoom(section, network)) return false;
    const beside = section.networks.get(network);
    if (beside === undefined) section.networks.set(network, [waiter]);
    else beside.push(waiter);
    section.size += 1;
    return true;
  }

  function makeRoom(section: Section, network: string): boolean {
    const ousted = goneFrom(section) ?? newestOfLargest(section, (section.networks.get(network)?.length ?? 0) + 2);
    if (ousted === null) return false;
    remove(section, ousted.network, ousted.waiter);
    ousted.waiter.resolve(busy);
    return true;
  }

  function remove(section: Section, network: string, waiter: Waiter): void {
    const left = section.networks.get(network)?.filter((other) => other !== waiter) ?? [];
    if (left.length === 0) section.networks.delete(network);
    else section.networks.set(network, left);
    section.size -= 1;
  }

  function settle(answerTo: (waiter: Waiter) => KeyLookup | null): void {
    for (const section of [known, strangers]) {
      for (const [network, waiters] of [...section.networks]) {
        for (const waiter of waiters) {
          const answer = answerTo(waiter);
          if (answer === null) continue;
          remove(section, network, waiter);
          waiter.resolve(answer);
        }
      }
    }
  }

  return { enter, settle, size: () => known.size + strangers.size };
}

interface Placed {
  readonly network: string;
  readonly waiter: Waiter;
}

function goneFrom({ networks }: Section): Placed | null {
  for (const [network, waiters] of networks) {
    const waiter = waiters.find(({ asker }) => asker?.isGone() === true);
    if (waiter !== undefined) return { network, waiter };
  }
  return null;
}

/** Of the network that holds the most, where that is at least so many. */
function newestOfLargest({ networks }: Section, least: number): Placed | null {
  let largest: readonly [string, readonly Waiter[]] = ['', []];
  for (const entry of networks) if (entry[1].length > largest[1].length) largest = entry;
  const [network, waiters] = largest;
  const waiter = waiters.length < least ? undefined : waiters.at(-1);
  return waiter === undefined ? null : { network, waiter };
}
