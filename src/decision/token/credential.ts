import { hash } from 'node:crypto';
import { peekHeader, maxTokenBytes } from './compact-jws.js';
import { denial, type Denial } from '../denial.js';
import type { RequestHeaders } from '../http/request-headers.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { readSessionHeaders, type SessionHeaders } from '../session/headers.js';
import { isSessionHeader } from '../session/token.js';
import { isB64Token } from '../../lib/text.js';

/** What a caller shows to prove who it is. */
export type Credential =
  | { readonly kind: 'service'; readonly token: string }
  | {
      readonly kind: 'session';
      readonly token: string;
      readonly from: 'header' | 'cookie';
      readonly headers: SessionHeaders;
    };

/** Which kinds count. */
export interface AcceptedKinds {
  readonly service: boolean;
  readonly session: boolean;
}

/**
 * Settles by form which credential a request has, before anything is verified: what is refused later never falls
 * through to another one. Where sessions count, a session is an `sAccessToken` cookie or a bearer token whose header
 * has a `version`, and `Authorization`, whatever it holds, beside such a cookie is `credential_ambiguous`. Where they
 * do not, no cookie is looked at.
 */
export function readCredential(
  {
    authorization,
    bearer,
    passed,
    saysBound: isProved,
  }: Pick<RequestHeaders, 'authorization' | 'bearer' | 'passed' | 'saysBound'>,
  accepts: AcceptedKinds,
): Result<Credential, Denial> {
  if (!accepts.session) return bearer.ok ? accept({ kind: 'service', token: bearer.value }) : bearer;
  const headers = readSessionHeaders(passed);
  const [cookie, second] = headers.accessTokens;
  if (cookie !== undefined && authorization !== null) return refuse(denial('credential_ambiguous'));
  // Two of them came from two domains, and nothing says which is meant.
  if (second !== undefined) return refuse(denial('credential_ambiguous'));
  if (cookie !== undefined) return accept({ kind: 'session', token: cookie, from: 'cookie', headers });
  if (!bearer.ok) return bearer;
  const token = bearer.value;
  // What a session is proved by is its cookie, and no key.
  if (isProved) return accepts.service ? accept({ kind: 'service', token }) : refuse(denial('credential_kind_refused'));
  if (isSessionHeader(peekHeader(token))) return accept({ kind: 'session', token, from: 'header', headers });
  return accepts.service ? accept({ kind: 'service', token }) : refuse(denial('credential_kind_refused'));
}

const scheme = /^bearer /i;

/** Tokens that come with a proof (RFC 9449 §7.1). */
const dpopScheme = 'dpop ';

/** How almost everybody spells it: what is remembered of a token is named by a digest of this and the token. */
export const usualScheme = 'Bearer ';

/** Names what is remembered of a token: of the header as it comes, since a part of a text costs more to hand over. */
export function headerDigest(authorization: string): string {
  return hash('sha256', authorization, 'base64url');
}

/** The same of a token, as its header usually comes. */
export function bearerDigest(token: string): string {
  return headerDigest(usualScheme + token);
}

/**
 * Tokens that were verified before, by digests: one that is among them was read as a token then, character by
 * character.
 */
export interface RememberedTokens {
  /**
   * The digest of `usualScheme` and the token, of a header that holds just these; `null` of any other, and of what is
   * too long for a token.
   */
  readonly digestOfHeader: (authorization: string) => string | null;
  /** Whether a token of this digest was verified. It may have expired since. */
  readonly has: (digest: string) => boolean;
}

/**
 * Reads the token of an `Authorization` header: scheme `Bearer` or `DPoP` in any case (RFC 9110 §11.1), exactly one
 * space, then 1 byte to 8 KiB of token characters. No header is `credential_missing`; anything else, other schemes too,
 * is `credential_malformed`.
 */
export function readBearer(authorization: string | null): Result<string, Denial> {
  if (authorization === null) return refuse(denial('credential_missing'));
  const isBearer = scheme.test(authorization);
  if (!isBearer && !saysDpop(authorization)) return refuse(denial('credential_malformed'));
  const value = isBearer ? tokenIn(authorization) : authorization.slice(dpopScheme.length);
  if (value.length > maxTokenBytes || !isB64Token(value)) return refuse(denial('credential_malformed'));
  return accept(value);
}

/** Whether the scheme is `DPoP`, by which a caller says that it proves what its token is bound to. */
export function saysDpop(authorization: string): boolean {
  return authorization.slice(0, dpopScheme.length).toLowerCase() === dpopScheme;
}

/** What stands behind the scheme `Bearer`. */
export function tokenIn(authorization: string): string {
  return authorization.slice(usualScheme.length);
}
