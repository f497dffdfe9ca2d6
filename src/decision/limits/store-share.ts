/** What one caller's results may take of the store that all callers share. */

/** What is to be kept of one write. */
export interface ResultSize {
  /** Of body and headers. */
  readonly bytes: number;
  readonly retentionMs: number;
}

/** A record without a response, bytes: what `docs/storage.md` measured. */
const emptyRecord = 1_300;

/** What a response takes besides its bytes: allocators round up. */
const spread = 1.3;

/** What a record takes in the store, without its response and with it. */
export function bytesOfRecord({ bytes }: ResultSize): { readonly least: number; readonly all: number } {
  return { least: emptyRecord, all: emptyRecord + Math.ceil(bytes * spread) };
}

/**
 * Tells whether new writes are refused. Beyond its share a caller's writes are kept without their responses; as each
 * still takes a record, there is an end to that as well.
 */
export function isOverTwice(total: number, share: number): boolean {
  return total >= 2 * share;
}
