/** How long and how often trouble is borne: back-off of one row, the pace of all, and when to give up. */

/** First pause, doubled with each failure in a row. */
const firstPauseMs = 100;
const longestPauseMs = 5_000;
/** What a `Retry-After` may ask for. */
const longestAskedMs = 60_000;

/** A row that fails this often while others succeed is itself the trouble. */
const maxRowFailures = 12;

/**
 * Milliseconds before the next try after `failures` failures; `chance` is a number from 0 to 1, so that rows do not
 * come back all at once.
 */
export function pauseAfter(failures: number, retryAfterMs: number | null, chance: number): number {
  const grown = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures - 1, 10));
  const asked = Math.min(retryAfterMs ?? 0, longestAskedMs);
  return Math.max(asked, grown * (0.5 + chance / 2));
}

/** What is known of the Core's health, shared by all rows. Times are monotonic milliseconds. */
export interface Health {
  readonly succeeded: (nowMs: number) => void;
  /** A call that was begun then failed: one that nobody answers has failed from its beginning. */
  readonly failed: (begunMs: number) => void;
  /** Nobody calls before then. */
  readonly pause: (untilMs: number) => void;
  /** When the next call may be made, by pace and pause; books that time. */
  readonly nextCallAtMs: (nowMs: number) => number;
  readonly successes: () => number;
  /** Whether calls have failed for too long without one that succeeded. */
  readonly isHopeless: (nowMs: number) => boolean;
}

export interface HealthLimits {
  /** Calls a second; `null` is as fast as it goes. */
  readonly callsPerSecond: number | null;
  readonly giveUpAfterMs: number;
}

export function createHealth({ callsPerSecond, giveUpAfterMs }: HealthLimits, startMs: number): Health {
  let successes = 0;
  let succeededMs = startMs;
  let failingSinceMs: number | null = null;
  let pausedUntilMs = startMs;
  let nextSlotMs = startMs;
  return {
    succeeded: (nowMs) => {
      successes += 1;
      succeededMs = nowMs;
      failingSinceMs = null;
    },
    failed: (begunMs) => {
      failingSinceMs ??= Math.max(begunMs, succeededMs);
    },
    pause: (untilMs) => {
      pausedUntilMs = Math.max(pausedUntilMs, untilMs);
    },
    nextCallAtMs: (nowMs) => {
      const atMs = Math.max(nowMs, pausedUntilMs, nextSlotMs);
      if (callsPerSecond !== null) nextSlotMs = atMs + 1_000 / callsPerSecond;
      return atMs;
    },
    successes: () => successes,
    isHopeless: (nowMs) => failingSinceMs !== null && nowMs - failingSinceMs > giveUpAfterMs,
  };
}

/** Failures of one row. */
export interface RowFailures {
  readonly count: number;
  /** Those in which the Core was reached. */
  readonly reached: number;
  /** Successes of all rows when the first of those came. */
  readonly successesBefore: number;
}

export const noFailures: RowFailures = { count: 0, reached: 0, successesBefore: 0 };

export function countFailure(
  { count, reached, successesBefore }: RowFailures,
  isCoreReached: boolean,
  successes: number,
): RowFailures {
  return {
    count: count + 1,
    reached: reached + (isCoreReached ? 1 : 0),
    successesBefore: isCoreReached && reached === 0 ? successes : successesBefore,
  };
}

/**
 * Whether it is this row that the Core fails on. More successes than calls were in flight at its first failure means
 * that the Core did well for others since.
 */
export function isRowAtFault(
  { reached, successesBefore }: RowFailures,
  successes: number,
  concurrency: number,
): boolean {
  return reached >= maxRowFailures && successes - successesBefore >= concurrency;
}
