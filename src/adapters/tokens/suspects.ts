import { backOffAfter, noBackOff } from '../../decision/egress/token-life.js';
import { callerIn } from '../../decision/egress/token-response.js';
import { bearerDigest } from '../../decision/token/credential.js';
import type { TokenFailure } from '../../ports/tokens.js';
import type { TokenSourceDeps } from './fetch-state.js';

/** Callers' own tokens that are remembered, since the issuer failed for them. */
const maxSuspects = 100;

/** Milliseconds after its wait for which such a token is remembered. */
const rememberedMs = 5 * 60_000;

/** Failures are in a row that are not further apart than this, milliseconds. */
const rowMs = 10_000;

/** So many tokens of one caller, and its next ones wait as well: it may have another one for each request. */
const manyTokens = 10;

interface Suspect {
  /** As `callerIn` says it. */
  readonly caller: string;
  readonly backOff: typeof noBackOff;
  readonly failure: TokenFailure;
}

interface Suspects {
  /** Takes in a failure. Says how long this token waits, and whether it says something of the issuer. */
  readonly fail: (
    failure: TokenFailure,
    subjectToken: string,
  ) => { readonly waitMs: number; readonly isOfAll: boolean };
  /** The issuer answered somebody: what it failed at before is no row. */
  readonly endRow: () => void;
  /** The issuer gave something for this token. */
  readonly clear: (subjectToken: string) => void;
  /** Until when nothing is fetched for this token, monotonic, and why; `null` where nothing is known of it. */
  readonly resting: (subjectToken: string) => { readonly failure: TokenFailure; readonly untilMs: number } | null;
}

/**
 * Remembers the callers' own tokens for which the issuer failed. Each waits by itself, by its digest: what another
 * token says of the same caller is not verified. The issuer is at fault where it fails for two callers in a row,
 * neither of them known for it: those who are known could keep all others waiting for ever.
 */
export function createSuspects({ clock, random }: Pick<TokenSourceDeps, 'clock' | 'random'>): Suspects {
  /** By the digest of the token; who failed last is last. */
  const suspects = new Map<string, Suspect>();
  /** When it failed for a new caller, monotonic, with nobody answered since. */
  let failedAtMs = -Infinity;

  function forgetOld(nowMs: number): void {
    for (const [digest, { backOff }] of suspects) {
      if (nowMs >= backOff.untilMs + rememberedMs) suspects.delete(digest);
    }
  }

  /** Whether the issuer failed for another new caller right before. That row is over then. */
  function endsRow(nowMs: number): boolean {
    const isSecond = nowMs < failedAtMs + rowMs;
    failedAtMs = isSecond ? -Infinity : nowMs;
    return isSecond;
  }

  function ofCaller(caller: string): readonly Suspect[] {
    return [...suspects.values()].filter((suspect) => suspect.caller === caller);
  }

  return {
    fail: (failure, subjectToken) => {
      const nowMs = clock.monotonic();
      forgetOld(nowMs);
      const digest = bearerDigest(subjectToken);
      const caller = callerIn(subjectToken);
      const known = suspects.get(digest);
      const isNewCaller = ofCaller(caller).length === 0;
      const backOff = backOffAfter(known?.backOff ?? noBackOff, failure.retryAfterMs, nowMs, random());
      suspects.delete(digest);
      suspects.set(digest, { caller, backOff, failure });
      const [oldest = ''] = suspects.keys();
      if (suspects.size > maxSuspects) suspects.delete(oldest);
      return { waitMs: backOff.untilMs - nowMs, isOfAll: isNewCaller && endsRow(nowMs) };
    },
    endRow: () => {
      failedAtMs = -Infinity;
    },
    clear: (subjectToken) => {
      if (suspects.size > 0) suspects.delete(bearerDigest(subjectToken));
    },
    resting: (subjectToken) => {
      if (suspects.size === 0) return null;
      const known = suspects.get(bearerDigest(subjectToken));
      if (known !== undefined) return { failure: known.failure, untilMs: known.backOff.untilMs };
      const others = suspects.size < manyTokens ? [] : ofCaller(callerIn(subjectToken));
      const last = others.at(-1);
      return last === undefined || others.length < manyTokens
        ? null
        : { failure: last.failure, untilMs: last.backOff.untilMs };
    },
  };
}
