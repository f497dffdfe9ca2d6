import { denial, type Denial } from '../denial.js';

/** What is known in the moment before the first byte would go to the upstream. */
export interface DispatchMoment {
  /** Milliseconds since the reserve command was sent: the lease began no earlier. */
  readonly sinceReserveMs: number;
  readonly leaseMs: number;
  /** Longest time the upstream may take in all, milliseconds. */
  readonly upstreamMs: number;
  /** How many replicas confirmed, of how many that must. */
  readonly confirmedReplicas: number;
  readonly neededReplicas: number;
  /** Wall clock, milliseconds. */
  readonly nowMs: number;
  readonly tokenExpiresAtMs: number;
  readonly clockSkewMs: number;
  readonly callerGone: boolean;
}

/**
 * Decides whether an acquired reservation may be dispatched. A refusal means that nothing was sent, so the reservation
 * is released.
 *
 * @returns `null` to go on, or the reason not to.
 */
export function checkDispatch(moment: DispatchMoment): Denial | null {
  // Asked so that a count which is no number is too few.
  if (!(moment.confirmedReplicas >= moment.neededReplicas)) return denial('store_unavailable');
  // A process that slept must not start what the lease no longer covers: another attempt may hold it in doubt by then.
  if (moment.sinceReserveMs + moment.upstreamMs >= moment.leaseMs) return denial('store_unavailable');
  if (moment.nowMs >= moment.tokenExpiresAtMs + moment.clockSkewMs) return denial('token_expired');
  if (moment.callerGone) return denial('caller_gone');
  return null;
}

/** Milliseconds beyond the upstream's and the store's time that a lease lasts. */
export const leaseMarginMs = 5_000;

/** How long a pending record is leased: connect, response and settle time and a margin. */
export function leaseMsOf(times: {
  readonly connectMs: number;
  readonly responseMs: number;
  readonly settleMs: number;
}): number {
  return times.connectMs + times.responseMs + times.settleMs + leaseMarginMs;
}

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
