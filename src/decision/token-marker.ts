/** Milliseconds that a single-use token's marker outlives the token's last valid moment, against clocks that differ. */
export const markerMarginMs = 30_000;

/**
 * How long the marker of a single-use token has to stay: to `exp` plus the skew that verification allows, plus a margin
 * (a marker that leaves at `exp` lets the token be replayed inside the skew).
 *
 * @returns milliseconds, at least the margin.
 */
export function markerTtlMs(token: { readonly expiresAtS: number; readonly clockSkewS: number }, nowMs: number): number {
  return Math.max(0, (token.expiresAtS + token.clockSkewS) * 1000 - nowMs) + markerMarginMs;
}
