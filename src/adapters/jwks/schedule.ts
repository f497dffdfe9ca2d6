/** Share of their lifetime after which keys are fetched anew: ahead of expiry, so that no request meets stale keys. */
const earliestShare = 0.8;
const latestShare = 0.9;

/** First and longest wait after an attempt that failed. */
const firstRetryMs = 1_000;
const lastRetryMs = 30_000;

/**
 * Milliseconds from a fetch that succeeded to the next. `random` is from 0 up to 1: proxies that started together
 * spread.
 */
export function refreshDelayMs(lifetimeMs: number, random: number): number {
  return lifetimeMs * (earliestShare + (latestShare - earliestShare) * random);
}

/**
 * Milliseconds from the n-th failed attempt in a row (1 and up, `Infinity` for the longest) to the next: 1 s to 30 s,
 * doubling, spread by `random`.
 */
export function retryDelayMs(failures: number, random: number): number {
  const longestMs = Math.min(firstRetryMs * 2 ** failures, lastRetryMs);
  return Math.max(firstRetryMs, longestMs * (0.5 + 0.5 * random));
}
