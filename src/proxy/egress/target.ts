/** A target of the calling side while it runs. */
import type { KeyMode, KeySource } from '../../decision/egress/key.js';
import type { RetryLimits } from '../../decision/egress/retry.js';
import type { RetryBudget } from '../../decision/egress/retry-budget.js';
import type { TargetPlace } from '../../decision/egress/target.js';
import type { TokenSource } from '../../ports/tokens.js';
import type { Upstream } from '../upstream/pool/pool.js';

export interface EgressTarget extends TargetPlace {
  readonly name: string;
  readonly upstream: Upstream;
  /** `null` where its requests bear none. */
  readonly tokens: TokenSource | null;
  /** Whether the caller's own token is what its tokens are had for. */
  readonly takesSubject: boolean;
  readonly keyMode: KeyMode;
  readonly keyFrom: KeySource | null;
  readonly retries: RetryLimits;
  readonly budget: RetryBudget;
  /** Bytes of a body that are kept to be sent again. */
  readonly maxHeldBytes: number;
}
