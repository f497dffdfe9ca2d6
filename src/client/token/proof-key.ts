/** Proofs that a program has the key that its token is bound to (DPoP, RFC 9449 §4). */
import { createProofSigner } from '../../core-api/proof-signer.js';

/** A request that is about to be sent. */
export interface ProvedRequest {
  /** As it is sent: upper case. */
  readonly method: string;
  /** Where it is sent, as this program writes it; its query and fragment are no part of the proof. */
  readonly url: string | URL;
  readonly token: string;
  /** The last `DPoP-Nonce` of that service, where it gave one. */
  readonly nonce?: string;
}

/** A key of this program. */
export interface ProofKey {
  /** Its thumbprint (RFC 7638): `cnf.jkt` of tokens that are bound to it. */
  readonly thumbprint: string;
  /** The headers of one request: a proof counts once. */
  readonly headers: (request: ProvedRequest) => { readonly authorization: string; readonly dpop: string };
}

/**
 * Makes a key of P-256 that lives as long as the program, or takes a private key in PEM: P-256, Ed25519 or RSA. Throws
 * a `TypeError` for another one.
 */
export function createProofKey(privateKeyPem?: string): ProofKey {
  const signer = createProofSigner(privateKeyPem);
  if (!signer.ok) throw new TypeError(`createProofKey: ${signer.error}`);
  const { thumbprint, prove } = signer.value;
  return {
    thumbprint,
    headers: ({ method, url, token, nonce = null }) => ({
      authorization: `DPoP ${token}`,
      dpop: prove({ method, url, token, nonce, nowMs: Date.now() }),
    }),
  };
}
