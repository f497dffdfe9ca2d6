/** Whether the sender of a token has what the token is bound to: docs/bound-tokens.md. */
import { refusedCertificate, type CallerCertificate } from '../../decision/binding/certificate.js';
import type { Confirmation, Proof } from '../../decision/binding/confirmation.js';
import { denial, type Denial } from '../../decision/denial.js';
import type { Result } from '../../lib/result.js';
import type { ProofKeeper } from '../../ports/auth.js';

/** Holds the proof that came with a request to a key, by its thumbprint. Each kind of proof has its own. */
export type ProofVerifier = (key: string) => Result<Proof, Denial>;

/** What is asked of one request. */
interface Possession {
  /** What the token is bound to; `undefined` where that is nothing. */
  readonly confirmation: Confirmation | undefined;
  /** Whether the request says, by its scheme, that its token is bound to a key. */
  readonly saysBound: boolean;
  /** `null` where no proof came, or where none is taken. */
  readonly verifyProof: ProofVerifier | null;
  readonly certificate: CallerCertificate | null;
  /** Whether the config has `cnf` of this issuer's tokens ignored. */
  readonly ignoresBinding: boolean;
  /**
   * When an admitted request is authorized again: the key that it proved on admission, or `null` where it proved none.
   * It shows no second proof. Left out the first time.
   */
  readonly provedKey?: string | null;
  readonly nowMs: number;
}

/**
 * Checks that the sender of a token has what the token is bound to: `null`, or why not. Answers at once unless a proof,
 * which counts once, has to be reserved. Refuses a token that comes as bound to a key and is not, and one that is bound
 * to a key and comes as a `Bearer`, so that nobody strips the proof off (RFC 9449 §7.1).
 *
 * @param proofs `null` where no proof is taken.
 */
export function provePossession(
  asked: Possession,
  proofs: Pick<ProofKeeper, 'use'> | null,
): Denial | null | Promise<Denial | null> {
  const { confirmation, saysBound, certificate, ignoresBinding } = asked;
  const key = confirmation?.key ?? null;
  if (key === null && saysBound && !ignoresBinding) return denial('proof_mismatch');
  if (confirmation === undefined) return null;
  const refused = refusedCertificate(confirmation, certificate);
  if (refused !== null || key === null) return refused;
  if (asked.provedKey !== undefined) return asked.provedKey === key ? null : denial('proof_missing');
  return proveKey(key, asked, proofs);
}

function proveKey(
  key: string,
  { saysBound, verifyProof, nowMs }: Possession,
  proofs: Pick<ProofKeeper, 'use'> | null,
): Denial | Promise<Denial | null> {
  if (!saysBound || verifyProof === null || proofs === null) return denial('proof_missing');
  const proof = verifyProof(key);
  if (!proof.ok) return proof.error;
  return proofs.use({ key, ...proof.value }, nowMs).then(
    (outcome) => {
      switch (outcome) {
        case 'new':
          return null;
        case 'used':
          return denial('proof_replayed');
        case 'unavailable':
          return denial('store_unavailable');
      }
    },
    // It must not reject; if it does, answer 503.
    () => denial('store_unavailable'),
  );
}
