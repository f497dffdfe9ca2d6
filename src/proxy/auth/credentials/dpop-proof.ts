/** The proof of a request in its `DPoP` header (RFC 9449): the one kind of proof that there is. */
import { verifyDpopProof } from '../../../decision/binding/dpop-proof.js';
import type { RequestHead } from '../../../decision/http/request-head.js';
import type { RequestHeaders } from '../../../decision/http/request-headers.js';
import type { RequestTarget } from '../../../decision/http/request-target.js';
import type { ActiveConfig } from '../active-config.js';
import type { ProofVerifier } from '../prove-possession.js';

/** A request with a token and its proof, as far as that says something of it. */
interface RequestWithProof {
  readonly headers: Pick<RequestHeaders, 'dpop'>;
  readonly head: Pick<RequestHead, 'method'>;
  readonly target: Pick<RequestTarget, 'path'>;
  readonly token: string | null;
  readonly activeConfig: Pick<ActiveConfig, 'config' | 'proofs'>;
}

/** What holds the proof of a request to a key; `null` where it has none, and where none is taken. */
export function dpopVerifier(request: RequestWithProof, nowMs: number): ProofVerifier | null {
  const {
    headers: { dpop: proof },
    head: { method },
    target: { path },
    token,
    activeConfig: { config, proofs },
  } = request;
  const { dpop: rules } = config.listen;
  if (proof === null || token === null || rules === null) return null;
  const isNonce = proofs?.isNonce ?? null;
  return (key) => verifyDpopProof(proof, { method, path, token, key, nowMs, isNonce }, rules);
}
