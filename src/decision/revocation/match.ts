import { denial, type Denial, type Reason } from '../denial.js';
import { digestOf } from '../../lib/digest.js';
import type { Revocations } from '../route/policy.js';
import { isOpaque } from '../token/introspection.js';
import type { Principal } from '../token/principal.js';
import type { JsonObject, JsonValue } from '../../lib/strict-json.js';
import { withoutCase } from '../../lib/text.js';

/** Why a credential is refused that was revoked. */
export const revocationReasons: ReadonlySet<Reason> = new Set<Reason>([
  'key_revoked',
  'subject_revoked',
  'token_revoked',
  'issue_time_revoked',
]);

/** What a credential can be revoked by: of one that was refused, claims may be numbers. */
interface RevocableCredential extends Pick<Principal, 'issuer' | 'keyId' | 'issuedAtS'> {
  readonly subject: string | number;
  readonly tokenId: string | number | null;
}

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
  if (isAmong(subjects, credential.subject)) return denial('subject_revoked');
  if (credential.tokenId !== null && isAmong(tokenIds, credential.tokenId)) return denial('token_revoked');
  if (tokenDigests.size > 0 && tokenDigests.has(digest())) return denial('token_revoked');
  if (issuedBeforeS !== null && (credential.issuedAtS === null || credential.issuedAtS < issuedBeforeS)) {
    return denial('issue_time_revoked');
  }
  return null;
}

/** Beyond 2^53 several numbers in a token are one here: each of them may be the one that was revoked. */
export function isAmong(revoked: ReadonlySet<string>, name: string | number): boolean {
  if (typeof name === 'string' || Number.isSafeInteger(name)) return revoked.has(String(name));
  for (const text of revoked) if (Number(text) === name) return true;
  return false;
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
    subject: isText(sub) ? sub : '',
    tokenId: isText(jti) ? jti : null,
    issuedAtS: typeof iat === 'number' ? iat : null,
  };
}

/** Services that are less strict may take a number for the text of it. */
function isText(claim: JsonValue | undefined): claim is string | number {
  return typeof claim === 'string' || typeof claim === 'number';
}

/** Names of the claims that say whom and which token an issuer means. */
const namingClaims: ReadonlySet<string> = new Set(['sub', 'jti']);

/**
 * The claims of a token as readers may have them: as they stand, and with each name that is `sub` or `jti` only to
 * those who match names without case.
 */
export function claimsAsRead(claims: JsonObject): readonly JsonObject[] {
  const odd = Object.entries(claims).filter(([name]) => !namingClaims.has(name) && namingClaims.has(withoutCase(name)));
  return [claims, ...odd.map(([name, value]) => ({ ...claims, [withoutCase(name)]: value }))];
}
