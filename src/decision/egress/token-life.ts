/**
 * When a token is renewed and for how long it is given, and how long an issuer that fails is left alone. Times are
 * milliseconds; `random` is from 0 to 1.
 */

/** A token is given until this long before its end, so that it does not expire on its way. */
const maxMarginMs = 30_000;
const minMarginMs = 1_000;

/**
 * Renewal begins within this part of the lifetime; where exactly is chance, so that many processes do not come at once.
 */
const renewFrom = 0.7;
const renewSpread = 0.15;

interface RenewalPlan {
  /** From then on the token is renewed while it is given. */
  readonly renewAfterMs: number;
  /** From then on it is not given any more. */
  readonly usableForMs: number;
}

/** Plans the life of a token. */
export function planRenewal(lifetimeMs: number, random: number): RenewalPlan {
  const marginMs = Math.min(maxMarginMs, Math.max(minMarginMs, lifetimeMs / 10));
  const usableForMs = Math.max(0, lifetimeMs - marginMs);
  return {
    renewAfterMs: Math.min(Math.round(lifetimeMs * (renewFrom + renewSpread * random)), usableForMs),
    usableForMs,
  };
}

/** One moment, on the clock that never goes back and on that of the day, which goes on while the machine sleeps. */
interface Moment {
  readonly monotonicMs: number;
  readonly dayMs: number;
}

/** Until when a token that is kept serves. */
export interface TokenLife {
  /** Monotonic. */
  readonly renewAtMs: number;
  /** Monotonic. */
  readonly usableUntilMs: number;
  /** On the clock of the day. */
  readonly usableUntilDayMs: number;
  /** Its own end, on the clock of the day. */
  readonly endsAtMs: number;
}

/**
 * Begins the life of a token. `asked` is the moment before it was asked for, since it may have been made right then.
 */
export function beginLife(lifetimeMs: number, asked: Moment, random: number): TokenLife {
  const { renewAfterMs, usableForMs } = planRenewal(lifetimeMs, random);
  return {
    renewAtMs: asked.monotonicMs + renewAfterMs,
    usableUntilMs: asked.monotonicMs + usableForMs,
    usableUntilDayMs: asked.dayMs + usableForMs,
    endsAtMs: asked.dayMs + lifetimeMs,
  };
}

/** What a token that is kept is good for: to be given, to be given while the next one is fetched, or nothing. */
export function judgeLife(life: TokenLife, monotonicMs: number, dayMs: number): 'fresh' | 'due' | 'over' {
  if (monotonicMs >= life.usableUntilMs || dayMs >= life.usableUntilDayMs) return 'over';
  return monotonicMs < life.renewAtMs ? 'fresh' : 'due';
}

const firstBackOffMs = 500;
const maxBackOffMs = 30_000;

/** The longest wait that an issuer may ask for. */
const maxRetryAfterMs = 5 * 60_000;

/**
 * How long to wait after so many failures in a row: doubling, with chance in its upper half, or as long as the issuer
 * asked for.
 */
export function backOffMs(failures: number, random: number, retryAfterMs: number | null): number {
  const ceiling = Math.min(maxBackOffMs, firstBackOffMs * 2 ** Math.min(failures - 1, 10));
  return Math.max(ceiling * (0.5 + 0.5 * random), Math.min(retryAfterMs ?? 0, maxRetryAfterMs));
}

/** How long an issuer is left alone. */
interface BackOff {
  /** In a row. */
  readonly failures: number;
  /** Monotonic. */
  readonly untilMs: number;
}

export const noBackOff: BackOff = { failures: 0, untilMs: -Infinity };

/** Takes in a failure. Several fetches at once that meet the same outage are one. */
export function backOffAfter(backOff: BackOff, retryAfterMs: number | null, nowMs: number, random: number): BackOff {
  const failures = nowMs >= backOff.untilMs ? backOff.failures + 1 : backOff.failures;
  return { failures, untilMs: Math.max(backOff.untilMs, nowMs + backOffMs(failures, random, retryAfterMs)) };
}

/** Seconds that a caller is asked to wait: whole ones, 1 to 300. */
export function retryAfterSeconds(ms: number): number {
  return Math.min(maxRetryAfterMs / 1_000, Math.max(1, Math.ceil(ms / 1_000)));
}

/** How many invalidations count at once. */
const invalidationsAtOnce = 5;

/** One more counts after each of these, milliseconds. */
const invalidationEveryMs = 10_000;

/**
 * How many invalidations still count: a target that takes no token at all must not have a new one made for each
 * request.
 */
interface InvalidationBudget {
  readonly left: number;
  /** Monotonic. */
  readonly atMs: number;
}

export const fullInvalidationBudget: InvalidationBudget = { left: invalidationsAtOnce, atMs: -Infinity };

/** What is left once one more is counted; `null` where it does not count. */
export function takeInvalidation({ left, atMs }: InvalidationBudget, nowMs: number): InvalidationBudget | null {
  const now = Math.min(invalidationsAtOnce, left + Math.max(0, nowMs - atMs) / invalidationEveryMs);
  return now < 1 ? null : { left: now - 1, atMs: nowMs };
}
