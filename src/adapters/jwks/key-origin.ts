import type { Result } from '../../decision/result.js';

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

/** The text of a key set. */
export interface LoadedKeySet {
  readonly bytes: Uint8Array;
  /** Milliseconds for which its source calls it fresh, or `null` when the source does not say. */
  readonly freshnessMs: number | null;
}
