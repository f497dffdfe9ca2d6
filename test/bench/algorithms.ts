/** Access tokens of an authorization server (RFC 9068), by algorithm: one that comes again, and new ones. */
import { startJwksServer } from '../support/jwks-server.js';
import { keyFor, tokenBy, type AnyKey } from '../support/profile-tokens.js';
import type { ConfigTree } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';

/** Those that are measured. HAProxy 2.6 has the first two. */
export const measuredAlgorithms = ['RS256', 'ES256', 'PS256', 'EdDSA'] as const;

export type MeasuredAlgorithm = (typeof measuredAlgorithms)[number];

/** An issuer with one key of an algorithm, and its tokens. */
export interface AlgorithmIssuer {
  readonly key: AnyKey;
  readonly config: ConfigTree;
  readonly tokens: readonly string[];
}

export const oauthIssuer = 'https://idp.example.com';

export async function startAlgorithmIssuer(
  t: Scope,
  algorithm: MeasuredAlgorithm,
  count: number,
): Promise<AlgorithmIssuer> {
  const key = keyFor(algorithm);
  const { url } = await startJwksServer(t, { keys: [key] });
  const nowS = Math.floor(Date.now() / 1_000);
  const tokens = Array.from({ length: count }, (_, number) =>
    tokenBy(
      key,
      {
        iss: oauthIssuer,
        aud: 'orders',
        sub: 'checkout',
        client_id: 'checkout',
        scope: 'orders:read',
        jti: `token-${String(number).padStart(7, '0')}`,
        iat: nowS,
        exp: nowS + 7_000,
      },
      { typ: 'at+jwt' },
    ),
  );
  const issuer = {
    issuer: oauthIssuer,
    profile: 'oauth',
    audience: 'orders',
    algorithms: [algorithm],
    jwks_url: url,
    max_lifetime: '2h',
  };
  return { key, tokens, config: { issuers: { core: undefined, idp: issuer } } };
}
