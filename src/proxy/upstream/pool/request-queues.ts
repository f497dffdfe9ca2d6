import { denial, type Denial } from '../../../decision/denial.js';
import { FairShareLimiter, type HolderCount } from '../../exchange/concurrency.js';
import type { CallConnection, QueuedCall } from '../call.js';
import { ConnectionQueue } from './connection-queue.js';
import { ReservationQueue, type UnreservedWrite } from './reservation-queue.js';

interface RequestQueuesOptions<C extends CallConnection> {
  /** Requests that can be served at once. */
  readonly capacity: number;
  /** Milliseconds that a write waits at most. */
  readonly waitMs: number;
  /** Requests that have a connection, or a stream of one. */
  readonly active: () => number;
  /** A connection for the call, or a stream of one; `null` where there is none. Not `avoided`, unless no other can. */
  readonly connect: (call: QueuedCall<C>, avoided: C | null) => C | null;
  /** Whether no call at all could have a connection. */
  readonly isFull: () => boolean;
}

/** What waits for an upstream: calls for a connection, and writes until they may be reserved. */
export class RequestQueues<C extends CallConnection> {
  private readonly options: RequestQueuesOptions<C>;
  private readonly calls: ConnectionQueue<QueuedCall<C>>;
  private readonly writes: ReservationQueue;
  /** Who has how many connections: nobody is to shut the others out. */
  private readonly fairShares: FairShareLimiter;
  /** Whether those that wait have their turn next: nobody gets ahead of them. */
  private startsSoon = false;

  constructor(options: RequestQueuesOptions<C>) {
    const { capacity, waitMs, active } = options;
    this.options = options;
    this.fairShares = new FairShareLimiter(capacity);
    this.calls = new ConnectionQueue(capacity, (call) => call.refuse(denial('overloaded')));
    this.writes = new ReservationQueue({
      maxConnections: capacity,
      waitMs,
      active,
      activeOf: (holder) => this.fairShares.countOf(holder),
      onFreed: this.startNext,
      startsSoon: () => this.startsSoon,
    });
  }

  /** Calls and writes that wait. */
  get length(): number {
    return this.calls.length + this.writes.length;
  }

  /** So many requests can be served at once from now on. */
  resize(capacity: number): void {
    this.fairShares.resize(capacity);
    this.calls.resize(capacity);
    this.writes.resize(capacity);
  }

  /** Starts a call, where nobody has the next turn, its holder may have a connection and there is one. */
  tryToStartInTurn(call: QueuedCall<C>): boolean {
    return !this.startsSoon && this.tryToStart(call);
  }

  /** Starts a call whatever waits, where its holder may have a connection and there is one. */
  tryToStart(call: QueuedCall<C>, avoided: C | null = null): boolean {
    const holderCount = this.fairShares.take(call.holder);
    if (holderCount === null) return false;
    const connection = this.options.connect(call, avoided);
    if (connection === null) {
      this.fairShares.giveBack(holderCount);
      return false;
    }
    if (this.calls.length > 0) this.calls.leave(call);
    call.start(connection, holderCount);
    return true;
  }

  join(call: QueuedCall<C>): void {
    this.calls.join(call);
  }

  leave(call: QueuedCall<C>): void {
    this.calls.leave(call);
  }

  /** Has a write wait until it may be reserved. Call what it returns when the write will not come any more. */
  awaitTurn(write: UnreservedWrite): () => void {
    return this.writes.enter(write);
  }

  /** A call has no connection any more. */
  giveBack(holderCount: HolderCount): void {
    this.fairShares.giveBack(holderCount);
  }

  /**
   * Has those that wait start. Not at once: what still comes of the read that ended a response would be taken for the
   * response to the next request.
   */
  readonly startNext = (): void => {
    if (this.startsSoon || this.length === 0) return;
    this.startsSoon = true;
    setImmediate(this.startAll);
  };

  refuseAll(reason: Denial): void {
    this.writes.refuseAll(reason);
    for (const call of this.calls.takeAll()) call.refuse(reason);
  }

  private readonly startAll = (): void => {
    this.startsSoon = false;
    this.calls.startInTurn((call) => this.tryToStart(call), this.options.isFull);
    this.writes.startInTurn();
  };
}
