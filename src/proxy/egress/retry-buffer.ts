import { Readable } from 'node:stream';
import { trailersOf, type BodyTrailers } from '../upstream/call.js';

/** How much of bodies is kept by all requests of a listener together. */
export class RetryBufferBudget {
  private capacity: number;
  private taken = 0;

  /** @param capacity bytes. */
  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** `false` where there is no room, and nothing is taken. */
  take(bytes: number): boolean {
    if (this.taken + bytes > this.capacity) return false;
    this.taken += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.taken -= bytes;
  }

  /** What is kept beyond it stays until it is given back. */
  resize(capacity: number): void {
    this.capacity = capacity;
  }

  /** Bytes that are kept. */
  held(): number {
    return this.taken;
  }
}

/**
 * Small pieces are joined up to this size, bytes: each costs some 300 bytes, and may keep 1 KiB that it is a slice of.
 */
const maxJoinedBytes = 16 * 1024;

/** A reading that began behind what was let go. */
const notWhole = new Error('the body was not kept');

/**
 * A body that can be sent more than once: it goes out as it comes, and what went is kept, until that is more than the
 * limit, or than there is room for. From then on it can be sent once, by whoever is reading it.
 */
export class RetryBuffer {
  private readonly source: Readable;
  private readonly budget: RetryBufferBudget;
  private readonly maxBytes: number;
  private chunks: Buffer[] = [];
  private keptBytes = 0;
  private isKeeping = true;
  private isLarger = false;
  private isEnded = false;
  private reading: Reading | null = null;

  /**
   * @param source is read from the first reading on.
   * @param maxBytes of it that are kept.
   */
  constructor(source: Readable, budget: RetryBufferBudget, maxBytes: number) {
    this.source = source;
    this.budget = budget;
    this.maxBytes = maxBytes;
  }

  /** Whether another reading would begin at its beginning. */
  isWhole(): boolean {
    return this.isKeeping;
  }

  /** Reads it from its beginning, in the place of any reading before. Only where it is whole. */
  open(): Readable & BodyTrailers {
    if (this.reading === null) this.source.on('data', this.onData).on('end', this.onEnd);
    else this.reading.destroy();
    this.source.pause();
    this.reading = new Reading(this);
    return this.reading;
  }

  /** Whether it was let go because of its size, and not for want of room. */
  isTooLarge(): boolean {
    return this.isLarger;
  }

  /** Ends the reading under way. Nothing more is read before the next one. */
  stop(): void {
    this.source.pause();
    this.reading?.destroy();
  }

  /** Reads all of it ahead; `null` where it is not kept. */
  readWhole(onRead: (whole: Buffer | null) => void): void {
    const reading = this.open();
    reading
      .on('data', () => {
        if (!this.isKeeping) reading.destroy();
      })
      .once('end', () => reading.destroy())
      .once('close', () => onRead(this.isKeeping ? Buffer.concat(this.chunks) : null))
      .on('error', () => undefined);
  }

  /** The body will not be sent again: lets go of what was sent, and passes on the rest without keeping it. */
  release(): void {
    this.isKeeping = false;
    if (this.reading === null || this.reading.count >= this.chunks.length) this.letGo();
  }

  /** Nobody reads it any more. */
  close(): void {
    this.isKeeping = false;
    this.letGo();
    this.reading?.destroy();
    this.source.off('data', this.onData).off('end', this.onEnd);
  }

  /** Gives a reading its next piece, or asks for more where there is none. */
  readFor(reading: Reading): void {
    if (reading !== this.reading) return;
    const kept = this.chunks[reading.count];
    if (kept !== undefined) {
      reading.give(kept, reading.count + 1);
      return;
    }
    if (!this.isKeeping) this.letGo();
    if (this.isEnded) reading.giveEnd();
    else this.source.resume();
  }

  trailers(): readonly string[] | null {
    return trailersOf(this.source);
  }

  private readonly onData = (chunk: Buffer): void => {
    this.source.pause();
    const { reading } = this;
    const isBehind = reading !== null && reading.count < this.chunks.length;
    const isKept = this.keep(chunk, isBehind);
    if (!isBehind) reading?.give(chunk, isKept ? this.chunks.length : 0);
    else if (!isKept) reading.destroy(notWhole);
  };

  private readonly onEnd = (): void => {
    this.isEnded = true;
    const { reading } = this;
    if (reading !== null && reading.count >= this.chunks.length) reading.giveEnd();
  };

  private keep(chunk: Buffer, isBehind: boolean): boolean {
    if (!this.isKeeping) return false;
    this.isLarger = this.keptBytes + chunk.length > this.maxBytes;
    if (this.isLarger || !this.budget.take(chunk.length)) {
      this.release();
      return false;
    }
    this.keptBytes += chunk.length;
    // The reader has had the last piece, so that piece may grow.
    const last = isBehind ? undefined : this.chunks.at(-1);
    if (last !== undefined && last.length + chunk.length <= maxJoinedBytes) {
      this.chunks[this.chunks.length - 1] = compact([last, chunk]);
    } else this.chunks.push(chunk.length * 2 < chunk.buffer.byteLength ? compact([chunk]) : chunk);
    return true;
  }

  private letGo(): void {
    this.chunks = [];
    this.budget.giveBack(this.keptBytes);
    this.keptBytes = 0;
  }
}

/** A copy that holds no memory but its own. */
function compact(pieces: readonly Buffer[]): Buffer {
  const bytes = Buffer.allocUnsafeSlow(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) at += piece.copy(bytes, at);
  return bytes;
}

/** One reading of a body, from its beginning. */
class Reading extends Readable implements BodyTrailers {
  /** Pieces that it was given of those that are kept. */
  count = 0;
  private readonly body: RetryBuffer;

  constructor(body: RetryBuffer) {
    super({ highWaterMark: 1 });
    this.body = body;
  }

  override _read(): void {
    this.body.readFor(this);
  }

  give(chunk: Buffer, count: number): void {
    this.count = count;
    this.push(chunk);
  }

  giveEnd(): void {
    if (!this.readableEnded) this.push(null);
  }

  trailers(): readonly string[] | null {
    return this.body.trailers();
  }
}
