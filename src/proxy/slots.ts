import type { Principal } from '../decision/principal.js';

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
  /** A place for one request of this holder, or `null` where there is none. */
  readonly take: (holder: string) => Slot | null;
  readonly taken: () => number;
}

/** Everybody without a credential, together. */
export const strangers = '';

type Caller = Pick<Principal, 'kind' | 'issuer' | 'subject'>;

/** Names of those whose tokens are remembered: to put one together and find it again would cost each request twice. */
const names = new WeakMap<Caller, string>();

/** Who holds what a request takes: its caller, whatever token it shows, or `strangers`. */
export function holderOf({ principal, route: { access } }: {
  readonly principal: Caller | null;
  readonly route: { readonly access: 'public' | 'protected' };
}): string {
  if (principal === null || access === 'public') return strangers;
  const known = names.get(principal);
  if (known !== undefined) return known;
  const name = `${principal.kind}\n${principal.issuer}\n${principal.subject}`;
  names.set(principal, name);
  return name;
}

/** What one holder may have of what all share: others must get something too. A caller may have the 100 writes under way that count as pending. */
const shares = { strangers: 3 / 4, caller: 7 / 8 };

/** Where places are few, one caller with a credential may have so many. */
const placesInAnyCase = 16;

/** Counts what each holder has. */
export class Holdings {
  private readonly maxOfStrangers: number;
  private readonly maxOfCaller: number;
  private readonly counts = new Map<string, number>();

  /** @param count what there is for all. Of up to three either may have all, so that none is left unused for nobody. */
  constructor(count: number, leastOfCaller = 1) {
    this.maxOfStrangers = Math.ceil(count * shares.strangers);
    this.maxOfCaller = Math.max(Math.floor(count * shares.caller), Math.min(count, 3), leastOfCaller);
  }

  mayHaveMore(holder: string): boolean {
    const count = this.counts.get(holder);
    return count === undefined || count < (holder === strangers ? this.maxOfStrangers : this.maxOfCaller);
  }

  add(holder: string): void {
    this.counts.set(holder, (this.counts.get(holder) ?? 0) + 1);
  }

  remove(holder: string): void {
    const left = (this.counts.get(holder) ?? 1) - 1;
    if (left === 0) this.counts.delete(holder);
    else this.counts.set(holder, left);
  }
}

/** Keeps count of `max` slots, at least 1. */
export function createSlots(max: number): Slots {
  const holdings = new Holdings(max, placesInAnyCase);
  let taken = 0;
  return {
    take: (holder) => {
      if (taken >= max || !holdings.mayHaveMore(holder)) return null;
      taken += 1;
      holdings.add(holder);
      return slotOf(() => {
        taken -= 1;
        holdings.remove(holder);
      });
    },
    taken: () => taken,
  };
}

/** Two holders of one place: it is given back when both let go of it. */
export function shareSlot(slot: Slot | null): readonly [Slot, Slot] {
  let holders = 2;
  const hold = (): Slot => slotOf(() => {
    holders -= 1;
    if (holders === 0) slot?.();
  });
  return [hold(), hold()];
}
