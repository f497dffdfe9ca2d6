import { denial, type Denial } from './denial.js';
import type { Revocations } from './policy.js';
import type { Principal } from './principal.js';

/**
 * Names the rule by which a verified credential was withdrawn, or `null`. While an issued-before rule is in force a
 * credential that does not say when it was issued is refused too: it may be one of those meant.
 */
export function isRevoked(principal: Principal, revocations: Revocations): Denial | null {
  const { keyIds, subjects, tokenIds, issuedBeforeS } = revocations;
  if (keyIds.has(principal.keyId)) return denial('key_revoked');
  if (subjects.has(principal.subject)) return denial('subject_revoked');
  if (principal.tokenId !== null && tokenIds.has(principal.tokenId)) return denial('token_revoked');
  if (issuedBeforeS !== null && (principal.issuedAtS === null || principal.issuedAtS < issuedBeforeS)) {
    return denial('issue_time_revoked');
  }
  return null;
}
