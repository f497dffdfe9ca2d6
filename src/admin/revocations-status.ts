import { timestamp } from '../lib/timestamp.js';
import type { Revocation, RevocationKind } from '../decision/revocation/record.js';
import type { RevocationsState } from '../ports/revocations.js';

/** Revocations through the store, as `/status` shows them. */
export interface RevocationsStatus {
  /** Whether the store was ever read. */
  readonly loaded: boolean;
  /** Whether the last successful look is too long ago. */
  readonly stale: boolean;
  /** Since that look, or since the start. */
  readonly age_s: number;
  /** Why the last look failed. */
  readonly problem: string | null;
  /** Whether a change would be told of at once, and not only found by looking. */
  readonly news: boolean;
  /** How many hold here. */
  readonly held: number;
  /** Some of them, those that the store has lost first. */
  readonly entries: readonly RevocationEntry[];
  /** How many the store has lost. */
  readonly lost: number;
  /** Records of the store that are not in force here. */
  readonly not_in_force: number;
}

interface RevocationEntry {
  readonly id: string;
  readonly kind: RevocationKind;
  /** Of a token by its digest, the digest. */
  readonly value: string;
  readonly issuer: string | null;
  readonly reason: string;
  readonly author: string;
  readonly created_at: string;
  readonly ends_at: string;
  /** Whether the store has it no more. */
  readonly lost: boolean;
}

/** As many as a page can show. */
const mostShown = 100;

export function revocationsStatus(state: RevocationsState | null): RevocationsStatus | null {
  if (state === null) return null;
  const { isLoaded, isStale, ageMs, problem, hasNews, held, lost, notInForce } = state;
  const missing = new Set(lost);
  const sorted = [...held].sort((a, b) => Number(missing.has(b.id)) - Number(missing.has(a.id)));
  return {
    loaded: isLoaded,
    stale: isStale,
    age_s: Math.round(ageMs / 1000),
    problem,
    news: hasNews,
    held: held.length,
    entries: sorted.slice(0, mostShown).map((revocation) => entryOf(revocation, missing.has(revocation.id))),
    lost: lost.length,
    not_in_force: notInForce,
  };
}

function entryOf(
  { id, kind, value, issuer, reason, author, createdAtMs, endsAtMs }: Revocation,
  isLost: boolean,
): RevocationEntry {
  return {
    id,
    kind,
    value,
    issuer,
    reason,
    author,
    created_at: timestamp(createdAtMs),
    ends_at: timestamp(endsAtMs),
    lost: isLost,
  };
}
