import { principalName, type Principal } from '../../decision/token/principal.js';

/** Call it to give the place back; a second call does nothing. */
export type Slot = () => void;

/** What `giveBack` does is done once. */
export function slotOf(giveBack: () => void): Slot {
  let isTaken = true;
  return () => {
    if (!isTaken) return;
    isTaken = false;
    giveBack();
  };
}

/** How many requests are under way at once, so that a flood is answered quickly instead of slowly by all. */
export interface Slots {
  /** A place for one request of this holder, or `null` where there is none. At once, unless others have to be asked. */
  readonly take: (holder: string) => Slot | null | Promise<Slot | null>;
  /** In this process. */
  readonly taken: () => number;
}

/** Those of a process that serves alone. */
interface OwnSlots extends Slots {
  readonly take: (holder: string) => Slot | null;
}

/** Everybody without a credential, together. */
export const strangers = '';

type Caller = Pick<Principal, 'kind' | 'issuer' | 'subject' | 'name'>;

/** Who holds what a request takes: its caller, whatever token it shows, or `strangers`. */
export function holderOf({
  principal,
  route: { access },
}: {
  readonly principal: Caller | null;
  readonly route: { readonly access: 'public' | 'protected' };
}): string {
  if (principal === null || access === 'public') return strangers;
  return principal.name ?? principalName(principal);
}

/**
 * The most that one holder may have of what all share, so that others get something too. A caller's share has room for
 * the 100 writes that count as pending.
 */
const shares = { strangers: 3 / 4, caller: 7 / 8 };

/** Where places are few, one caller with a credential may have so many. */
const placesInAnyCase = 16;

/** What one holder has. */
export interface HolderCount {
  readonly holder: string;
  count: number;
}

/** Counts what each holder has. */
export class FairShareLimiter {
  private maxOfStrangers = 0;
  private maxOfCaller = 0;
  private readonly held = new Map<string, HolderCount>();

  /** @param count places for all. Of up to three, one holder may have all, so that none stays unused. */
  constructor(count: number, leastOfCaller = 1) {
    this.resize(count, leastOfCaller);
  }

  /** There is so much for all from now on. Nobody gives up what they have. */
  resize(count: number, leastOfCaller = 1): void {
    this.maxOfStrangers = Math.ceil(count * shares.strangers);
    this.maxOfCaller = Math.max(Math.floor(count * shares.caller), Math.min(count, 3), leastOfCaller);
  }

  /** Counts one more; `null` where this holder may have no more. Give back what this returns. */
  take(holder: string): HolderCount | null {
    const known = this.held.get(holder);
    if (known === undefined) {
      const holderCount = { holder, count: 1 };
      this.held.set(holder, holderCount);
      return holderCount;
    }
    if (known.count >= this.mostOf(holder)) return null;
    known.count += 1;
    return known;
  }

  /** What this holder may have. */
  mostOf(holder: string): number {
    return holder === strangers ? this.maxOfStrangers : this.maxOfCaller;
  }

  /** What this holder has. */
  countOf(holder: string): number {
    return this.held.get(holder)?.count ?? 0;
  }

  giveBack(holderCount: HolderCount): void {
    holderCount.count -= 1;
    if (holderCount.count === 0) this.held.delete(holderCount.holder);
  }
}

/** Says what a holder may have of so many slots. */
export function slotsOfHolder(max: number): (holder: string) => number {
  const fairShares = new FairShareLimiter(max, placesInAnyCase);
  return (holder) => fairShares.mostOf(holder);
}

/** Keeps count of `max` slots, at least 1. */
export function createSlots(max: number): OwnSlots {
  const fairShares = new FairShareLimiter(max, placesInAnyCase);
  let taken = 0;
  return {
    take: (holder) => {
      const holderCount = taken >= max ? null : fairShares.take(holder);
      if (holderCount === null) return null;
      taken += 1;
      return slotOf(() => {
        taken -= 1;
        fairShares.giveBack(holderCount);
      });
    },
    taken: () => taken,
  };
}
