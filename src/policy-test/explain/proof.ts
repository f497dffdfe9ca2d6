/** Says what a token is bound to, and what of it was proved. Never a token or a proof. */
import { verifiedName } from '../../decision/binding/certificate.js';
import type { Confirmation } from '../../decision/binding/confirmation.js';
import { proofAlgorithms } from '../../decision/binding/dpop-proof.js';
import type { Reason } from '../../decision/denial.js';
import type { Explained } from './explanation.js';

type ProofReason = Extract<
  Reason,
  | 'binding_unknown'
  | 'binding_missing'
  | 'certificate_missing'
  | 'certificate_mismatch'
  | 'proof_missing'
  | 'proof_malformed'
  | 'proof_mismatch'
  | 'proof_untimely'
  | 'proof_replayed'
  | 'proof_nonce'
>;

/** Why a token that is bound to something is refused. */
export function explainProof(reason: ProofReason, explained: Explained): readonly string[] {
  const { activeConfig } = explained;
  const { dpop } = activeConfig.config.listen;
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
      return noCertificate(explained, 'it is bound to a certificate (cnf.x5t#S256), and ');
    case 'certificate_mismatch':
      return [
        'it is bound to another certificate (cnf.x5t#S256) than the one that its sender shows',
        shownCertificate(explained),
      ];
    case 'proof_missing':
      return dpop === null
        ? ['it is bound to a key (cnf.jkt), and listen.dpop, which says how proofs are taken, is not set']
        : ['it is bound to a key (cnf.jkt); accepted: Authorization: DPoP TOKEN, and one DPoP header with a proof'];
    case 'proof_malformed':
      return [
        `the proof is no JWT with typ dpop+jwt, alg one of ${proofAlgorithms}, a public jwk, and the claims jti, htm, htu, iat and ath, signed by that jwk`,
      ];
    case 'proof_mismatch':
      return [
        'the proof is of another key than cnf.jkt, or for another token (ath), method (htm) or target (htu); or the scheme is DPoP, and the token is bound to no key',
        `htu has to be this path under ${[...(dpop?.origins ?? [])].join(' or ') || 'listen.dpop.origins'}, without query`,
      ];
    case 'proof_untimely':
      return [
        `iat of the proof is older than listen.dpop.max_age, ${String((dpop?.maxAgeMs ?? 0) / 1_000)} s, or ahead of our clock`,
      ];
    case 'proof_replayed':
      return ['a proof with this jti was used before: each request has one of its own'];
    case 'proof_nonce':
      return ['the proof does not repeat a nonce that DPoP-Nonce of a 401 told its client lately'];
  }
}

const howToShow =
  'a certificate is shown by client_certificate: to explain as --client-certificate FILE, to test in the request of a case';

/** Why none is known. A proxy that asks for a decision tells of none. */
function noCertificate({ ruling: { listener } }: Pick<Explained, 'ruling'>, before = ''): readonly string[] {
  return listener === null
    ? [`${before}its sender shows none`, howToShow]
    : [`${before}${listener.name} is told nothing of certificates: only the sidecar sees who shows one`];
}

/** What its sender shows, in one sentence. */
export function shownCertificate(explained: Explained): string {
  const { certificate } = explained;
  if (certificate === undefined || certificate === null) return noCertificate(explained).join('; ');
  const name = certificate.name ?? 'one without a name';
  const vouched = certificate.isVerified ? '' : ', for which nobody vouches';
  return `its sender shows ${name}${vouched}; SHA-256 ${certificate.digest}`;
}

/** Which certificate the route took; nothing where it asks for none. */
export function certificateWords({ ruling: { route }, certificate }: Explained): readonly string[] {
  const name = verifiedName(certificate ?? null);
  return name !== null && route?.clientCertificates?.has(name) === true ? [`client certificate ${name}: accepted`] : [];
}

/** What was proved of a token that passed. */
export function proofWords(
  confirmation: Confirmation | undefined,
  { certificate }: Pick<Explained, 'certificate'>,
): readonly string[] {
  if (confirmation === undefined) return ['the token is bound to nothing: whoever has it may use it'];
  return [
    ...(confirmation.certificate === null
      ? []
      : [`its sender has the certificate that it is bound to: ${certificate?.name ?? 'one without a name'}`]),
    ...(confirmation.key === null ? [] : ['its sender has the key that it is bound to']),
  ];
}
