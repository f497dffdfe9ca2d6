import { createEventLoopBatch } from '../../exchange/event-loop-batch.js';
import { createFairQueue, type Waiting } from '../../../decision/limits/fair-queue.js';

/** A connection that is read from, and may be told to wait. */
export interface TurnTaker extends Waiting {
  readonly pauseReading: () => void;
  readonly resumeReading: () => void;
}

/** What waits for its turn: a connection that is to be read on, or one that is to begin. */
interface Turn extends Waiting {
  /** Returns whose turn it is. */
  readonly take: () => TurnTaker;
}

/** New connections are accepted before that. */
const atTurnEnd = createEventLoopBatch({ connectionsFirst: true });

/** What heads of one turn of the event loop may cost before connections are read in turns: some 30 ms. */
const mostAtOnce = 256;

/** Connections that are read from in each turn then: one where the turn before cost as much. */
const readAtOnce = { most: 2, least: 1 };

/** A head costs 1, and as much again for this many headers. */
const headersForOne = 64;

/**
 * Has connections of HTTP/2 read in turns where they bring more at once than can be served at once. Node parses all
 * that a read of 64 KiB brings, and compressed heads (RFC 7541) may be a hundred times as large as their bytes: some
 * kilobytes on each of many connections would keep everybody else waiting for seconds. Beyond `mostAtOnce`, those that
 * were not read yet wait, and so do those that begin; sites take turns, within a site its networks.
 */
export class ReadTurns {
  private readonly reading = new Set<TurnTaker>();
  private readonly waiting = createFairQueue<Turn>(Infinity);
  /** Those whose turn it is, and which may bring what they have; `had`: of them those that brought some. */
  private readonly allowed = new Set<TurnTaker>();
  private readonly had = new Set<TurnTaker>();
  private spent = 0;
  private isTurning = false;

  /** Calls `take` once a connection may begin: at once where none waits. */
  begin(turn: Turn): void {
    if (this.spent <= mostAtOnce && this.waiting.size() === 0) turn.take();
    else this.waiting.enter(turn);
  }

  /** It has begun. */
  add(taker: TurnTaker): void {
    this.reading.add(taker);
  }

  /** It is gone: `isGone` has to say so from now on. */
  delete(taker: TurnTaker): void {
    this.reading.delete(taker);
    this.allowed.delete(taker);
    this.had.delete(taker);
  }

  /** A head with so many headers came. */
  count(taker: TurnTaker, headers: number): void {
    this.spent += 1 + headers / headersForOne;
    if (!this.isTurning) {
      this.isTurning = true;
      atTurnEnd(this.endTurn);
    }
    if (this.allowed.has(taker)) this.had.add(taker);
    // Node reads on by itself after a write.
    if (!this.reading.has(taker)) taker.pauseReading();
    if (this.spent > mostAtOnce) this.pauseOthers();
  }

  private pauseOthers(): void {
    if (this.reading.size === this.allowed.size) return;
    for (const taker of this.reading) if (!this.allowed.has(taker)) this.pause(taker);
  }

  private pause(taker: TurnTaker): void {
    this.reading.delete(taker);
    taker.pauseReading();
    const { networks } = taker;
    this.waiting.enter({ networks, isGone: () => taker.isGone(), take: () => this.readOn(taker) });
  }

  private readOn(taker: TurnTaker): TurnTaker {
    this.reading.add(taker);
    taker.resumeReading();
    return taker;
  }

  private readonly endTurn = (): void => {
    const mostGiven = this.spent > mostAtOnce ? readAtOnce.least : readAtOnce.most;
    this.spent = 0;
    if (this.waiting.size() > 0) for (const taker of this.had) this.pause(taker);
    this.allowed.clear();
    this.had.clear();
    let given = 0;
    while (given < mostGiven) {
      const turn = this.waiting.next();
      if (turn === null) break;
      if (turn.isGone()) continue;
      given += 1;
      this.allowed.add(turn.take());
    }
    this.isTurning = given > 0;
    if (this.isTurning) atTurnEnd(this.endTurn);
  };
}
