/** A target of the calling side while it runs. */
import type { MissingKeyPolicy, IdempotencyKeySource } from '../../decision/egress/key.js';
import type { RetryLimits } from '../../decision/egress/retry.js';
import type { RetryBudget } from '../../decision/egress/retry-budget.js';
import type { TargetPaths } from '../../decision/egress/target.js';
import type { ProofSigner, TokenSource } from '../../ports/tokens.js';
import type { Upstream } from '../upstream/pool/pool.js';

/** How a target is shown that the key of its tokens is here. */
export interface TargetProofs {
  readonly signer: ProofSigner;
  /** Of its URLs. */
  readonly origin: string;
  /** The last that it gave (RFC 9449 §8.2). */
  nonce: string | null;
}

export interface EgressTarget extends TargetPaths {
  readonly name: string;
  readonly upstream: Upstream;
  /** `null` where its requests bear none. */
  readonly tokens: TokenSource | null;
  /** Whether the caller's own token is what its tokens are had for. */
  readonly takesSubject: boolean;
  /** Proofs of the key that its tokens are bound to; `null` where they are bound to none. */
  readonly proofs: TargetProofs | null;
  readonly missingKey: MissingKeyPolicy;
  readonly keyFrom: IdempotencyKeySource | null;
  readonly retries: RetryLimits;
  readonly budget: RetryBudget;
  /** Bytes of a body that are kept to be sent again. */
  readonly retryBufferBytes: number;
}
