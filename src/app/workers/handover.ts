/** Connections that were accepted, on their way to the workers. */
import type { Socket } from 'node:net';
import { createFairQueue, type Waiting } from '../../decision/limits/fair-queue.js';
import { clientNetworks } from '../../lib/ip-ranges.js';

/** A connection that was accepted and that nobody serves yet. */
export interface AcceptedConnection {
  readonly listener: number;
  readonly socket: Socket;
}

/** Who takes connections. */
export interface ConnectionTaker {
  /** Whether it has room for another. */
  readonly isFree: () => boolean;
  readonly give: (accepted: AcceptedConnection) => void;
}

interface HandoverDeps {
  /** Those that serve. */
  readonly takers: () => readonly ConnectionTaker[];
  /** It gave way to another. It is closed. */
  readonly onGaveWay: (waiting: number) => void;
}

export interface Handover {
  readonly give: (accepted: AcceptedConnection) => void;
  /** Goes on, where one has become free. */
  readonly goOn: () => void;
  /** Closes all that wait. */
  readonly drop: () => void;
}

interface WaitingConnection extends Waiting {
  readonly accepted: AcceptedConnection;
}

/** How many connections may wait here: as many as the system keeps before they are accepted. */
const mostWaiting = 4_096;

/**
 * Hands each connection to the next one that is free, in turn. Where all are busy the networks that they come from
 * take turns, and who has most of what waits gives way (`createFairQueue`): whoever opens many waits behind everybody
 * else for all but the first.
 */
export function createHandover({ takers, onGaveWay }: HandoverDeps, most = mostWaiting): Handover {
  const queue = createFairQueue<WaitingConnection>(most);
  let turn = 0;

  function nextFree(): ConnectionTaker | null {
    const all = takers();
    for (let tried = 0; tried < all.length; tried += 1) {
      turn += 1;
      const taker = all[turn % all.length];
      if (taker?.isFree() === true) return taker;
    }
    return null;
  }

  function goOn(): void {
    while (queue.size() > 0) {
      const taker = nextFree();
      if (taker === null) return;
      const next = queue.next();
      if (next?.isGone() === false) taker.give(next.accepted);
    }
  }

  return {
    give: (accepted) => {
      const { socket } = accepted;
      const { entered, ousted } = queue.enter({
        accepted,
        networks: clientNetworks(socket.remoteAddress ?? ''),
        isGone: () => socket.destroyed,
      });
      const loser = entered ? ousted : { accepted, isGone: () => socket.destroyed };
      if (loser !== null && !loser.isGone()) {
        loser.accepted.socket.destroy();
        onGaveWay(queue.size());
      }
      goOn();
    },
    goOn,
    drop: () => {
      for (const { accepted } of queue.takeAll(() => true)) accepted.socket.destroy();
    },
  };
}
