import type { ReservationScope } from '../../decision/idempotency/scope.js';

/** Counts the writes that each caller has under way, so that one caller cannot fill the store and the upstream. */
interface PendingWrites {
  /**
   * Takes a place, to be given back by the function returned; `null` where the caller has too many writes under way.
   */
  readonly enter: (scope: ReservationScope) => (() => void) | null;
  readonly size: () => number;
}

/** Reserved writes of one caller that may be under way at once in this process. */
export const maxPendingPerCaller = 100;

/**
 * Counts writes, not requests: repeats of a write that is under way take no place of their own, so that a caller who
 * repeats too often is still told that the write is in progress.
 */
export function createPendingWrites(limit = maxPendingPerCaller): PendingWrites {
  const callers = new Map<string, Map<string, number>>();

  return {
    enter: ({ principal, operation, token }) => {
      const writes = callers.get(principal) ?? new Map<string, number>();
      // Whoever needs no key is told apart by the token, of which this is the only use.
      const write = operation ?? `token ${token ?? ''}`;
      const requests = writes.get(write) ?? 0;
      if (requests === 0 && writes.size >= limit) return null;
      writes.set(write, requests + 1);
      callers.set(principal, writes);
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        leave(principal, writes, write);
      };
    },
    size: () => [...callers.values()].reduce((sum, writes) => sum + writes.size, 0),
  };

  function leave(principal: string, writes: Map<string, number>, write: string): void {
    const left = (writes.get(write) ?? 1) - 1;
    if (left > 0) writes.set(write, left);
    else writes.delete(write);
    if (writes.size === 0) callers.delete(principal);
  }
}
