import type { Ruling } from '../simulate/decide.js';

/** Says which rule of the config withdrew the credential, or that none did. */
export function explainRevocation({ denial, principal }: Ruling): readonly string[] {
  switch (denial?.reason) {
    case 'key_revoked':
      return [`revoked.key_ids names ${principal?.keyId ?? 'the key that its header names'}`];
    case 'subject_revoked':
      return [`revoked.subjects names ${principal?.subject ?? 'its subject'}`];
    case 'token_revoked':
      return [`revoked.token_ids names ${principal?.tokenId ?? 'its id'}`];
    case 'issue_time_revoked':
      return ['revoked.issued_before is later than its iat, or it has none'];
    default:
      return [
        'no rule of `revoked` in the config names it; what `sallyport revoke` withdrew through the store is not asked',
      ];
  }
}
