/** The revocations that a proxy holds: what the store says adds to them, and nothing but time or an undo takes away. */
import type { Revocations } from '../route/policy.js';
import { maxRevocationMs, maxRevocationRecords, type Revocation, type RevocationUndo } from './record.js';

/** What the store holds. */
export interface StoredRevocations {
  /** Names this state of the store. */
  readonly version: string;
  /** The store's time, which its records are written in: the clocks of proxies disagree. */
  readonly nowMs: number;
  readonly revocations: readonly Revocation[];
  readonly undone: readonly RevocationUndo[];
  /** Names of records that cannot be read. */
  readonly unreadable: readonly string[];
}

interface HeldRevocation extends Revocation {
  /** When it ends here, in milliseconds that never go back. */
  readonly untilMs: number;
}

export interface RevocationList {
  readonly held: ReadonlyMap<string, HeldRevocation>;
  /** Ids that were taken back, and until when they have to be known. */
  readonly undone: ReadonlyMap<string, number>;
}

/** What one look at the store came to. */
export interface MergeResult {
  readonly list: RevocationList;
  /** New ones. */
  readonly added: readonly HeldRevocation[];
  /** Held until now, and taken back. */
  readonly undone: readonly string[];
  /** Held here, and neither in the store nor taken back: it was emptied, or fell back to an older state. */
  readonly lost: readonly string[];
  /** How many are not in force here for want of room. */
  readonly refused: number;
}

/** Held at once, in all: somebody who fills and empties the store again and again must not fill this process. */
const maxHeld = 4 * maxRevocationRecords;

export const emptyRevocationList: RevocationList = { held: new Map(), undone: new Map() };

/**
 * Takes in what the store holds. A revocation that is held stays as it is, whatever the store says of it or no longer
 * says; only an undo ends it before its time.
 *
 * @param nowMs milliseconds that never go back.
 */
export function mergeStored(before: RevocationList, stored: StoredRevocations, nowMs: number): MergeResult {
  const current = withoutExpired(before, nowMs);
  const held = new Map(current.held);
  const undone = new Map(current.undone);
  const untilOf = ({ endsAtMs }: Pick<Revocation, 'endsAtMs'>): number =>
    nowMs + Math.min(endsAtMs - stored.nowMs, maxRevocationMs);
  const ended: string[] = [];
  for (const undo of stored.undone) {
    if (undo.endsAtMs <= stored.nowMs || undone.has(undo.id) || undone.size >= maxHeld) continue;
    undone.set(undo.id, untilOf(undo));
    if (held.delete(undo.id)) ended.push(undo.id);
  }
  const added: HeldRevocation[] = [];
  let refused = 0;
  for (const revocation of stored.revocations) {
    if (revocation.endsAtMs <= stored.nowMs || held.has(revocation.id) || undone.has(revocation.id)) continue;
    if (held.size >= maxHeld) {
      refused += 1;
      continue;
    }
    const taken = { ...revocation, untilMs: untilOf(revocation) };
    held.set(revocation.id, taken);
    added.push(taken);
  }
  const there = new Set(stored.revocations.map(({ id }) => id));
  return {
    list: { held, undone },
    added,
    undone: ended,
    lost: [...held.keys()].filter((id) => !there.has(id)),
    refused,
  };
}

/** Drops what is over; the same list where nothing is. */
export function withoutExpired(list: RevocationList, nowMs: number): RevocationList {
  const held = [...list.held].filter(([, { untilMs }]) => untilMs > nowMs);
  const undone = [...list.undone].filter(([, untilMs]) => untilMs > nowMs);
  if (held.length === list.held.size && undone.length === list.undone.size) return list;
  return { held: new Map(held), undone: new Map(undone) };
}

/** The list as `isRevoked` reads it: one set of rules for each issuer that it names, and one for all of them. */
export function revocationRules({ held }: RevocationList): readonly Revocations[] {
  const rules = new Map<string | null, MutableRevocations>();
  for (const { issuer, kind, value } of held.values()) {
    const of = rules.get(issuer) ?? noRevocations(issuer);
    rules.set(issuer, of);
    // Rounded up: `iat` counts whole seconds, and a token of the very second may have come before.
    if (kind === 'issued_before') {
      of.issuedBeforeS = Math.max(of.issuedBeforeS ?? -Infinity, Math.ceil(Date.parse(value) / 1_000));
    } else setOf(of, kind).add(value);
  }
  return [...rules.values()];
}

interface MutableRevocations {
  readonly issuer: string | null;
  readonly keyIds: Set<string>;
  readonly subjects: Set<string>;
  readonly tokenIds: Set<string>;
  readonly tokenDigests: Set<string>;
  issuedBeforeS: number | null;
}

function noRevocations(issuer: string | null): MutableRevocations {
  return {
    issuer,
    keyIds: new Set(),
    subjects: new Set(),
    tokenIds: new Set(),
    tokenDigests: new Set(),
    issuedBeforeS: null,
  };
}

function setOf(revocations: MutableRevocations, kind: Exclude<Revocation['kind'], 'issued_before'>): Set<string> {
  switch (kind) {
    case 'key_id':
      return revocations.keyIds;
    case 'subject':
      return revocations.subjects;
    case 'token_id':
      return revocations.tokenIds;
    case 'token':
      return revocations.tokenDigests;
  }
}
