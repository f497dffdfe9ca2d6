import { denial, type Denial } from '../../../decision/denial.js';
import { isOpaque, verifyIntrospection } from '../../../decision/token/introspection.js';
import { claimedSubject } from '../../../decision/token/profile-claims.js';
import type { Principal } from '../../../decision/token/principal.js';
import { claimsAsRead, isRevoked, signedClaims } from '../../../decision/revocation/match.js';
import type { Revocations } from '../../../decision/route/policy.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import type { IntrospectionResponse, KeyAsker } from '../../../ports/auth.js';
import type { IntrospectionInForce, ActiveIssuer } from '../active-config.js';

type Verdict = Result<Principal, Denial>;

/** An issuer that is asked about its opaque tokens. */
type AskedIssuer = ActiveIssuer & { readonly introspection: IntrospectionInForce };

/**
 * Asks the one issuer whose opaque token it may be (RFC 7662); `null` where it has the form of a JWT, or may be
 * nobody's. Answers at once where the issuer's word is remembered.
 */
export function verifyOpaqueToken(
  token: string,
  issuers: readonly ActiveIssuer[],
  nowMs: number,
  asker: KeyAsker | null,
  digest: string | null,
): Verdict | Promise<Verdict> | null {
  const issuer = askedIssuer(token, issuers);
  if (issuer === null) return null;
  const response = issuer.introspection.source.ask(token, digest, asker);
  if (!(response instanceof Promise)) return judge(response, issuer, nowMs);
  return response.then(
    (found) => judge(found, issuer, asker?.now() ?? nowMs),
    // It must not reject; if it does, answer 503.
    () => refuse(denial('introspection_unavailable')),
  );
}

/** By which issuer's rules an opaque token is judged; `null` where it is none, or nobody's. */
export function askedIssuer(token: string, issuers: readonly ActiveIssuer[]): AskedIssuer | null {
  const found = issuers.find(
    ({ introspection }) => introspection !== undefined && token.startsWith(introspection.rules.tokenPrefix),
  );
  if (found?.introspection === undefined || !isOpaque(token)) return null;
  return { ...found, introspection: found.introspection };
}

/**
 * The revocation that matches what the issuer last said of an opaque token, whether or not the token was accepted then;
 * `null` where none does. The issuer is not asked again.
 */
export function findRevokedClaims(
  token: string,
  issuers: readonly ActiveIssuer[],
  revocations: readonly Revocations[],
): Denial | null {
  const issuer = askedIssuer(token, issuers);
  const claims = issuer?.introspection.source.lastClaims(token) ?? null;
  if (issuer === null || claims === null) return null;
  const { rules } = issuer;
  for (const read of claimsAsRead(claims)) {
    const said = { ...signedClaims(noKey, read), issuer: rules.issuer, subject: claimedSubject(read, rules) };
    const found = isRevoked(said, revocations, () => '');
    if (found !== null) return found;
  }
  return null;
}

/** No key vouches for such a token. */
const noKey = '';

function judge(response: IntrospectionResponse, issuer: AskedIssuer, nowMs: number): Verdict {
  const { rules, introspection } = issuer;
  switch (response.kind) {
    case 'inactive':
      return refuse(denial('token_inactive'));
    case 'unavailable':
      return refuse(denial('introspection_unavailable'));
    case 'limited':
      return refuse(denial('introspection_limited'));
    case 'active': {
      const claims = verifyIntrospection(response.claims, { ...rules, ...introspection.rules }, nowMs);
      if (!claims.ok) return claims;
      return accept({
        kind: 'service',
        issuerName: rules.name,
        issuer: rules.issuer,
        keyId: noKey,
        ...claims.value,
      });
    }
  }
}
