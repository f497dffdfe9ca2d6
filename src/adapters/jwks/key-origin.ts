import type { KeepingRules } from '../../decision/http/http-freshness.js';
import type { Result } from '../../lib/result.js';

/** Where the text of a key set comes from. */
export interface KeyOrigin {
  /** Gets it anew, or says in words why not. Stops when the signal says so; never rejects. */
  readonly load: (limits: LoadLimits, signal: AbortSignal) => Promise<Result<LoadedKeySet, string>>;
  readonly close: () => void;
}

export interface LoadLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

/** The text of a key set, and for how long it may be kept. */
export interface LoadedKeySet extends KeepingRules {
  readonly bytes: Uint8Array;
}
