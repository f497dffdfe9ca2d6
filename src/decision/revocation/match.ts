import { denial, type Denial, type Reason } from '../denial.js';
import { digestOf } from '../../lib/digest.js';
import type { Revocations } from '../route/policy.js';
import { isOpaque } from '../token/introspection.js';
import type { Principal } from '../token/principal.js';
import type { JsonObject } from '../../lib/strict-json.js';

/** Why a credential is refused that was revoked. */
export const revocationReasons: ReadonlySet<Reason> = new Set<Reason>([
  'key_revoked',
  'subject_revoked',
  'token_revoked',
  'issue_time_revoked',
]);

/** What a credential can be revoked by. */
type RevocableCredential = Pick<Principal, 'issuer' | 'keyId' | 'subject' | 'tokenId' | 'issuedAtS'>;

/**
 * Names the rule by which a verified credential was revoked, or `null`. While an issued-before rule is in force a
 * credential that does not say when it was issued is refused too: it may be one of those meant.
 *
 * @param digest `tokenDigest` of what was presented; asked for only where some token was revoked by its digest.
 */
export function isRevoked(
  credential: RevocableCredential,
  revocations: readonly Revocations[],
  digest: () => string,
): Denial | null {
  for (const rules of revocations) {
    if (rules.issuer !== null && rules.issuer !== credential.issuer) continue;
    const found = brokenRule(credential, rules, digest);
    if (found !== null) return found;
  }
  return null;
}

function brokenRule(credential: RevocableCredential, rules: Revocations, digest: () => string): Denial | null {
  const { keyIds, subjects, tokenIds, tokenDigests, issuedBeforeS } = rules;
  if (keyIds.has(credential.keyId)) return denial('key_revoked');
  if (subjects.has(credential.subject)) return denial('subject_revoked');
  if (credential.tokenId !== null && tokenIds.has(credential.tokenId)) return denial('token_revoked');
  if (tokenDigests.size > 0 && tokenDigests.has(digest())) return denial('token_revoked');
  if (issuedBeforeS !== null && (credential.issuedAtS === null || credential.issuedAtS < issuedBeforeS)) {
    return denial('issue_time_revoked');
  }
  return null;
}

/**
 * Names a token that has no id of its own: a digest of what was signed, so that no other spelling of the signature
 * makes another token of it; of an opaque token all of it, whatever dots it has, in its plainest spelling. Nobody gets
 * the token back from it.
 */
export function tokenDigest(token: string): string {
  return digestOf('revoked token', [
    isOpaque(token) ? plainestSpelling(token) : token.slice(0, token.lastIndexOf('.')),
  ]);
}

/**
 * Any bearer token may end in `=` (RFC 6750 §2.1), and an issuer that decodes base64 may take it with them and without,
 * and in either alphabet of RFC 4648 §4 and §5. Only the issuer knows whether two spellings are one token: to a
 * revocation they are.
 */
function plainestSpelling(token: string): string {
  let end = token.length;
  while (token[end - 1] === '=') end -= 1;
  return token.slice(0, end).replaceAll('+', '-').replaceAll('/', '_');
}

/** Whether anything is revoked by what the claims of a token say. */
export function revokesClaims({ subjects, tokenIds, issuedBeforeS }: Revocations): boolean {
  return subjects.size > 0 || tokenIds.size > 0 || issuedBeforeS !== null;
}

/** What a token can be revoked by whose signature held and whose claims did not: whatever of them there is. */
export function signedClaims(keyId: string, { iss, sub, jti, iat }: JsonObject): RevocableCredential {
  return {
    issuer: typeof iss === 'string' ? iss : '',
    keyId,
    subject: typeof sub === 'string' ? sub : '',
    tokenId: typeof jti === 'string' ? jti : null,
    issuedAtS: typeof iat === 'number' ? iat : null,
  };
}
