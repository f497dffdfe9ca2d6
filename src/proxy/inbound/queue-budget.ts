/** What a `QueueBudget` allows all connections together. */
export interface QueueLimits {
  /** Requests that were read and are not served yet. */
  readonly requests: number;
  /** Bytes that were read behind them and are not parsed yet. */
  readonly bytes: number;
}

/**
 * Counts what of all connections waits behind requests that are being served, so that it cannot take all memory
 * together.
 */
export class QueueBudget {
  private readonly limits: QueueLimits;
  private requests = 0;
  private bytes = 0;

  constructor(limits: QueueLimits) {
    this.limits = limits;
  }

  /** Counts one more request; `false` where that is too much. */
  addRequest(): boolean {
    this.requests += 1;
    return this.requests <= this.limits.requests;
  }

  removeRequests(requests: number): void {
    this.requests -= requests;
  }

  /** Counts more bytes; `false`, and nothing is counted, where they are too much. */
  addBytes(bytes: number): boolean {
    if (this.bytes + bytes > this.limits.bytes) return false;
    this.bytes += bytes;
    return true;
  }

  removeBytes(bytes: number): void {
    this.bytes -= bytes;
  }
}
