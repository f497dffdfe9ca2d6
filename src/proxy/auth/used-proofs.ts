import { digestOf } from '../../lib/digest.js';
import type { Proof } from '../../decision/binding/confirmation.js';
import type { ProofKeeper, ProofUse } from '../../ports/auth.js';
import type { ReservationParts } from '../../ports/idempotency.js';
import { newAttempt } from '../exchange/ids.js';

/** How far the clocks of proxies on one store may be apart: a proof that is over for one may count for another. */
const proxyClocksMs = 10_000;

/**
 * Makes a proof count once, with a marker in the store that all its proxies share, as for single-use tokens. Markers
 * are kept by the key that made the proof, so that nobody uses up the ids of another (RFC 9449 §11.1), and for as long
 * as the proof counts.
 *
 * @param clockSkewMs how far the clock of a client may be from ours.
 */
export function createUsedProofs(
  { store, replicas }: Pick<ReservationParts, 'store' | 'replicas'>,
  clockSkewMs: number,
): ProofKeeper['use'] {
  /** Whether a fail-over may have lost that it was used: its client makes a new one when it asks again. */
  const isForgotten = ({ issuedAtS }: Pick<Proof, 'issuedAtS'>, floorS: number | null): boolean =>
    // A client's clock may be ahead: what it made just before may say just after.
    floorS !== null && issuedAtS * 1_000 < floorS * 1_000 + clockSkewMs;

  return async (proof, nowMs): Promise<ProofUse> => {
    if (isForgotten(proof, store.issuedBeforeFloorS())) return 'unavailable';
    const scope = {
      principal: digestOf('sallyport proof key 1', [proof.key]),
      operation: null,
      token: digestOf('sallyport proof 1', [proof.id]),
    };
    const markerTtlMs = Math.ceil(proof.endsAtMs - nowMs + proxyClocksMs);
    const reply = await store.reserve(scope, { attempt: newAttempt(), key: null, markerTtlMs });
    if (!reply.ok) return 'unavailable';
    const { reserved, confirmedReplicas } = reply.value;
    if (reserved.kind === 'token_replayed') return 'used';
    // The store may have failed over before it replied: the marker was then set where earlier uses are not known.
    const isKept = (confirmedReplicas ?? 0) >= replicas && !isForgotten(proof, store.issuedBeforeFloorS());
    return reserved.kind === 'acquired' && isKept ? 'new' : 'unavailable';
  };
}
