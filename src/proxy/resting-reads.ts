import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { isReading, readOnInTurn, stopReading } from './node-internals/socket.js';

/** Reads below this are small pieces; bytes. A segment of TCP that is full brings more. */
const smallBytes = 1_024;

/** How long a connection rests behind a small piece; one that came within as long of the last one counts on. */
const restMs = 100;

/**
 * Those that began to rest together are not read on together: so much lies between each two, milliseconds, as long as
 * nobody rests for longer than `longestRestMs`.
 */
const apartMs = 0.25;
const longestRestMs = 500;

/** A rest must not look like an end: it is at most a quarter of the time in which something has to come. */
const shortestLimitMs = 4 * longestRestMs;

/** Small pieces, one soon after the other, behind which a connection does not rest. */
const freePieces = 8;

/** How often those are looked for that have rested; milliseconds. */
const stepMs = 10;

/** The share of the time in which the event loop is at work, from which on it counts as busy. */
const busyFrom = 0.8;

/** How long it counts as busy since it was; milliseconds. */
const staysBusyMs = 1_000;

/** What of this process is looked at. */
export interface BusyLoop {
  /** Monotonic, milliseconds. */
  readonly nowMs: () => number;
  /** The share since the last call in which the event loop was at work, 0 to 1. */
  readonly utilization: () => number;
}

/** The messages that one direction of a connection brings. What one turn of the event loop brings is one piece. */
export class Pieces {
  private readonly reads: RestingReads;
  private readonly socket: Socket;
  private readonly isOver: () => boolean;
  /** Bytes of the message in this turn. */
  private inTurn = 0;
  private lastMs = -Infinity;
  /** Small ones, one soon after the other. */
  private count = 0;
  private isResting = false;
  /** Whether nothing was read since it rested: what comes first is what had waited, however much that is. */
  private isBehindRest = false;

  /** @param isOver whether the message is complete: what comes next has to be read at once. Asked at a turn's end. */
  constructor(reads: RestingReads, socket: Socket, isOver: () => boolean) {
    this.reads = reads;
    this.socket = socket;
    this.isOver = isOver;
  }

  /** Another message begins. */
  restart(): void {
    this.count = 0;
    this.inTurn = 0;
    if (this.isResting) this.readOn(this.lastMs);
    this.isBehindRest = false;
  }

  /**
   * So many bytes were read of the message.
   *
   * @param idleLimitMs how long nothing may come of it, milliseconds. Nobody rests where that is short.
   */
  took(bytes: number, idleLimitMs: number): void {
    if (bytes >= smallBytes || idleLimitMs < shortestLimitMs) {
      this.countLarge();
      return;
    }
    if (this.inTurn === 0) this.reads.lookAtTurnEnd(this);
    this.inTurn += bytes;
  }

  /** The turn is over. Whether it goes on to bring small pieces. */
  isChatty(nowMs: number): boolean {
    const bytes = this.inTurn;
    this.inTurn = 0;
    if (bytes === 0) return false;
    if (bytes >= smallBytes) this.countLarge();
    else this.count = nowMs - this.lastMs < restMs ? this.count + 1 : 1;
    this.lastMs = nowMs;
    this.isBehindRest = false;
    return this.count > freePieces;
  }

  private countLarge(): void {
    this.count = this.isBehindRest ? freePieces : 0;
    this.isBehindRest = false;
  }

  /** It is not read until `readOn`; `false` where it is not anyway. */
  rest(): boolean {
    if (this.isResting || this.isOver() || !isReading(this.socket)) return false;
    this.isResting = true;
    stopReading(this.socket);
    return true;
  }

  /** It is read again. What comes at once had waited. */
  readOn(nowMs: number): void {
    if (!this.isResting) return;
    this.isResting = false;
    this.isBehindRest = true;
    this.lastMs = nowMs;
    readOnInTurn(this.socket);
  }
}

/**
 * Lets small pieces of messages wait for each other while the event loop is busy: whoever sends byte by byte, or a
 * frame every few milliseconds, costs as much for each piece as others for a request. A connection that goes on to
 * bring small pieces is then read once in 100 ms, and what came meanwhile is one piece. Where the loop is not busy, and
 * for whoever sends more at once, nothing changes. A head waits only behind a body that rests.
 */
export class RestingReads {
  private readonly loop: BusyLoop;
  private readonly resting: { readonly pieces: Pieces; readonly untilMs: number }[] = [];
  /** Those that this turn brought something small of. */
  private inTurn: Pieces[] = [];
  /** Runs while some go on to bring small pieces, or rest. */
  private timer: NodeJS.Timeout | null = null;
  private lastChattyMs = -Infinity;
  /** When the last of them is read on. */
  private lastUntilMs = -Infinity;
  private measuredMs = -Infinity;
  private busyUntilMs = -Infinity;

  constructor(loop: BusyLoop) {
    this.loop = loop;
  }

  lookAtTurnEnd(pieces: Pieces): void {
    if (this.inTurn.length === 0) setImmediate(this.endTurn);
    this.inTurn.push(pieces);
  }

  private readonly endTurn = (): void => {
    const { inTurn } = this;
    this.inTurn = [];
    const nowMs = this.loop.nowMs();
    for (const pieces of inTurn) if (pieces.isChatty(nowMs)) this.consider(pieces, nowMs);
  };

  private consider(pieces: Pieces, nowMs: number): void {
    this.lastChattyMs = nowMs;
    this.timer ??= this.begin(nowMs);
    if (nowMs >= this.busyUntilMs || !pieces.rest()) return;
    this.lastUntilMs = Math.min(Math.max(this.lastUntilMs + apartMs, nowMs + restMs), nowMs + longestRestMs);
    this.resting.push({ pieces, untilMs: this.lastUntilMs });
  }

  private begin(nowMs: number): NodeJS.Timeout {
    this.measuredMs = nowMs;
    this.loop.utilization();
    return setInterval(this.step, stepMs).unref();
  }

  private readonly step = (): void => {
    const nowMs = this.loop.nowMs();
    const due = this.resting.findIndex(({ untilMs }) => untilMs > nowMs);
    for (const { pieces } of this.resting.splice(0, due === -1 ? Infinity : due)) pieces.readOn(nowMs);
    if (nowMs - this.measuredMs < restMs) return;
    this.measuredMs = nowMs;
    if (this.loop.utilization() >= busyFrom) this.busyUntilMs = nowMs + staysBusyMs;
    if (this.resting.length > 0 || nowMs - this.lastChattyMs < restMs || this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
  };
}

/** The event loop of this process. */
export function thisLoop(): BusyLoop {
  let last = performance.eventLoopUtilization();
  return {
    nowMs: () => performance.now(),
    utilization: () => {
      const before = last;
      last = performance.eventLoopUtilization();
      return performance.eventLoopUtilization(last, before).utilization;
    },
  };
}

/** Those of all connections of this process. */
export const restingReads = new RestingReads(thisLoop());
