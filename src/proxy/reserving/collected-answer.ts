/** The receiver's answer as it comes in, kept while it is small enough to be shown again. */
export interface CollectedAnswer {
  readonly status: number;
  /** Raw pairs as the receiver sent them. */
  readonly rawHeaders: readonly string[];
  readonly chunks: Buffer[];
  bytes: number;
}

/** The receiver's own word on what became of the write, level 1. */
export function outcomeField(rawHeaders: readonly string[]): string | null {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if ((rawHeaders[index] ?? '').toLowerCase() === 'idempotency-outcome') return (rawHeaders[index + 1] ?? '').trim().toLowerCase();
  }
  return null;
}

/** The length that the receiver announced, `null` where it did not. */
export function announcedLength(rawHeaders: readonly string[]): number | null {
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if ((rawHeaders[index] ?? '').toLowerCase() === 'content-length') return Number(rawHeaders[index + 1]);
  }
  return null;
}
