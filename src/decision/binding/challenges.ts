/** What a 401 asks for, the same for every refusal of a listener, so that it says nothing of a token. Pure. */
import { onlyBearer, type Challenges } from '../http/problem-details.js';
import { proofAlgorithms } from './dpop-proof.js';

/**
 * Adds the challenge of RFC 9449 §7.1, where proofs of keys are taken, and the nonce of §9, where one is asked for. A
 * caller that was refused may ask again with that nonce, whatever it was refused for.
 *
 * @param nonce `null` where none is asked for.
 */
export function challengesOf(takesProofs: boolean, nonce: (() => string) | null): Challenges {
  if (!takesProofs) return onlyBearer;
  const asked = nonce === null ? '' : 'error="use_dpop_nonce", ';
  const headers = [...onlyBearer(), 'WWW-Authenticate', `DPoP realm="sallyport", ${asked}algs="${proofAlgorithms}"`];
  return nonce === null ? () => headers : () => [...headers, 'DPoP-Nonce', nonce()];
}
