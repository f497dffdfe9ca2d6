import { slotOf, type Slot } from '../proxy/exchange/concurrency.js';
import type { Lease } from '../proxy/exchange/admission-control.js';

/**
 * The place of a request for as long as hooks and handler run, whether or not its caller is still there: otherwise who
 * breaks off would have more of them run than there are places.
 */
export class HeldPlace {
  private readonly giveBack: Slot;
  private readonly responseTimeoutMs: number;
  private hasAnswered = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(lease: Lease, responseTimeoutMs: number) {
    lease.retain();
    this.giveBack = slotOf(() => lease.release());
    this.responseTimeoutMs = responseTimeoutMs;
  }

  /** Fastify has what is to be answered. */
  onAnswered(): void {
    this.hasAnswered = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.giveBack();
  }

  /**
   * The connection is through with the request. Where a response had begun, past Fastify perhaps, that was the end of
   * it. Otherwise the handler has so much time: some never say that they are through.
   */
  onClosed(hasBegun: boolean): void {
    if (hasBegun || this.hasAnswered) this.giveBack();
    else this.timer = setTimeout(this.giveBack, this.responseTimeoutMs).unref();
  }
}
