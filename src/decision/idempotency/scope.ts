import { digestOf } from '../../lib/digest.js';
import type { IssuerRules } from '../route/policy.js';
import type { Principal } from '../token/principal.js';

/** Where a reservation lives: hashes only, so that the store learns no subject, key or token id. */
export interface ReservationScope {
  /** Hash of who asks: one caller's key never answers another. The Redis hash tag. */
  readonly principal: string;
  /** Hash of audience, operation and key; `null` where the request has no key. */
  readonly operation: string | null;
  /** Hash of the token id; `null` where the token is not single-use. */
  readonly token: string | null;
}

/** Names the scope of one request. */
export function scopeOf(input: {
  readonly principal: Pick<Principal, 'kind' | 'issuer' | 'subject'>;
  readonly audience: string;
  readonly operation: string;
  readonly key: string | null;
  readonly tokenId: string | null;
}): ReservationScope {
  const { principal, audience, operation, key, tokenId } = input;
  return {
    principal: principalDigest(principal),
    operation: key === null ? null : digestOf('sallyport operation 1', [audience, operation, key]),
    token: tokenId === null ? null : digestOf('sallyport token 1', [tokenId]),
  };
}

type ScopedRules = Pick<IssuerRules, 'issuer' | 'audience'>;

/**
 * Returns the audience that keys of an issuer's callers are counted by: that of the first entry in the config with its
 * `iss`. Entries with one `iss` have the same callers, and which of them accepts a token may change from one request to
 * the next, with the keys that each has fetched by then.
 */
export function audienceOf(accepting: ScopedRules, entries: readonly { readonly rules: ScopedRules }[]): string {
  const { rules } = entries.find(({ rules: { issuer } }) => issuer === accepting.issuer) ?? { rules: accepting };
  return rules.audience;
}

/** Names a caller. */
export function principalDigest({ kind, issuer, subject }: Pick<Principal, 'kind' | 'issuer' | 'subject'>): string {
  return digestOf('sallyport principal 1', [kind, issuer, subject]);
}

/** The id by which callers, upstreams and operators name a record: `<principal>.<operation>`. */
export function recordIdOf(scope: ReservationScope): string | null {
  return scope.operation === null ? null : `${scope.principal}.${scope.operation}`;
}

/**
 * The id by which the upstream knows what was reserved for a request: that of the record, and where only a single-use
 * token was reserved `<principal>.<token>`, which no other request ever has. `null` where nothing is reserved.
 */
export function reservationIdOf(scope: ReservationScope): string | null {
  if (scope.operation === null && scope.token !== null) return `${scope.principal}.${scope.token}`;
  return recordIdOf(scope);
}

/** Reads a record id back. */
export function parseRecordId(id: string): { readonly principal: string; readonly operation: string } | null {
  const match = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/.exec(id);
  const [, principal, operation] = match ?? [];
  return principal === undefined || operation === undefined ? null : { principal, operation };
}
