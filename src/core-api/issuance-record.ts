import type { MintedToken } from './mint-response.js';

/**
 * One issued token, for the log that is reviewed after a compromise (docs/specification.md 5.4). Never the token
 * itself.
 */
export interface IssuanceRecord {
  /** When it was issued, by the clock here: RFC 3339, UTC. */
  readonly time: string;
  readonly iss: string;
  readonly sub: string;
  readonly aud: string;
  readonly permissions: readonly string[];
  /** `null` where the token may be used more than once. */
  readonly jti: string | null;
  readonly kid: string;
  /** Seconds since the epoch. */
  readonly exp: number;
}

/** What to write down of a token; `nowMs` is milliseconds since the epoch. */
export function issuanceRecord(
  { claims, issuer, tokenId, keyId, expiresAtS }: MintedToken,
  nowMs: number,
): IssuanceRecord {
  const { sub, aud, permissions } = claims;
  return {
    time: new Date(nowMs).toISOString(),
    iss: issuer,
    sub,
    aud,
    permissions,
    jti: tokenId,
    kid: keyId,
    exp: expiresAtS,
  };
}
