/** Whether a route asks for a credential. */
export type Access = 'public' | 'protected';

/** How many requests are under way at once, so that a flood is answered quickly instead of slowly by all. */
export interface Slots {
  /** A place for one request, or `null` where there is none. */
  readonly take: (access: Access) => Slot | null;
  readonly taken: () => number;
}

/** Call it to give the place back; a second call does nothing. */
export type Slot = () => void;

/** What public routes may take of what all share: callers without a credential must not shut out those who have one. */
const publicShare = 0.75;

/** How many of `count` places public routes may have; all of up to three, so that none is left unused for nobody. */
export function publicShareOf(count: number): number {
  return Math.ceil(count * publicShare);
}

/** Keeps count of `max` slots, at least 1. */
export function createSlots(max: number): Slots {
  const maxPublic = publicShareOf(max);
  const taken = { public: 0, protected: 0 };
  return {
    take: (access) => {
      if (taken.public + taken.protected >= max) return null;
      if (access === 'public' && taken.public >= maxPublic) return null;
      taken[access] += 1;
      let isTaken = true;
      return () => {
        if (!isTaken) return;
        isTaken = false;
        taken[access] -= 1;
      };
    },
    taken: () => taken.public + taken.protected,
  };
}

/** Two holders of one place: it is given back when both let go of it. */
export function shareSlot(slot: Slot | null): readonly [Slot, Slot] {
  let holders = 2;
  const hold = (): Slot => {
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      holders -= 1;
      if (holders === 0) slot?.();
    };
  };
  return [hold(), hold()];
}
