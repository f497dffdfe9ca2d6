import type { MintedToken } from '../../core-api/mint-response.js';
import { backOffMs, planRenewal } from '../../decision/egress/token-life.js';
import type { Result } from '../../lib/result.js';
import type { Clock } from '../../ports/system.js';
import { TokenError, type TokenErrorCode } from './error.js';

/** Why an attempt gave no token. */
export interface AttemptFailure {
  readonly code: TokenErrorCode;
  readonly reason: string;
  readonly status: number | null;
  readonly retryAfterMs: number | null;
}

export type MintAttempt = () => Promise<Result<MintedToken, AttemptFailure>>;

interface CacheDeps {
  /** Has one token minted. Never rejects. */
  readonly attempt: MintAttempt;
  readonly clock: Clock;
  /** From 0 to 1. */
  readonly random: () => number;
}

/** Gives out tokens; rejects with a `TokenError`. */
export interface TokenSupply {
  readonly get: () => Promise<string>;
  /** Forgets this token where it is the one in hand. */
  readonly forget: (token: string) => void;
  readonly clear: () => void;
}

interface Held {
  readonly token: string;
  /** One promise for every call: nothing is made to hand a token out. */
  readonly handedOut: Promise<string>;
  /** On the clock that never goes back. */
  readonly renewAtMs: number;
  readonly usableUntilMs: number;
  /** On the clock of the day, which goes on while the machine sleeps. */
  readonly usableUntilDayMs: number;
}

/** Holds back attempts after one that failed. */
interface BackOff {
  readonly check: () => TokenError | null;
  readonly note: (failure: AttemptFailure) => TokenError;
  readonly clear: () => void;
}

/** One token for all, renewed ahead of its end while it is in use; one attempt at a time. */
export function createTokenCache({ attempt, clock, random }: CacheDeps): TokenSupply {
  const backOff = createBackOff(clock, random);
  let held: Held | null = null;
  let flight: Promise<string> | null = null;

  const renew = (): Promise<string> => {
    flight ??= fetchToken().finally(() => {
      flight = null;
    });
    return flight;
  };

  const fetchToken = async (): Promise<string> => {
    // Its life is counted from before the call: it may have been signed right then.
    const started = { monotonicMs: clock.monotonic(), dayMs: clock.now() };
    const minted = await attempt();
    if (!minted.ok) throw backOff.note(minted.error);
    backOff.clear();
    const { token, issuedAtS, expiresAtS } = minted.value;
    const plan = planRenewal((expiresAtS - issuedAtS) * 1_000, random());
    held = {
      token,
      handedOut: Promise.resolve(token),
      renewAtMs: started.monotonicMs + plan.renewAfterMs,
      usableUntilMs: started.monotonicMs + plan.usableForMs,
      usableUntilDayMs: started.dayMs + plan.usableForMs,
    };
    return token;
  };

  return {
    get: () => {
      const nowMs = clock.monotonic();
      if (held !== null && nowMs < held.usableUntilMs && clock.now() < held.usableUntilDayMs) {
        // The one in hand still serves: whoever needs the next one meets the failure, if it lasts.
        if (nowMs >= held.renewAtMs && flight === null && backOff.check() === null) renew().catch(() => undefined);
        return held.handedOut;
      }
      const resting = flight === null ? backOff.check() : null;
      return resting === null ? renew() : Promise.reject(resting);
    },
    forget: (token) => {
      if (held?.token === token) held = null;
    },
    clear: () => {
      held = null;
    },
  };
}

/** A fresh token for each call. Failures hold back the calls after them. */
export function createTokenMint({ attempt, clock, random }: CacheDeps): TokenSupply {
  const backOff = createBackOff(clock, random);
  return {
    get: async () => {
      const resting = backOff.check();
      if (resting !== null) throw resting;
      const minted = await attempt();
      if (!minted.ok) throw backOff.note(minted.error);
      backOff.clear();
      return minted.value.token;
    },
    forget: () => undefined,
    clear: () => undefined,
  };
}

function createBackOff(clock: Clock, random: () => number): BackOff {
  let trouble: { readonly failure: AttemptFailure; readonly untilMs: number } | null = null;
  let failures = 0;
  const errorOf = ({ code, reason, status }: AttemptFailure, retryAfterMs: number): TokenError =>
    new TokenError(code, reason, { status, retryAfterMs });
  return {
    check: () => {
      if (trouble === null) return null;
      const waitMs = trouble.untilMs - clock.monotonic();
      return waitMs > 0 ? errorOf(trouble.failure, waitMs) : null;
    },
    note: (failure) => {
      const nowMs = clock.monotonic();
      // Several at once that meet the same outage are one failure.
      if (trouble === null || nowMs >= trouble.untilMs) failures += 1;
      const waitMs = backOffMs(failures, random(), failure.retryAfterMs);
      trouble = { failure, untilMs: Math.max(trouble?.untilMs ?? 0, nowMs + waitMs) };
      return errorOf(failure, waitMs);
    },
    clear: () => {
      trouble = null;
      failures = 0;
    },
  };
}
