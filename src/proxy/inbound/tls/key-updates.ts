import type { TLSSocket } from 'node:tls';
import { createFairQueue, type Waiting } from '../../../decision/limits/fair-queue.js';
import { TokenBucket } from '../../../decision/limits/token-bucket.js';
import type { ClientNetworks } from '../../../lib/ip-ranges.js';
import type { Clock } from '../../../ports/system.js';
import { createEventLoopBatch } from '../../exchange/event-loop-batch.js';
import { stopReading, takeTurn, waitForTurn } from '../../node-internals/socket.js';

/**
 * Keys that a connection may have us derive once its handshake is complete: so many at once, so many more each second.
 * A client changes its own after millions of records (RFC 8446 §5.5), and where it asks for a change of ours that makes
 * two.
 */
const keys = { most: 64, perSecond: 1 };

/** Keys of all connections in one turn of the event loop, before others are read in turns: some 5 ms. */
const mostAtOnce = 256;

/** New connections are accepted before that. */
const atTurnEnd = createEventLoopBatch({ connectionsFirst: true });

interface Options {
  readonly clock: Pick<Clock, 'monotonic'>;
  /** A connection was ended. */
  readonly onAbuse: () => void;
}

interface Connection extends Waiting {
  readonly socket: TLSSocket;
  /** Whether a request of it was let through for somebody with a good credential. */
  readonly hasAuthenticated: () => boolean;
}

/**
 * Ends connections that change their keys again and again (KeyUpdate, RFC 8446 §4.6.3): each change is a record of 27
 * bytes, costs as much as some requests, and OpenSSL takes any number of them without a word to us. But it tells each
 * new key to whoever logs keys. What it tells is not looked at.
 *
 * What was read of a connection at once, 64 KiB, cannot be stopped any more, and takes a tenth of a second. So where
 * one was ended, or many bring some, those that never showed a good credential are read from in turns, one in each turn
 * of the event loop; sites take turns, within a site its networks.
 */
export class KeyUpdates {
  private readonly options: Options;
  private readonly reading = new Set<Connection>();
  private readonly waiting = createFairQueue<Connection>(Infinity);
  private spent = 0;
  private isInterrupted = false;
  private isTurning = false;

  constructor(options: Options) {
    this.options = options;
  }

  /** Its handshake is complete. */
  add(socket: TLSSocket, networks: ClientNetworks, hasAuthenticated: () => boolean): void {
    const { clock } = this.options;
    const connection = { socket, networks, hasAuthenticated, isGone: () => socket.destroyed };
    let derived: TokenBucket | null = null;
    const onKey = (): void => {
      const nowMs = clock.monotonic();
      derived ??= new TokenBucket(keys.most, keys.perSecond, nowMs);
      this.spent += 1;
      this.beginTurn();
      if (!derived.take(1, nowMs)) {
        socket.off('keylog', onKey);
        this.end(connection);
      } else if (this.spent > mostAtOnce) this.interrupt();
    };
    this.reading.add(connection);
    socket.on('keylog', onKey).once('close', () => this.reading.delete(connection));
    if (this.isInterrupted) this.pause(connection);
  }

  private end({ socket }: Connection): void {
    // OpenSSL is at work on what was read, and must not lose its connection in the midst of it.
    stopReading(socket);
    setImmediate(() => socket.destroy());
    this.options.onAbuse();
    this.interrupt();
  }

  /** This turn has taken long: whoever was not read from yet waits for another one. */
  private interrupt(): void {
    if (this.isInterrupted) return;
    this.isInterrupted = true;
    for (const connection of this.reading) if (!connection.hasAuthenticated()) this.pause(connection);
  }

  private pause(connection: Connection): void {
    this.reading.delete(connection);
    waitForTurn(connection.socket);
    this.waiting.enter(connection);
  }

  private beginTurn(): void {
    if (this.isTurning) return;
    this.isTurning = true;
    atTurnEnd(this.endTurn);
  }

  private readonly endTurn = (): void => {
    this.spent = 0;
    this.isInterrupted = false;
    this.isTurning = false;
    for (let next = this.waiting.next(); next !== null; next = this.waiting.next()) {
      if (next.isGone()) continue;
      this.reading.add(next);
      takeTurn(next.socket);
      this.beginTurn();
      return;
    }
  };
}
