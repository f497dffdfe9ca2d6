import { backOffAfter, noBackOff } from '../../decision/egress/token-life.js';
import { callerIn } from '../../decision/egress/token-response.js';
import { bearerDigest } from '../../decision/token/credential.js';
import type { TokenFailure } from '../../ports/tokens.js';
import type { TokenSourceDeps } from './fetch-state.js';

/** Tokens of strangers that are remembered, since the issuer failed for them. */
const maxStrange = 100;

/** Callers that are known, and as many of their tokens for which the issuer failed. */
const maxKnown = 10_000;

/** A caller is known for so long after the issuer gave something for it: no token is kept for longer. */
const knownForMs = 24 * 3_600_000;

/** Milliseconds after its wait for which such a token is remembered. */
const rememberedMs = 5 * 60_000;

/** Failures are in a row that are not further apart than this, milliseconds. */
const rowMs = 10_000;

/** For so long at most a stranger waits for what the issuer said of tokens that may not be its own, milliseconds. */
const maxStrangersMs = 30_000;

/** So many tokens of one stranger, and its next ones wait as well: it may have another one for each request. */
const manyTokens = 10;

interface Suspect {
  /** As `nameOf` says it. */
  readonly caller: string;
  readonly backOff: typeof noBackOff;
  readonly failure: TokenFailure;
  /** Until when the next tokens of its caller wait, where that is a stranger with many; monotonic. */
  readonly nextUntilMs: number;
}

/** A caller whom the issuer gave something. */
interface Known {
  readonly untilMs: number;
  /** The digest of the token for which it did so last; `null` once it failed for that. */
  token: string | null;
}

type Rest = { readonly failure: TokenFailure; readonly untilMs: number } | null;

interface Suspects {
  /** Takes in a failure. Says how long this token waits, and whether it says something of the issuer. */
  readonly fail: (
    failure: TokenFailure,
    subjectToken: string,
  ) => { readonly waitMs: number; readonly isOfAll: boolean };
  /** The issuer answered somebody about this token: what it failed at before is no row. */
  readonly answered: (subjectToken: string | null) => void;
  /** The issuer gave something, for this token. */
  readonly succeed: (subjectToken: string | null) => void;
  /** Until when nothing is fetched for this token, monotonic, and why; `null` where nothing is known of it. */
  readonly resting: (subjectToken: string) => Rest;
}

/**
 * Remembers the callers' own tokens for which the issuer failed. Each waits by itself, by its digest: what a token says
 * of its caller is not verified, so that anybody can have the issuer fail in the name of anybody.
 *
 * A caller is known once the issuer gave something for a token of its, and is a stranger before. Whatever tokens fail
 * in its name, the next one of a known caller is asked for. The issuer is at fault where it fails for two known callers
 * in a row, each with the very token that it took before: nobody else has those. Where it fails for two strangers in a
 * row, neither of them suspect before, the strangers wait together; while nobody is known, these are all there are.
 */
