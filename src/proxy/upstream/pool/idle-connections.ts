import { performance } from 'node:perf_hooks';
import type { Http1Connection } from '../http1/connection.js';
import { arrivalsReadUntilMs } from '../../exchange/event-loop-batch.js';
import { IdleQueue } from './idle-queue.js';

interface IdleConnectionsOptions {
  readonly rest: RestPeriods;
  /** There are more to take. */
  readonly onRested: () => void;
  /** Nobody needs this one any more. */
  readonly onSpare: (connection: Http1Connection) => void;
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

/** A look at those that rest, while somebody waits for one; milliseconds. */
const soonMs = 1;

/**
 * A look may go by what the last turn read if that is no older than this, milliseconds: under load it then needs no
 * turn of its own.
 */
const freshMs = 1;

/** Those that were not needed for so long are given up, milliseconds. */
const spareAfterMs = 1_000;

/**
 * Connections that carry nothing. One that was just used rests first: what the upstream sends although nobody asked has
 * to be seen before another request goes out on it. The one that rested longest is used next.
 */
export class IdleConnections {
  private readonly options: IdleConnectionsOptions;
  private readonly queue = new IdleQueue<Http1Connection>();
  /** So many at the front of the queue have rested; the others rest still. */
  private restedCount = 0;
  /** All that had arrived by then was read, as far as the looks here tell; milliseconds. */
  private readUntilMs = -Infinity;
  /** Calls the next look off; `null` where none is to come. */
  private callOff: (() => void) | null = null;
  /** Whether the next look is as near as can be. */
  private looksSoon = false;
  /** The fewest that were left over since `spareSinceMs`. */
  private spare = Infinity;
  private spareSinceMs = 0;

  constructor(options: IdleConnectionsOptions) {
    this.options = options;
  }

  count(): number {
    return this.queue.length;
  }

  /**
   * Whether there are so many that the next can be had in a moment. Another connection is not open sooner, and stays.
   */
  areMany(): boolean {
    return this.queue.length >= manyIdle;
  }

  put(connection: Http1Connection): void {
    this.queue.push(connection);
    const { usualMs } = this.options.rest;
    if (usualMs > 0 && this.callOff === null) this.lookIn(usualMs);
  }

  /** The one that rested longest; `null` where there is none. */
  take(): Http1Connection | null {
    this.countRested();
    if (this.restedCount === 0) return this.takeEarly();
    const connection = this.takeOldest();
    this.spare = Math.min(this.spare, this.restedCount);
    if (connection !== null && connection.idleSinceMs - this.spareSinceMs >= spareAfterMs) {
      this.giveUpSpare(connection.idleSinceMs);
    }
    return connection;
  }

  /** The one that was idle longest, rested or not, to be given up. */
  takeOldest(): Http1Connection | null {
    this.restedCount = Math.max(0, this.restedCount - 1);
    return this.queue.shift();
  }

  takeAll(): readonly Http1Connection[] {
    this.callOff?.();
    this.callOff = null;
    this.looksSoon = false;
    this.restedCount = 0;
    return this.queue.takeAll();
  }

  remove(gone: Http1Connection): void {
    const index = this.queue.remove(gone);
    if (index >= 0 && index < this.restedCount) this.restedCount -= 1;
  }

  /**
   * Looks in `ms` milliseconds. Node calls timers before it reads what arrived, and immediates after that: in an
   * immediate, all that had arrived by the time of the timer has been read.
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

  private lookSoon(): void {
    if (this.looksSoon) return;
    this.callOff?.();
    this.looksSoon = true;
    this.lookIn(soonMs);
  }

  private readonly endRests = (readUntilMs: number): void => {
    this.callOff = null;
    this.looksSoon = false;
    this.readUntilMs = Math.max(this.readUntilMs, readUntilMs);
    this.countRested();
    const next = this.queue.at(this.restedCount);
    if (next !== null) this.lookIn(this.nextLookMs(next));
    this.options.onRested();
  };

  /**
   * Where many are idle there is traffic, and each turn of it is a look. Otherwise rounded up, since timers drop parts
   * of a millisecond.
   */
  private nextLookMs({ idleSinceMs }: Http1Connection): number {
    const { usualMs } = this.options.rest;
    return this.areMany() ? usualMs : Math.ceil(idleSinceMs + usualMs - this.readUntilMs);
  }

  private countRested(): void {
    while (this.hasRested(this.restedCount, this.options.rest.usualMs)) this.restedCount += 1;
  }

  private takeEarly(): Http1Connection | null {
    this.spare = 0;
    if (this.areMany() && this.hasRested(0, this.options.rest.leastMs)) return this.queue.shift();
    if (this.queue.length > 0) this.lookSoon();
    return null;
  }

  /** Whether the one at this place of the queue is there and has rested that long. */
  private hasRested(index: number, restMs: number): boolean {
    const connection = this.queue.at(index);
    if (connection === null || restMs === 0) return connection !== null;
    return connection.idleSinceMs + restMs <= Math.max(this.readUntilMs, arrivalsReadUntilMs());
  }

  private giveUpSpare(nowMs: number): void {
    const count = Math.min(this.spare, this.restedCount);
    this.spare = this.restedCount - count;
    this.spareSinceMs = nowMs;
    for (let given = 0; given < count; given += 1) {
      const connection = this.takeOldest();
      if (connection !== null) this.options.onSpare(connection);
    }
  }
}
