/**
 * Limits by caller: protection of a service from callers that ask too much, and no security. The rate is a bucket of
 * `burst` requests that fills at `perSecond`, kept as one time, that at which it would be full (generic cell rate
 * algorithm).
 */
import type { Denial, Reason } from '../denial.js';
import { digestOf } from '../../lib/digest.js';
import type { Limits, Rate } from './policy.js';
import type { Principal } from '../token/principal.js';
import { principalDigest } from '../idempotency/scope.js';

/** Whose requests are counted, and where: hashes, so that the store learns no subject. */
export interface LimitKey {
  readonly principal: string;
  readonly scope: string;
}

/** Names what a caller's requests are counted by. */
export function limitKey(principal: Pick<Principal, 'kind' | 'issuer' | 'subject'>, { route }: Limits): LimitKey {
  return { principal: principalDigest(principal), scope: digestOf('sallyport limit 1', route === null ? [] : [route]) };
}

/**
 * Takes one request out of a bucket. Times are milliseconds of one clock.
 *
 * @param fullAtMs when the bucket would be full; `null` where it is.
 * @returns milliseconds to wait, 0 where the request may go on, and when the bucket would be full.
 */
export function takeRequest(
  fullAtMs: number | null,
  { perSecond, burst }: Rate,
  nowMs: number,
): { readonly waitMs: number; readonly fullAtMs: number } {
  const intervalMs = 1_000 / perSecond;
  // A clock that was set back, or a burst that was lowered, must not keep a caller out for longer than an empty bucket
  // does.
  const fullAt = Math.min(Math.max(fullAtMs ?? nowMs, nowMs), nowMs + intervalMs * burst);
  const waitMs = fullAt + intervalMs - intervalMs * burst - nowMs;
  return waitMs > toleranceMs ? { waitMs, fullAtMs: fullAt } : { waitMs: 0, fullAtMs: fullAt + intervalMs };
}

/** Sums of fractions are a little off. */
const toleranceMs = 1e-6;

/** The refusal of a caller that asked for more, with what draft-ietf-httpapi-ratelimit-headers says of it. */
export function limitDenial(exceeded: 'rate' | 'in_flight', limits: Limits, waitMs: number): Denial {
  const retryAfterS = Math.max(1, Math.ceil(waitMs / 1_000));
  const reason: Reason = exceeded === 'rate' ? 'rate_limited' : 'too_many_in_flight';
  const policies = [
    ...(limits.rate === null
      ? []
      : [`${policyName('rate')};q=${limits.rate.burst};w=${Math.ceil(limits.rate.burst / limits.rate.perSecond)}`]),
    ...(limits.maxInFlight === null
      ? []
      : [`${policyName('in_flight')};q=${limits.maxInFlight};qu="concurrent-requests"`]),
  ];
  return {
    reason,
    retryAfterS,
    rateLimit: { policy: policies.join(', '), state: `${policyName(exceeded)};r=0;t=${retryAfterS}` },
  };
}

/** A structured field string (RFC 9651 §3.3.3). */
function policyName(limit: 'rate' | 'in_flight'): string {
  return limit === 'rate' ? '"requests"' : '"in-flight"';
}
