/** Smallest store that is made once there is more than one piece. */
const minStoreBytes = 1024;

/**
 * Bytes that come in pieces, kept in one store that doubles. A list of pieces would cost some 300 bytes for each of
 * them, which a body in segments of one byte makes a multiple of what was counted.
 */
export class ByteBuffer {
  /** The final size where it is known, so that the last doubling does not go beyond it. */
  private readonly expectedBytes: number | null;
  private store: Buffer | null = null;
  private used = 0;

  constructor(expectedBytes: number | null = null) {
    this.expectedBytes = expectedBytes;
  }

  get length(): number {
    return this.used;
  }

  /** How many bytes of memory this will hold with `more` bytes added. */
  heldWith(more: number): number {
    const needed = this.used + more;
    const held = this.store?.length ?? 0;
    if (needed <= held) return held;
    if (this.store === null && !this.isWorthCopying(more)) return more;
    const doubled = Math.max(needed, 2 * held, minStoreBytes);
    return this.expectedBytes === null ? doubled : Math.max(needed, Math.min(doubled, this.expectedBytes));
  }

  append(piece: Buffer): void {
    if (piece.length === 0) return;
    if (this.store === null && !this.isWorthCopying(piece.length) && isMostOfItsMemory(piece)) {
      this.store = piece;
      this.used = piece.length;
      return;
    }
    const needed = this.used + piece.length;
    if (this.store === null || needed > this.store.length) {
      // Not from the pool: what is held is what was counted.
      const grown = Buffer.allocUnsafeSlow(this.heldWith(piece.length));
      if (this.store !== null) this.store.copy(grown, 0, 0, this.used);
      this.store = grown;
    }
    piece.copy(this.store, this.used);
    this.used = needed;
  }

  /** Gives all of it away and begins anew. */
  take(): Buffer {
    const bytes = this.store?.subarray(0, this.used) ?? Buffer.alloc(0);
    this.store = null;
    this.used = 0;
    return bytes;
  }

  /**
   * Whether the first piece goes into a store that others can follow into. A large one is kept as it is: most bodies
   * are one piece.
   */
  private isWorthCopying(bytes: number): boolean {
    return bytes < minStoreBytes || (this.expectedBytes !== null && bytes < this.expectedBytes);
  }
}

/** A small slice would keep all of the memory that it is a slice of. */
function isMostOfItsMemory(piece: Buffer): boolean {
  return piece.length * 2 >= piece.buffer.byteLength;
}
