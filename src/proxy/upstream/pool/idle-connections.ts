import { performance } from 'node:perf_hooks';
import type { HttpConnection } from '../http1/http-connection.js';
import { arrivalsReadUntilMs } from '../../exchange/event-loop-batch.js';
import { IdleQueue } from './idle-queue.js';

interface IdleConnectionsOptions {
  readonly rest: RestPeriods;
  /** There are more to take. */
  readonly onRested: () => void;
  /** Nobody needs this one any more. */
  readonly onSpare: (connection: HttpConnection) => void;
}

/** How long a connection rests, milliseconds; 0 is not at all. */
export interface RestPeriods {
  readonly usualMs: number;
  /** Where many are idle. */
  readonly leastMs: number;
}

/**
 * Where so many are idle they take turns slowly as it is. Under load each more of them costs every request: what
 * belongs to it has left the processor's caches when its turn comes.
 */
const manyIdle = 16;

/** One look serves all that have rested meanwhile: under load they are not worth a timer each. Milliseconds. */
const betweenLooksMs = 1;

/** Under load each turn tells what was read, and a look need not ask for another turn. Milliseconds. */
const freshMs = 1;

/** Those that were not needed for so long are given up, milliseconds. */
const spareAfterMs = 1_000;

/**
 * Connections that carry nothing. One that was just used rests first: what the upstream sends although nobody asked has
 * to be seen before another request goes out on it. The one that rested longest is used next.
 */
export class IdleConnections {
  private readonly options: IdleConnectionsOptions;
  private readonly queue = new IdleQueue<HttpConnection>();
  /** So many at the front of the queue have rested; the others rest still. */
  private restedCount = 0;
  /** All that had arrived by then was read, as far as the looks here tell; milliseconds. */
  private readUntilMs = -Infinity;
  /** Calls the next look off; `null` where none is to come. */
  private callOff: (() => void) | null = null;
  /** The fewest that were left over since `spareSinceMs`. */
  private spare = Infinity;
  private spareSinceMs = 0;

  constructor(options: IdleConnectionsOptions) {
    this.options = options;
  }

  count(): number {
    return this.queue.length;
  }

  put(connection: HttpConnection): void {
    this.queue.push(connection);
    if (this.options.rest.usualMs === 0) this.restedCount += 1;
    else if (this.callOff === null) this.lookIn(this.options.rest.leastMs);
  }

  /** The one that rested longest; `null` where there is none. */
  take(): HttpConnection | null {
    if (this.restedCount === 0) return this.takeEarly();
    const connection = this.queue.shift();
    this.restedCount -= 1;
    this.spare = Math.min(this.spare, this.restedCount);
    if (connection !== null && connection.idleSinceMs - this.spareSinceMs >= spareAfterMs) {
      this.giveUpSpare(connection.idleSinceMs);
    }
    return connection;
  }

  /** The one that was idle longest, rested or not, to be given up. */
  takeOldest(): HttpConnection | null {
    this.restedCount = Math.max(0, this.restedCount - 1);
    return this.queue.shift();
  }

  takeAll(): readonly HttpConnection[] {
    this.callOff?.();
    this.callOff = null;
    this.restedCount = 0;
    return this.queue.takeAll();
  }

  remove(gone: HttpConnection): void {
    const index = this.queue.remove(gone);
    if (index >= 0 && index < this.restedCount) this.restedCount -= 1;
  }

  /**
   * Timers are called before what arrived is read, and immediates behind that: by then all that had arrived at the
   * timer was seen.
   */
  private lookIn(ms: number): void {
    const timer = setTimeout(() => {
      const nowMs = performance.now();
      const readUntilMs = arrivalsReadUntilMs();
      if (readUntilMs >= nowMs - freshMs) {
        this.endRests(readUntilMs);
        return;
      }
      const immediate = setImmediate(this.endRests, nowMs);
      this.callOff = () => {
        clearImmediate(immediate);
      };
    }, ms);
    this.callOff = () => {
      clearTimeout(timer);
    };
  }

  private readonly endRests = (readUntilMs: number): void => {
    this.callOff = null;
    this.readUntilMs = Math.max(this.readUntilMs, readUntilMs);
    while (this.hasRested(this.restedCount, this.options.rest.usualMs)) this.restedCount += 1;
    if (this.restedCount < this.queue.length) this.lookIn(betweenLooksMs);
    this.options.onRested();
  };

  private takeEarly(): HttpConnection | null {
    this.spare = 0;
    return this.queue.length >= manyIdle && this.hasRested(0, this.options.rest.leastMs) ? this.queue.shift() : null;
  }

  /** Whether the one at this place of the queue is there and has rested that long. */
  private hasRested(index: number, restMs: number): boolean {
    const connection = this.queue.at(index);
    return connection !== null && connection.idleSinceMs + restMs <= Math.max(this.readUntilMs, arrivalsReadUntilMs());
  }

  private giveUpSpare(nowMs: number): void {
    const count = Math.min(this.spare, this.restedCount);
    this.restedCount -= count;
    this.spare = this.restedCount;
    this.spareSinceMs = nowMs;
    for (let given = 0; given < count; given += 1) {
      const connection = this.queue.shift();
      if (connection !== null) this.options.onSpare(connection);
    }
  }
}
