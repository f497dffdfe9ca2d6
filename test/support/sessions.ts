import type { RsaKey } from './keys.js';
import { signToken, type Claims } from './tokens.js';

/** The issuer of sessions by the config of these tests. */
export const sessionIssuer = 'https://api.example.com/auth';

export interface SessionInput {
  readonly key: RsaKey;
  /** Replace or add claims; `undefined` takes one away. */
  readonly claims?: Claims | undefined;
  /** Replace or add header members; `undefined` takes one away. */
  readonly header?: Claims | undefined;
  readonly nowMs?: number | undefined;
}

/** The payload of a session's access token, as the Core writes it. */
export function sessionClaims(claims: Claims = {}, nowMs: number = Date.now()): Claims {
  const nowS = Math.floor(nowMs / 1000);
  return {
    sub: 'user-1',
    rsub: 'user-1',
    tId: 'public',
    iss: sessionIssuer,
    iat: nowS,
    exp: nowS + 3600,
    sessionHandle: '5a7c4e1e-0000-4000-8000-000000000001',
    refreshTokenHash1: 'ab'.repeat(32),
    parentRefreshTokenHash1: null,
    antiCsrfToken: null,
    'st-role': { v: ['support'], t: nowMs },
    ...claims,
  };
}

/** A signed access token of a session that `sessionIssuer` made, unless the overrides say otherwise. */
export function mintSession({ key, claims, header, nowMs }: SessionInput): string {
  const head = { kid: key.keyId, typ: 'JWT', version: '5', alg: 'RS256', ...header };
  return signToken(JSON.stringify(head), JSON.stringify(sessionClaims(claims, nowMs)), key.privateKey);
}
