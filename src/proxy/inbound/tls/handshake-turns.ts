import { createFairQueue } from '../../../decision/limits/fair-queue.js';
import { createEventLoopBatch } from '../../exchange/event-loop-batch.js';
import type { TurnTaker } from '../http2/read-turns.js';

/** New connections are accepted before that. */
const atTurnEnd = createEventLoopBatch({ connectionsFirst: true });

/** A connection whose handshake is not complete. */
export interface Handshake extends TurnTaker {
  /** Bytes that were read from it, and that it was told. */
  readonly bytesRead: () => number;
  readonly bytesWritten: () => number;
}

/**
 * Handshakes that are read from in one turn of the event loop: as many as this, or as few where those before came to a
 * response. A signature of RSA takes about a millisecond.
 */
const readAtOnce = { most: 16, least: 4 };

/** How long those whose turn it is may be silent where others wait; milliseconds. */
const silenceMs = 2;

/** What was read from a handshake, and what it was told, before its turn; bytes. */
interface Before {
  readonly read: number;
  readonly written: number;
}

/**
 * Has handshakes of TLS go on in turns where there are many: each step of one may take a signature, and Node takes them
 * all within one turn of the event loop, so that whoever sends thousands at once would keep everybody else waiting for
 * seconds. Beyond so many they wait, sites take turns, within a site its networks, and a turn is one read. So it is one
 * whatever the step, and a connection that says nothing takes the place of none.
 */
export class HandshakeTurns {
  private readonly reading = new Map<Handshake, Before>();
  private readonly waiting = createFairQueue<Handshake>(Infinity);
  private isTurning = false;

  /** Whether they are so few that another one is read from at once. */
  hasRoom(): boolean {
    return this.reading.size < readAtOnce.most && this.waiting.size() === 0;
  }

  /** To be called where there is room, or once its client has said hello. */
  begin(handshake: Handshake): void {
    if (this.hasRoom()) {
      this.readOn(handshake);
      return;
    }
    this.waiting.enter(handshake);
    if (this.isTurning) return;
    this.isTurning = true;
    atTurnEnd(this.look);
  }

  /** It is complete, or the connection is gone: `isGone` has to say so from now on. */
  end(handshake: Handshake): void {
    this.reading.delete(handshake);
  }

  private readOn(handshake: Handshake): void {
    this.reading.set(handshake, { read: handshake.bytesRead(), written: handshake.bytesWritten() });
    handshake.resumeReading();
  }

  /** Connections were read from since the turn began. */
  private readonly look = (): void => {
    const turns = [...this.reading];
    if (turns.some(([{ bytesWritten }, { written }]) => bytesWritten() > written)) this.nextTurn(readAtOnce.least);
    else if (turns.length < readAtOnce.most || turns.some(([{ bytesRead }, { read }]) => bytesRead() > read)) {
      this.nextTurn(readAtOnce.most);
    } else setTimeout(this.nextTurn, silenceMs, readAtOnce.most);
  };

  private readonly nextTurn = (most: number): void => {
    for (const handshake of this.reading.keys()) {
      handshake.pauseReading();
      this.waiting.enter(handshake);
    }
    this.reading.clear();
    while (this.reading.size < most) {
      const handshake = this.waiting.next();
      if (handshake === null) break;
      if (!handshake.isGone()) this.readOn(handshake);
    }
    this.isTurning = this.waiting.size() > 0;
    if (this.isTurning) atTurnEnd(this.look);
  };
}
