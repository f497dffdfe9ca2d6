import type { ImportedUser } from './row/user.js';

/** A user that waits for its turn or is in flight. */
export interface Scheduled {
  readonly number: number;
  readonly user: ImportedUser;
  readonly contacts: readonly string[];
}

/** Decides who is next. Users that share a contact go one after the other, in the order of the file. */
export interface Schedule {
  /** Whether a user of this number may be offered: no further ahead than the window of the oldest one under way. */
  readonly hasRoom: (number: number) => boolean;
  readonly offer: (item: Scheduled) => void;
  /** Takes the next one that may fly, or `null`. */
  readonly take: () => Scheduled | null;
  readonly finish: (item: Scheduled) => void;
  /** Forgets those that wait. */
  readonly clear: () => void;
}

interface ScheduleLimits {
  readonly concurrency: number;
  /** Distance between the oldest user under way and the newest: what bounds the memory of a run and of its journal. */
  readonly window: number;
}

export function createSchedule({ concurrency, window }: ScheduleLimits): Schedule {
  /** In the order of the file; those in flight are in both. */
  const underWay = new Map<number, Scheduled>();
  const waiting = new Map<number, Scheduled>();
  const busy = new Set<string>();
  let inFlight = 0;
  let finished = 0;

  return {
    hasRoom: (number) => {
      const [oldest] = underWay.keys();
      return oldest === undefined || number - oldest < window;
    },
    offer: (item) => {
      underWay.set(item.number, item);
      waiting.set(item.number, item);
    },
    take: () => {
      // One by one at first: what is wrong with the whole import shows on one user, not on as many as may be in flight.
      if (inFlight >= Math.min(concurrency, 1 + finished)) return null;
      // A contact that an earlier one waits for is not for a later one to take.
      const spokenFor = new Set<string>();
      for (const item of waiting.values()) {
        if (!item.contacts.some((contact) => busy.has(contact) || spokenFor.has(contact))) {
          waiting.delete(item.number);
          for (const contact of item.contacts) busy.add(contact);
          inFlight += 1;
          return item;
        }
        for (const contact of item.contacts) spokenFor.add(contact);
      }
      return null;
    },
    finish: (item) => {
      underWay.delete(item.number);
      for (const contact of item.contacts) busy.delete(contact);
      inFlight -= 1;
      finished += 1;
    },
    clear: () => {
      for (const number of waiting.keys()) underWay.delete(number);
      waiting.clear();
    },
  };
}
