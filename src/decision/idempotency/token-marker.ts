/** Milliseconds that a single-use token's marker outlives the token's last valid moment, against clocks that differ. */
export const markerMarginMs = 30_000;

/** The largest skew that a config may allow, seconds. */
export const largestClockSkewS = 60;

/**
 * How long the marker of a single-use token has to stay: to `exp` plus the largest skew that verification may
 * come to allow, plus a margin (a marker that leaves before lets the token be replayed inside the skew, and a reload
 * may raise that).
 *
 * @returns milliseconds, at least the margin.
 */
export function markerTtlMs(expiresAtS: number, nowMs: number): number {
  return Math.max(0, (expiresAtS + largestClockSkewS) * 1000 - nowMs) + markerMarginMs;
}
