/** What Sallyport signs for the upstream: who asks, and for exactly what (docs/assertion.md). */
import { createHash } from 'node:crypto';
import type { Principal } from './principal.js';

/** What of the config an assertion says. */
export interface AssertionRules {
  /** `iss`: who signs. */
  readonly issuer: string;
  readonly audience: string;
  /** Seconds, 1 to 60. */
  readonly ttlS: number;
  /** Name of the header that carries it. */
  readonly header: string;
}

/** A request as it goes out. */
export interface AssertedRequest {
  readonly principal: Principal;
  readonly method: string;
  /** The request target, byte for byte. */
  readonly target: string;
}

export type AssertionClaims = Readonly<Record<string, string | number | readonly string[]>>;

/**
 * The claims of one assertion (RFC 7519 §4.1; `htm` as in RFC 9449 §4.2). The target is there as a hash: it may be
 * longer than a header, and its query is nobody's to log.
 *
 * @param id unique for each; 128 random bits.
 */
export function assertionClaims(
  { principal, method, target }: AssertedRequest,
  rules: AssertionRules,
  nowMs: number,
  id: string,
): AssertionClaims {
  const issuedAtS = Math.floor(nowMs / 1_000);
  return {
    iss: rules.issuer,
    aud: rules.audience,
    sub: principal.subject,
    iat: issuedAtS,
    exp: issuedAtS + rules.ttlS,
    jti: id,
    kind: principal.kind,
    permissions: principal.permissions,
    token_issuer: principal.issuer,
    ...(principal.tokenId === null ? {} : { token_id: principal.tokenId }),
    htm: method,
    target_sha256: createHash('sha256').update(target, 'latin1').digest('base64url'),
  };
}

/** The id of an EC public key: its thumbprint (RFC 7638 §3). */
export function thumbprint({ crv, x, y }: { readonly crv: string; readonly x: string; readonly y: string }): string {
  return createHash('sha256')
    .update(JSON.stringify({ crv, kty: 'EC', x, y }))
    .digest('base64url');
}
