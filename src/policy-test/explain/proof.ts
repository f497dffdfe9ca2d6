/** Says what a token is bound to, and what of it was proved. Never a token or a proof. */
import type { Confirmation } from '../../decision/binding/confirmation.js';
import type { Reason } from '../../decision/denial.js';
import type { Explained } from './explanation.js';

type ProofReason = Extract<
  Reason,
  'binding_unknown' | 'binding_missing' | 'certificate_missing' | 'certificate_mismatch' | 'proof_missing'
>;

const notShown = 'a request that is written down shows no certificate: explain and test refuse what is bound to one';

/** Why a token that is bound to something is refused. */
export function explainProof(reason: ProofReason, { activeConfig }: Explained): readonly string[] {
  switch (reason) {
    case 'binding_unknown':
      return ['its cnf has to have x5t#S256 or jkt, or both, each a SHA-256 in base64url, and nothing else'];
    case 'binding_missing': {
      const asking = activeConfig.issuers.filter(({ rules }) => rules.binding === 'require');
      return [
        `it has no cnf; binding is require for ${asking.map(({ rules }) => rules.name).join(', ')}: have the issuer bind it`,
      ];
    }
    case 'certificate_missing':
      return ['it is bound to a certificate (cnf.x5t#S256), and its sender showed none', notShown];
    case 'certificate_mismatch':
      return ['it is bound to another certificate (cnf.x5t#S256) than the one that its sender showed'];
    case 'proof_missing':
      return ['it is bound to a key (cnf.jkt), of which its sender shows no proof'];
  }
}

/** What was proved of a token that passed. */
export function proofWords(confirmation: Confirmation | undefined): readonly string[] {
  if (confirmation === undefined) return ['the token is bound to nothing: whoever has it may use it'];
  return [
    ...(confirmation.certificate === null ? [] : ['its sender has the certificate that it is bound to']),
    ...(confirmation.key === null ? [] : ['its sender has the key that it is bound to']),
  ];
}