export function createSuspects({ clock, random }: Pick<TokenSourceDeps, 'clock' | 'random'>): Suspects {
  /** By name; whom the issuer gave something last is last. */
  const known = new Map<string, Known>();
  /** By the digest of the token; who failed last is last. */
  const ofKnown = new Map<string, Suspect>();
  const ofStrangers = new Map<string, Suspect>();
  const [knownRow, strangeRow] = [createRow(), createRow()];
  let strangersWait: Pick<Suspect, 'backOff' | 'failure'> | null = null;

  function forgetOld(nowMs: number): void {
    const isOld = ({ backOff }: Suspect): boolean => nowMs >= backOff.untilMs + rememberedMs;
    forgetWhile(known, ({ untilMs }) => nowMs >= untilMs);
    forgetWhile(ofKnown, isOld);
    for (const [digest, suspect] of ofStrangers) if (isOld(suspect)) ofStrangers.delete(digest);
  }

  function ofStranger(caller: string): readonly Suspect[] {
    return [...ofStrangers.values()].filter((suspect) => suspect.caller === caller);
  }

  /** Whether a failure says something of the issuer, or of those who are strangers to it. */
  function endsRow(caller: string, digest: string, isNew: boolean, nowMs: number): boolean {
    const knownCaller = known.get(caller);
    if (knownCaller === undefined) return isNew && strangeRow.endsWith(caller, nowMs);
    if (knownCaller.token !== digest) return false;
    // It counts once: the issuer may fail for it from now on, as for one that it has withdrawn.
    knownCaller.token = null;
    return knownRow.endsWith(caller, nowMs);
  }

  function forget(subjectToken: string): void {
    if (ofKnown.size + ofStrangers.size === 0) return;
    const digest = bearerDigest(subjectToken);
    ofKnown.delete(digest);
    ofStrangers.delete(digest);
  }

  function endRows(): void {
    knownRow.end();
    strangeRow.end();
  }

  return {
    fail: (failure, subjectToken) => {
      const nowMs = clock.monotonic();
      forgetOld(nowMs);
      const [digest, caller] = [bearerDigest(subjectToken), nameOf(subjectToken)];
      const isStranger = !known.has(caller);
      const [suspects, before] = isStranger ? [ofStrangers, ofKnown] : [ofKnown, ofStrangers];
      const soFar = suspects.get(digest) ?? before.get(digest);
      const isNew = isStranger && soFar === undefined && ofStranger(caller).length === 0;
      const backOff = backOffAfter(soFar?.backOff ?? noBackOff, failure.retryAfterMs, nowMs, random());
      // Its caller may be known now, or be a stranger again.
      before.delete(digest);
      const nextUntilMs = Math.min(backOff.untilMs, nowMs + maxStrangersMs);
      putLast(suspects, digest, { caller, backOff, failure, nextUntilMs }, isStranger ? maxStrange : maxKnown);
      const isRow = endsRow(caller, digest, isNew, nowMs);
      const isOfAll = isRow && (!isStranger || known.size === 0);
      if (!isRow || isOfAll) return { waitMs: backOff.untilMs - nowMs, isOfAll };
      const toldMs = failure.retryAfterMs === null ? null : Math.min(failure.retryAfterMs, maxStrangersMs);
      strangersWait = { failure, backOff: backOffAfter(strangersWait?.backOff ?? noBackOff, toldMs, nowMs, random()) };
      return { waitMs: Math.max(backOff.untilMs, strangersWait.backOff.untilMs) - nowMs, isOfAll };
    },
    answered: (subjectToken) => {
      endRows();
      if (subjectToken !== null) forget(subjectToken);
    },
    succeed: (subjectToken) => {
      endRows();
      strangersWait = null;
      if (subjectToken === null) return;
      forget(subjectToken);
      const untilMs = clock.monotonic() + knownForMs;
      putLast(known, nameOf(subjectToken), { untilMs, token: bearerDigest(subjectToken) }, maxKnown);
    },
    resting: (subjectToken) => {
      if (ofKnown.size + ofStrangers.size === 0 && strangersWait === null) return null;
      const digest = bearerDigest(subjectToken);
      const own = restOf(ofKnown.get(digest) ?? ofStrangers.get(digest));
      const caller = nameOf(subjectToken);
      if (known.has(caller)) return own;
      const others = ofStrangers.size < manyTokens ? [] : ofStranger(caller);
      const last = others.length < manyTokens ? undefined : others.at(-1);
      const next: Rest = last === undefined ? null : { failure: last.failure, untilMs: last.nextUntilMs };
      return longer(own ?? next, restOf(strangersWait));
    },
  };
}

/** Whose a token is, as it says itself; short, however long that is. */
function nameOf(subjectToken: string): string {
  return bearerDigest(callerIn(subjectToken));
}

/** Failures for different callers with nobody answered in between. */
function createRow(): { readonly endsWith: (caller: string, nowMs: number) => boolean; readonly end: () => void } {
  let last: { readonly caller: string; readonly atMs: number } | null = null;
  return {
    /** Whether it failed for another one right before. The row is over then. */
    endsWith: (caller, nowMs) => {
      const isSecond = last !== null && last.caller !== caller && nowMs < last.atMs + rowMs;
      last = isSecond ? null : { caller, atMs: nowMs };
      return isSecond;
    },
    end: () => {
      last = null;
    },
  };
}

function restOf(suspect: Pick<Suspect, 'backOff' | 'failure'> | null | undefined): Rest {
  return suspect === null || suspect === undefined
    ? null
    : { failure: suspect.failure, untilMs: suspect.backOff.untilMs };
}

function longer(one: Rest, other: Rest): Rest {
  return one !== null && one.untilMs >= (other?.untilMs ?? -Infinity) ? one : other;
}

/** Puts it at the end; beyond the most that there may be, the first one leaves. */
function putLast<V>(map: Map<string, V>, name: string, value: V, most: number): void {
  map.delete(name);
  map.set(name, value);
  const [first = ''] = map.keys();
  if (map.size > most) map.delete(first);
}

/** From the first on, as far as they are old: they are about in the order of their age, and many. */
function forgetWhile<V>(map: Map<string, V>, isOld: (value: V) => boolean): void {
  for (const [name, value] of map) {
    if (!isOld(value)) return;
    map.delete(name);
  }
}
