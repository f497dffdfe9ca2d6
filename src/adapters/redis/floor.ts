/** Notices that a primary was replaced or restarted, and refuses for a time what it may have forgotten. */
export interface FailoverFloor {
  /** Whoever is primary there now, by identity. Says whether something may have been forgotten since. */
  readonly see: (place: string, identity: string, nowMs: number) => boolean;
  /** No primary is there any more: one that comes back missed what was written meanwhile. */
  readonly leave: (place: string) => void;
  /** From now on a primary in a place where none was is a replacement: all that there were at the start have been seen. */
  readonly settle: () => void;
  /** Seconds since the epoch: single-use tokens issued before are refused. */
  readonly issuedBeforeS: (nowMs: number) => number | null;
  readonly failovers: () => number;
}

/**
 * @param lastsMs how long a token issued before may still be presented: the longest lifetime, and the skew of clocks. Asked
 *   each time: issuers change while the process runs.
 */
export function createFailoverFloor(lastsMs: () => number): FailoverFloor {
  /** Identity last seen in each place. */
  const seen = new Map<string, string>();
  let settled = false;
  let failovers = 0;
  let last: { readonly issuedBeforeS: number; readonly atMs: number } | null = null;

  return {
    see: (place, identity, nowMs) => {
      if (seen.get(place) === identity) return false;
      seen.set(place, identity);
      if (!settled) return false;
      failovers += 1;
      last = { issuedBeforeS: Math.ceil(nowMs / 1000), atMs: nowMs };
      return true;
    },
    leave: (place) => {
      seen.delete(place);
    },
    settle: () => {
      settled = true;
    },
    issuedBeforeS: (nowMs) => (last !== null && nowMs < last.atMs + lastsMs() ? last.issuedBeforeS : null),
    failovers: () => failovers,
  };
}
