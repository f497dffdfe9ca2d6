import { expiryOf, isBearerToken } from '../../decision/egress/token-response.js';
import { bearerDigest } from '../../decision/token/credential.js';
import type { TokenFetcher, TokenOutcome, TokenSource } from '../../ports/tokens.js';
import { createFetchState, unavailable, type TokenSourceDeps } from './fetch-state.js';
import { createTokenSlot, type TokenSlot } from './token-slot.js';

/** What is kept of all callers together. */
interface SubjectLimits {
  readonly maxEntries: number;
  readonly maxBytes: number;
}

const defaultLimits: SubjectLimits = { maxEntries: 10_000, maxBytes: 32 * 1024 * 1024 };

/** Of an entry besides its token, rounded up: the slot, the digest, its place in the tables. */
const entryBytes = 1_500;

/** Callers' tokens that the issuer did not take are remembered apart, so that made-up ones drive out no good one. */
const maxRefused = 1_000;

/** The issuer is asked about such a token again after this long, milliseconds. */
const refusedForMs = 5_000;

/** How long a token serves whose subject does not say when it ends, milliseconds. */
const unknownEndMs = 60_000;

interface Entry {
  readonly slot: TokenSlot;
  /** Of the caller's token, milliseconds since the epoch; `Infinity` where it does not say. */
  readonly endsAtMs: number;
  /** The one that was had last; `null` before. */
  token: string | null;
  bytes: number;
}

interface Refused {
  readonly outcome: TokenOutcome;
  /** Monotonic. */
  readonly untilMs: number;
}

const noSubject = unavailable('subject', 'the request has no token of its own to be exchanged', 0);
const unusable = unavailable('subject', 'the request’s own token is none that can be exchanged', 0);
const isOver = unavailable('subject', 'the request’s own token is over', 0);

/**
 * A token for each caller, had for the caller's own: kept by the digest of that, never for longer than that lives, and
 * within bounds; who was served longest ago leaves first.
 */
export function createSubjectSource(
  name: string,
  fetcher: TokenFetcher,
  deps: TokenSourceDeps,
  limits: SubjectLimits = defaultLimits,
): TokenSource {
  const { clock } = deps;
  const state = createFetchState(name, fetcher, deps);
  /** By the digest of the caller's token; whoever was served last is last. */
  const entries = new Map<string, Entry>();
  /** Issuers may give the same token for several of the callers' own. */
  const byToken = new Map<string, Set<Entry>>();
  const refused = new Map<string, Refused>();
  let bytes = 0;

  function open(digest: string, endsAtMs: number): Entry {
    const slot = createTokenSlot(
      state,
      {
        longestMs: () => (endsAtMs === Infinity ? unknownEndMs : Math.max(0, endsAtMs - clock.now())),
        onFetched: (outcome) => take(digest, entry, outcome),
      },
      deps,
    );
    const entry: Entry = { slot, endsAtMs, token: null, bytes: entryBytes };
    entries.set(digest, entry);
    bytes += entryBytes;
    return entry;
  }

  function take(digest: string, entry: Entry, outcome: TokenOutcome): void {
    if (entries.get(digest) !== entry) return;
    if (outcome.kind === 'token') {
      unlist(entry);
      entry.token = outcome.token;
      const alike = byToken.get(outcome.token);
      if (alike === undefined) byToken.set(outcome.token, new Set([entry]));
      else alike.add(entry);
      resize(entry, entryBytes + outcome.token.length);
      return;
    }
    if (outcome.problem === 'subject') {
      refused.set(digest, { outcome, untilMs: clock.monotonic() + refusedForMs });
      const [oldest = ''] = refused.keys();
      if (refused.size > maxRefused) refused.delete(oldest);
    } else if (entry.slot.life() !== null) return;
    drop(digest, entry);
  }

  function unlist(entry: Entry): void {
    if (entry.token === null) return;
    const alike = byToken.get(entry.token);
    alike?.delete(entry);
    if (alike?.size === 0) byToken.delete(entry.token);
  }

  function resize(entry: Entry, size: number): void {
    bytes += size - entry.bytes;
    entry.bytes = size;
    trim();
  }

  function drop(digest: string, entry: Entry): void {
    entries.delete(digest);
    unlist(entry);
    bytes -= entry.bytes;
    entry.slot.clear();
  }

  function trim(): void {
    for (const [oldest, entry] of entries) {
      if (entries.size <= limits.maxEntries && bytes <= limits.maxBytes) return;
      drop(oldest, entry);
    }
  }

  /** Why nothing is asked for this caller's token; `null` where it may be. */
  function refusalOf(digest: string): TokenOutcome | null {
    const known = refused.get(digest);
    if (known === undefined) return null;
    if (clock.monotonic() < known.untilMs) return known.outcome;
    refused.delete(digest);
    return null;
  }

  return {
    get: (subjectToken) => {
      if (subjectToken === null) return noSubject;
      const digest = bearerDigest(subjectToken);
      const known = entries.get(digest);
      if (known !== undefined) {
        if (clock.now() >= known.endsAtMs) return isOver;
        entries.delete(digest);
        entries.set(digest, known);
        return known.slot.get(subjectToken);
      }
      if (!isBearerToken(subjectToken)) return unusable;
      const refusal = refusalOf(digest) ?? state.refusal(subjectToken);
      if (refusal !== null) return refusal;
      const endsAtS = expiryOf(subjectToken);
      const endsAtMs = endsAtS === null ? Infinity : endsAtS * 1_000;
      if (clock.now() >= endsAtMs) return isOver;
      const entry = open(digest, endsAtMs);
      const outcome = entry.slot.get(subjectToken);
      // Where too many wait, nothing is under way for this caller: it takes nobody's place.
      if (outcome instanceof Promise) trim();
      else drop(digest, entry);
      return outcome;
    },
    invalidate: (token) => byToken.get(token)?.forEach(({ slot }) => slot.invalidate(token)),
    status: () => ({ kind: 'oauth', kept: byToken.size > 0, endsAtMs: null, ...state.status() }),
    close: () => {
      state.close();
      for (const [digest, entry] of entries) drop(digest, entry);
      refused.clear();
    },
  };
}
