import { performance } from 'node:perf_hooks';
import type { HttpConnection } from './http-connection.js';

export interface IdleConnectionsOptions {
  readonly rest: Rest;
  /** There are more to take. */
  readonly onRested: () => void;
  /** Nobody needs this one any more. */
  readonly onSpare: (connection: HttpConnection) => void;
}

/** How long a connection rests, milliseconds; 0 is not at all. */
export interface Rest {
  readonly usualMs: number;
  /** Where many are idle. */
  readonly leastMs: number;
}

interface Resting {
  readonly connection: HttpConnection;
  /** Of the monotonic clock, milliseconds. */
  readonly sinceMs: number;
}

/**
 * Where so many are idle they take turns slowly as it is. Under load each more of them costs every request: what belongs to it has left the
 * processor's caches when its turn comes.
 */
const manyIdle = 16;

/** One look serves all that have rested meanwhile: under load they are not worth a timer each. Milliseconds. */
const betweenLooksMs = 1;

/** Those that were not needed for so long are given up, milliseconds. */
const spareAfterMs = 1_000;

/**
 * Connections that carry nothing. One that was just used rests first: what the receiver sends although nobody asked has to be seen
 * before another request goes out on it. The one that rested longest is used next.
 */
export class IdleConnections {
  private readonly options: IdleConnectionsOptions;
  /** The one idle longest comes first, here and below. */
  private readonly resting: Resting[] = [];
  private readonly rested: HttpConnection[] = [];
  /** All that had arrived by then was read; milliseconds. */
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
    return this.resting.length + this.rested.length;
  }

  put(connection: HttpConnection): void {
    const { usualMs } = this.options.rest;
    if (usualMs === 0) {
      this.rested.push(connection);
      return;
    }
    this.resting.push({ connection, sinceMs: performance.now() });
    if (this.callOff === null) this.lookIn(this.options.rest.leastMs);
  }

  /** The one that rested longest; `null` where there is none. */
  take(): HttpConnection | null {
    const connection = this.rested.shift();
    if (connection === undefined) return this.takeEarly();
    this.spare = Math.min(this.spare, this.rested.length);
    const nowMs = performance.now();
    if (nowMs - this.spareSinceMs >= spareAfterMs) this.giveUpSpare(nowMs);
    return connection;
  }

  /** The one that was idle longest, rested or not, to be given up. */
  takeOldest(): HttpConnection | null {
    return this.rested.shift() ?? this.resting.shift()?.connection ?? null;
  }

  takeAll(): readonly HttpConnection[] {
    this.callOff?.();
    this.callOff = null;
    return [...this.rested.splice(0), ...this.resting.splice(0).map(({ connection }) => connection)];
  }

  remove(gone: HttpConnection): void {
    const inRested = this.rested.indexOf(gone);
    if (inRested >= 0) this.rested.splice(inRested, 1);
    const inResting = this.resting.findIndex(({ connection }) => connection === gone);
    if (inResting >= 0) this.resting.splice(inResting, 1);
  }

  /** Timers are called before what arrived is read, and immediates behind that: by then all that had arrived at the timer was seen. */
  private lookIn(ms: number): void {
    const timer = setTimeout(() => {
      const immediate = setImmediate(this.endRests, performance.now());
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
    this.readUntilMs = readUntilMs;
    for (let first = this.resting[0]; first !== undefined && this.hasRested(first, this.options.rest.usualMs); first = this.resting[0]) {
      this.rested.push(first.connection);
      this.resting.shift();
    }
    if (this.resting.length > 0) this.lookIn(betweenLooksMs);
    this.options.onRested();
  };

  private takeEarly(): HttpConnection | null {
    const [first] = this.resting;
    this.spare = 0;
    if (first === undefined || this.resting.length < manyIdle || !this.hasRested(first, this.options.rest.leastMs)) return null;
    this.resting.shift();
    return first.connection;
  }

  private hasRested({ sinceMs }: Resting, restMs: number): boolean {
    return sinceMs + restMs <= this.readUntilMs;
  }

  private giveUpSpare(nowMs: number): void {
    const count = this.spare;
    this.spare = this.rested.length;
    this.spareSinceMs = nowMs;
    for (const connection of this.rested.splice(0, count)) this.options.onSpare(connection);
  }
}
