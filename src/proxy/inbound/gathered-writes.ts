import { ByteBuffer } from './byte-buffer.js';

/** Larger pieces cost little beside their bytes, and copying them would. */
export const smallWriteBytes = 1024;

/**
 * So many gathered bytes are handed on all the same: whoever is asked to write has to be told to wait at some point.
 */
const maxGatheredBytes = 16 * 1024;

interface WriteTarget {
  /** Whether what was written before is still waiting for the other side to take it. */
  readonly isBlocked: () => boolean;
  /**
   * `false` when the other side does not keep up. `onTaken` is called when this, and all before it, was taken or never
   * will be.
   */
  readonly write: (bytes: Buffer, onTaken?: () => void) => boolean;
}

/**
 * Writes to somebody who may not keep up. Small pieces that would wait are put together: each write that waits costs
 * some hundred bytes beside its own.
 */
export class GatheredWrites {
  private readonly target: WriteTarget;
  private readonly gathered = new ByteBuffer();
  private isWaiting = false;

  constructor(target: WriteTarget) {
    this.target = target;
  }

  write(bytes: Buffer): boolean {
    const gathers = bytes.length < smallWriteBytes && (this.gathered.length > 0 || this.target.isBlocked());
    if (!gathers) {
      this.flush();
      return this.target.write(bytes);
    }
    this.gathered.append(bytes);
    if (this.gathered.length >= maxGatheredBytes) return this.flush();
    this.waitForTarget();
    return true;
  }

  /** Hands on what was gathered; `false` when the other side does not keep up. */
  readonly flush = (): boolean => (this.gathered.length === 0 ? true : this.target.write(this.gathered.take()));

  /** An empty write is told when all before it was taken. */
  private waitForTarget(): void {
    if (this.isWaiting) return;
    this.isWaiting = true;
    this.target.write(Buffer.alloc(0), () => {
      this.isWaiting = false;
      this.flush();
    });
  }
}
