import { denial, type Denial } from '../../../decision/denial.js';
import { FairShareLimiter, slotOf, type Slot } from '../../exchange/concurrency.js';
import { ConnectionQueue } from './connection-queue.js';

/**
 * Writes that may be reserved, or be about to, for each connection while all of those are busy. They are ready when a
 * connection is free, so that hardly any is idle while the store answers, and wait for a quarter of the time that the
 * upstream takes: what is reserved is served in its order, also in overload, and each more is one more to wait for.
 */
const aheadPerConnection = 1 / 4;

/** Where connections are few. */
const minAhead = 2;

/** A write that is to be reserved. Hears one of the two, unless it leaves before. */
export interface UnreservedWrite {
  readonly holder: string;
  /** Its body, whole; empty where it has none. */
  readonly body: Buffer;
  /** May be reserved now. The place goes with the request to `send`, or is given back. */
  readonly onTurn: (place: Slot) => void;
  /** Waits no longer: nothing was reserved. */
  readonly onRefused: (reason: Denial) => void;
}

interface ReservationQueueOptions {
  readonly maxConnections: number;
  /** Milliseconds that a write waits at most. */
  readonly waitMs: number;
  /** Connections that carry a request. */
  readonly active: () => number;
  /** Those of them with a request of this holder. */
  readonly activeOf: (holder: string) => number;
  /** A place was given back: whoever waits may have a turn. */
  readonly onFreed: () => void;
  /** Whether those that wait have their turn next: nobody gets ahead of them. */
  readonly startsSoon: () => boolean;
}

interface Waiting extends UnreservedWrite {
  readonly timer: NodeJS.Timeout;
}

/**
 * Writes that wait before anything is reserved for them. To reserve, wait and release costs the store and this process
 * more than to serve; so a write is reserved when its turn with a connection is near, and until then gives way for
 * nothing. While few requests are under way each has its turn at once: a retry gets the response that is kept, however
 * slow the upstream is.
 */
export class ReservationQueue {
  private readonly options: ReservationQueueOptions;
  private readonly queue: ConnectionQueue<Waiting>;
  /** Requests with a connection and writes that are reserved and wait for one, together. */
  private most: number;
  /** Writes that are reserved, or about to be, and have no connection yet: each holder's, and all. */
  private readonly fairShares: FairShareLimiter;
  private places = 0;

  constructor(options: ReservationQueueOptions) {
    this.options = options;
    this.most = mostOf(options.maxConnections);
    this.fairShares = new FairShareLimiter(this.most);
    this.queue = new ConnectionQueue(options.maxConnections, (waiting) => {
      end(waiting, denial('overloaded'));
    });
  }

  /** So many requests can be served at once from now on. */
  resize(maxConnections: number): void {
    this.most = mostOf(maxConnections);
    this.fairShares.resize(this.most);
    this.queue.resize(maxConnections);
  }

  /** Writes that wait and are not reserved. */
  get length(): number {
    return this.queue.length;
  }

  /**
   * Gives the write its turn, at once where its holder may have one. Call what it returns when the write will not come
   * any more.
   */
  enter(write: UnreservedWrite): () => void {
    const mayStart = this.queue.length === 0 || !this.options.startsSoon();
    const place = mayStart ? this.takePlace(write.holder) : null;
    if (place !== null) {
      write.onTurn(place);
      return () => undefined;
    }
    const waiting: Waiting = {
      ...write,
      timer: setTimeout(() => {
        this.queue.leave(waiting);
        end(waiting, denial('overloaded'));
      }, this.options.waitMs),
    };
    this.queue.join(waiting);
    return () => {
      clearTimeout(waiting.timer);
      this.queue.leave(waiting);
    };
  }

  /** Gives a turn to those that may have one. */
  startInTurn(): void {
    if (this.queue.length === 0) return;
    this.queue.startInTurn(
      (waiting) => {
        const place = this.takePlace(waiting.holder);
        if (place === null) return false;
        this.queue.leave(waiting);
        clearTimeout(waiting.timer);
        waiting.onTurn(place);
        return true;
      },
      () => this.isFull(),
    );
  }

  refuseAll(reason: Denial): void {
    for (const waiting of this.queue.takeAll()) end(waiting, reason);
  }

  private isFull(): boolean {
    return this.places + this.options.active() >= this.most;
  }

  /**
   * Takes a place; `null` where there is none for this holder. No holder may shut out the others, for whom a turn may
   * be all that they need.
   */
  private takePlace(holder: string): Slot | null {
    const { fairShares, options } = this;
    if (this.isFull() || fairShares.countOf(holder) + options.activeOf(holder) >= fairShares.mostOf(holder)) {
      return null;
    }
    const holderCount = fairShares.take(holder);
    if (holderCount === null) return null;
    this.places += 1;
    return slotOf(() => {
      this.places -= 1;
      fairShares.giveBack(holderCount);
      if (this.queue.length > 0) options.onFreed();
    });
  }
}

function mostOf(maxConnections: number): number {
  return maxConnections + Math.max(minAhead, Math.ceil(maxConnections * aheadPerConnection));
}

function end({ timer, onRefused }: Waiting, reason: Denial): void {
  clearTimeout(timer);
  onRefused(reason);
}
