import { maxTokenBytes } from './compact-jws.js';
import { denial, type Denial } from '../denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';

const scheme = /^bearer /i;

/** How almost everybody spells it: what is remembered of a token is named by a digest of this and the token. */
export const usualScheme = 'Bearer ';

/** RFC 6750 §2.1 `b64token`. A comma is no part of it, so two fields that something joined into one are refused. */
const token = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * Tokens that were verified before, by digests: one that is among them was read as a token then, character by
 * character.
 */
export interface RememberedTokens {
  /**
   * The digest of `usualScheme` and the token, of a field that holds just these; `null` of any other, and of what is
   * too long for a token.
   */
  readonly digestOfField: (authorization: string) => string | null;
  /** Whether a token of this digest was verified. It may have expired since. */
  readonly has: (digest: string) => boolean;
}

/**
 * Reads the token of an `Authorization` field: scheme `Bearer` in any case (RFC 9110 §11.1), exactly one space, then
 * 1 byte to 8 KiB of token characters. No field is `credential_missing`; anything else, other schemes too, is
 * `credential_malformed`.
 */
export function readBearer(authorization: string | null): Result<string, Denial> {
  if (authorization === null) return refuse(denial('credential_missing'));
  if (!scheme.test(authorization)) return refuse(denial('credential_malformed'));
  const value = tokenIn(authorization);
  if (value.length > maxTokenBytes || !token.test(value)) return refuse(denial('credential_malformed'));
  return accept(value);
}

/** What stands behind the scheme. */
export function tokenIn(authorization: string): string {
  return authorization.slice(usualScheme.length);
}
