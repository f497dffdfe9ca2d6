/**
 * When a token is renewed, and how long a failing Core is left alone. All times are milliseconds; `random` is from 0 to
 * 1.
 */

/** A token is handed out until this long before its end, so that it does not expire on its way. */
const maxMarginMs = 30_000;
const minMarginMs = 1_000;

/**
 * Renewal begins within this part of the lifetime; where exactly is chance, so that many processes do not come at once.
 */
const renewFrom = 0.7;
const renewSpread = 0.15;

const firstBackOffMs = 500;
const maxBackOffMs = 30_000;

/** The longest wait that a Core may ask for. */
const maxRetryAfterMs = 5 * 60_000;

export interface RenewalPlan {
  /** From then on the token is renewed while it is handed out. */
  readonly renewAfterMs: number;
  /** From then on it is not handed out any more. */
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

/**
 * How long to wait after so many failures in a row: doubling, with chance in its upper half, or as long as the Core
 * asked for.
 */
export function backOffMs(failures: number, random: number, retryAfterMs: number | null): number {
  const ceiling = Math.min(maxBackOffMs, firstBackOffMs * 2 ** Math.min(failures - 1, 10));
  return Math.max(ceiling * (0.5 + 0.5 * random), Math.min(retryAfterMs ?? 0, maxRetryAfterMs));
}
