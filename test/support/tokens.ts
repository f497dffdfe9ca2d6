import { sign, type KeyObject } from 'node:crypto';
import type { RsaKey } from './keys.js';

export type Claims = Readonly<Record<string, unknown>>;

export interface TokenInput {
  readonly key: RsaKey;
  /** Replace or add claims; `undefined` takes one away. */
  readonly claims?: Claims | undefined;
  /** Replace or add header members; `undefined` takes one away. */
  readonly header?: Claims | undefined;
  readonly nowMs?: number | undefined;
}

/** A signed service token that the config of `baseConfig` accepts, unless the overrides say otherwise. */
export function mintToken(input: TokenInput): string {
  const header = { alg: 'RS256', kid: input.key.keyId, typ: 'JWT', ...input.header };
  return signToken(JSON.stringify(header), JSON.stringify(serviceClaims(input)), input.key.privateKey);
}

/** The payload that `mintToken` signs. */
export function serviceClaims(input: Pick<TokenInput, 'claims' | 'nowMs'> = {}): Claims {
  const nowS = Math.floor((input.nowMs ?? Date.now()) / 1000);
  return {
    iss: 'https://api.example.com',
    aud: 'orders',
    sub: 'checkout',
    source: 'microservice',
    token_type: 'service',
    permissions: ['orders:read', 'orders:write'],
    iat: nowS,
    exp: nowS + 300,
    ...input.claims,
  };
}

/** Signs exactly these two texts with RS256: for header and payload bytes that no JSON serialiser would write. */
export function signToken(headerJson: string | Buffer, payloadJson: string | Buffer, privateKey: KeyObject): string {
  const signed = `${base64url(headerJson)}.${base64url(payloadJson)}`;
  return `${signed}.${sign('RSA-SHA256', Buffer.from(signed), privateKey).toString('base64url')}`;
}

export function base64url(text: string | Buffer): string {
  return Buffer.from(text as string).toString('base64url');
}
