import { valuesOf } from '../../decision/http/header-values.js';
import type { ByteBuffer } from '../inbound/byte-buffer.js';

/** The receiver's answer as it comes in, kept while it is small enough to be shown again. */
export interface CollectedAnswer {
  readonly status: number;
  /** Raw pairs as the receiver sent them. */
  readonly rawHeaders: readonly string[];
  readonly body: ByteBuffer;
}

/**
 * The receiver's own word on what became of the write, level 1, lower-case. Where it says several things, one of them
 * `committed`, it is that: in doubt a key stays taken.
 */
export function outcomeField(rawHeaders: readonly string[]): string | null {
  const words = valuesOf(rawHeaders, 'idempotency-outcome').map((value) => value.trim().toLowerCase());
  return words.find((word) => word === 'committed') ?? words[0] ?? null;
}

/** The length that the receiver announced, 0 where it did not. */
export function announcedLength(rawHeaders: readonly string[]): number {
  return Number(valuesOf(rawHeaders, 'content-length')[0] ?? 0);
}
