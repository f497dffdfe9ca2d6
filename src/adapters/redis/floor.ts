/** Notices that a primary was replaced or restarted, and refuses for a time what it may have forgotten. */
export interface FailoverFloor {
  /** Whoever is primary now, by identity. Says whether something may have been forgotten since. */
  readonly see: (identity: string, nowMs: number) => boolean;
  /** From now on an identity never seen is a replacement: all that there were at the start have been seen. */
  readonly settle: () => void;
  /** Seconds since the epoch: single-use tokens issued before are refused. */
  readonly issuedBeforeS: (nowMs: number) => number | null;
  readonly failovers: () => number;
}

/** @param lastsMs how long a token issued before may still be presented: the longest lifetime, and the skew of clocks. */
export function createFailoverFloor(lastsMs: number): FailoverFloor {
  const seen = new Set<string>();
  let settled = false;
  let failovers = 0;
  let floor: { readonly issuedBeforeS: number; readonly untilMs: number } | null = null;

  return {
    see: (identity, nowMs) => {
      if (seen.has(identity)) return false;
      seen.add(identity);
      if (!settled) return false;
      failovers += 1;
      floor = { issuedBeforeS: Math.ceil(nowMs / 1000), untilMs: nowMs + lastsMs };
      return true;
    },
    settle: () => {
      settled = true;
    },
    issuedBeforeS: (nowMs) => {
      if (floor !== null && nowMs >= floor.untilMs) floor = null;
      return floor?.issuedBeforeS ?? null;
    },
    failovers: () => failovers,
  };
}
