import type { Explained } from './explanation.js';

/** Says which rule revoked the credential, or that none did. */
export function explainRevocation({ ruling: { denial, principal }, knowsStore = false }: Explained): readonly string[] {
  const rules = knowsStore ? '`sallyport revoke`, or the config by revoked.' : 'revoked.';
  switch (denial?.reason) {
    case 'key_revoked':
      return [`${rules}key_ids names ${principal?.keyId ?? 'the key that its header names'}`];
    case 'subject_revoked':
      return [`${rules}subjects names ${principal?.subject ?? 'its subject'}`];
    case 'token_revoked':
      return [`${rules}token_ids names ${principal?.tokenId ?? 'its id'}`];
    case 'issue_time_revoked':
      return ['revoked.issued_before is later than its iat, or it has none'];
    default:
      return [
        knowsStore
          ? 'neither a rule of `revoked` in the config nor `sallyport revoke` names it'
          : 'no rule of `revoked` in the config names it; what `sallyport revoke` wrote to the store is not asked',
      ];
  }
}
