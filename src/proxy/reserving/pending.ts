/** Counts what is pending for each caller, so that one caller cannot fill the store and the receiver (contract 429). */
export interface Pending {
  /** Takes a place for the caller with this hash, or `null` where it has too many. */
  readonly enter: (principal: string) => (() => void) | null;
  readonly size: () => number;
}

/** Reserved requests of one caller that may be under way at once in this process. */
export const maxPendingPerCaller = 100;

export function createPending(limit = maxPendingPerCaller): Pending {
  const counts = new Map<string, number>();
  return {
    enter: (principal) => {
      const count = counts.get(principal) ?? 0;
      if (count >= limit) return null;
      counts.set(principal, count + 1);
      let entered = true;
      return () => {
        if (!entered) return;
        entered = false;
        const left = (counts.get(principal) ?? 1) - 1;
        if (left === 0) counts.delete(principal);
        else counts.set(principal, left);
      };
    },
    size: () => [...counts.values()].reduce((sum, count) => sum + count, 0),
  };
}
