import { denial, type Denial } from './denial.js';
import type { Revocations } from './policy.js';
import type { Principal } from './principal.js';
import type { JsonObject } from './strict-json.js';

/** What a credential can be withdrawn by. */
export type Withdrawable = Pick<Principal, 'keyId' | 'subject' | 'tokenId' | 'issuedAtS'>;

/**
 * Names the rule by which a verified credential was withdrawn, or `null`. While an issued-before rule is in force a
 * credential that does not say when it was issued is refused too: it may be one of those meant.
 */
export function isRevoked(credential: Withdrawable, revocations: Revocations): Denial | null {
  const { keyIds, subjects, tokenIds, issuedBeforeS } = revocations;
  if (keyIds.has(credential.keyId)) return denial('key_revoked');
  if (subjects.has(credential.subject)) return denial('subject_revoked');
  if (credential.tokenId !== null && tokenIds.has(credential.tokenId)) return denial('token_revoked');
  if (issuedBeforeS !== null && (credential.issuedAtS === null || credential.issuedAtS < issuedBeforeS)) {
    return denial('issue_time_revoked');
  }
  return null;
}

/** Whether anything is withdrawn by what the claims of a token say. */
export function revokesClaims({ subjects, tokenIds, issuedBeforeS }: Revocations): boolean {
  return subjects.size > 0 || tokenIds.size > 0 || issuedBeforeS !== null;
}

/** What a token can be withdrawn by whose signature held and whose claims did not: whatever of them there is. */
export function signedClaims(keyId: string, { sub, jti, iat }: JsonObject): Withdrawable {
  return {
    keyId,
    subject: typeof sub === 'string' ? sub : '',
    tokenId: typeof jti === 'string' ? jti : null,
    issuedAtS: typeof iat === 'number' ? iat : null,
  };
}
