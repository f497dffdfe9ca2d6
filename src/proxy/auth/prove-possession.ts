/** Whether the sender of a token has what the token is bound to: docs/bound-tokens.md. */
import { refusedCertificate, type CallerCertificate } from '../../decision/binding/certificate.js';
import type { Confirmation } from '../../decision/binding/confirmation.js';
import { verifyDpopProof } from '../../decision/binding/dpop-proof.js';
import { denial, type Denial } from '../../decision/denial.js';
import type { RequestHeaders } from '../../decision/http/request-headers.js';
import type { ProofKeeper } from '../../ports/auth.js';
import type { ListenSettings } from '../../config/types.js';

/** What is asked of one request. */
export interface Possession {
  /** What the token is bound to; `undefined` where that is nothing. */
  readonly confirmation: Confirmation | undefined;
  readonly token: string;
  readonly headers: Pick<RequestHeaders, 'saysDpop' | 'dpop'>;
  readonly method: string;
  /** What precedes the query in the request target. */
  readonly path: string;
  readonly certificate: CallerCertificate | null;
  /** Whether its issuer's `cnf` says nothing, by the config. */
  readonly ignoresBinding: boolean;
  /**
   * The key of which a proof was shown when the request was let in: one that is judged again shows no other. `null`:
   * none was. Left out where it is judged for the first time.
   */
  readonly provedKey?: string | null;
  readonly nowMs: number;
}

/** What proofs are judged by. */
export interface PossessionDeps {
  readonly dpop: ListenSettings['dpop'];
  /** `null` where no proof is taken. */
  readonly proofs: ProofKeeper | null;
}

/**
 * Holds the sender of a token to what it is bound to: `null`, or why not. Answers at once unless a proof has to be
 * reserved, which counts once. The scheme `DPoP` says that the token is bound to a key: one that is not is refused, and
 * so is one that is bound and comes as a `Bearer`, so that nobody strips the proof off (RFC 9449 §7.1).
 */
export function provePossession(asked: Possession, deps: PossessionDeps): Denial | null | Promise<Denial | null> {
  const { confirmation, headers, certificate, ignoresBinding } = asked;
  const key = confirmation?.key ?? null;
  if (key === null && headers.saysDpop && !ignoresBinding) return denial('proof_mismatch');
  if (confirmation === undefined) return null;
  const refused = refusedCertificate(confirmation, certificate);
  if (refused !== null || key === null) return refused;
  if (asked.provedKey !== undefined) return asked.provedKey === key ? null : denial('proof_missing');
  return proveKey(key, asked, deps);
}

function proveKey(
  key: string,
  { token, headers, method, path, nowMs }: Possession,
  { dpop, proofs }: PossessionDeps,
): Denial | Promise<Denial | null> {
  if (!headers.saysDpop || headers.dpop === null || dpop === null || proofs === null) return denial('proof_missing');
  const { isNonce } = proofs;
  const proof = verifyDpopProof(headers.dpop, { method, path, token, key, nowMs, isNonce }, dpop);
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
