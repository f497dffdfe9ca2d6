import type { FastifyReply } from 'fastify';
import { slotOf, type Slot } from '../proxy/exchange/concurrency.js';
import type { Lease } from '../proxy/exchange/admission-control.js';
import type { Clock } from '../ports/system.js';

/**
 * The place of a request for as long as hooks and handler run, whether or not its caller is still there: otherwise who
 * breaks off would have more of them run than there are places.
 */
export class HeldPlace {
  private readonly giveBack: Slot;
  private readonly clock: Clock;
  /** Of the monotonic clock. */
  private readonly endsMs: number;
  private hasAnswered = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(lease: Lease, responseTimeoutMs: number, clock: Clock) {
    lease.retain();
    this.giveBack = slotOf(() => lease.release());
    this.clock = clock;
    this.endsMs = clock.monotonic() + responseTimeoutMs;
  }

  /** Fastify has what is to be answered, or nothing will be. */
  onAnswered(): void {
    this.hasAnswered = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.giveBack();
  }

  /**
   * The connection is through with the request. Where a response had begun, past Fastify perhaps, that was the end of
   * it. Otherwise the handler has the rest of its time: some never say that they are through.
   */
  onClosed(hasBegun: boolean): void {
    const leftMs = this.endsMs - this.clock.monotonic();
    if (hasBegun || this.hasAnswered || leftMs <= 0) this.giveBack();
    else this.timer = setTimeout(this.giveBack, leftMs).unref();
  }
}

/** What @fastify/reply-from, and with it @fastify/http-proxy, adds to replies. */
type From = (this: unknown, source?: string, options?: FromOptions) => unknown;

interface FromOptions {
  readonly rewriteHeaders?: (headers: unknown, ...rest: unknown[]) => unknown;
}

/**
 * Has `reply.from` tell when its upstream has answered: it asks for the headers then. Where the caller has broken off
 * it leaves it at that, and no hook hears of it.
 */
export function hearOfProxied(reply: FastifyReply, onUpstreamAnswered: () => void): void {
  const replying = reply as object as { from?: From };
  const { from } = replying;
  if (typeof from !== 'function') return;
  replying.from = function (source, options = {}) {
    return from.call(this, source, {
      ...options,
      rewriteHeaders: (headers, ...rest) => {
        onUpstreamAnswered();
        return options.rewriteHeaders === undefined ? headers : options.rewriteHeaders(headers, ...rest);
      },
    });
  };
}
