import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { denial, type Denial } from '../../decision/denial.js';
import { clientNetworks, type ClientNetworks } from '../../lib/ip-ranges.js';
import type { IdleConnection } from '../../decision/limits/idle-connections.js';
import type { Clock } from '../../ports/system.js';
import type { QueueBudget } from './queue-budget.js';
import { ReadControl } from './read-control.js';
import type { Peer } from '../auth/authorize-request.js';
import { onDestroySoon, sentBytes } from '../node-internals/socket.js';

/** A request, or what stands for one that the parser refused: served when those before it are answered. */
export interface PipelinedRequest {
  readonly start: () => void;
  /** Whether its message was received whole. */
  readonly isReceived: () => boolean;
  /** The rest of its body will not come. */
  readonly failBody: (reason: Denial) => void;
  /** A shutdown has begun, and a body may take less time from now on. */
  readonly shortenBodyTimeouts: () => void;
  /** Time is up: it may say so to the caller, whose connection is about to end. */
  readonly cutOff: () => void;
  /** The caller took what was written, where Node does not say so itself. */
  readonly onDrain: () => void;
}

/**
 * After that many a caller connects anew, so that new instances get their share. It sends what is left again (RFC 9112
 * §9.3.2).
 */
const maxRequests = 10_000;

/**
 * How many requests of one connection may wait. One read may bring 2,500 tiny ones, and to make objects of them takes
 * 30 ms; of requests with a token one read brings fewer than this. Beyond it the same holds as beyond `maxRequests`.
 */
const maxWaiting = 100;

/** The read that ends a head may bring up to this much of the body as well. */
const oneReadBytes = 64 * 1024;

/**
 * How long a connection may take to end once we have ended it, milliseconds. What the caller still sends is read
 * meanwhile, so that it gets to read our last response.
 */
export const lingerMs = 2_000;

/** Who takes less of a response in its time, and not the rest of it, does not keep up. */
const leastTakenBytes = 16 * 1024;

export interface ClientConnectionOptions {
  readonly peer: Peer;
  readonly maxHeadBytes: number;
  /** Shared by all connections. */
  readonly queueBudget: QueueBudget;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Bytes that were read of it before its first request; all that were read where it is left out. */
  readonly bytesReadBefore?: number;
  /** It was ended, or reads no more, since too much waits behind the request that is being served. */
  readonly onQueueOverflow: () => void;
}

/** A client connection: one request at a time, in order, each judged on its own. */
export class ClientConnection {
  readonly peer: Peer;
  private readonly socket: Socket;
  private readonly maxHeadBytes: number;
  private readonly queueBudget: QueueBudget;
  private readonly onQueueOverflow: () => void;
  private readonly readControl: ReadControl;
  private readonly waiting: PipelinedRequest[] = [];
  /** Requests of this connection that the queueBudget counts. */
  private queuedCount = 0;
  private current: PipelinedRequest | null = null;
  private requests = 0;
  /** Nothing more is taken; what waits is still served. */
  private takesNoMore = false;
  /** The last response was given. */
  private isClosing = false;
  /**
   * Set when a shutdown has begun: how long the connection waits for another request where its last response did not
   * say that it was the last one; milliseconds.
   */
  private unannouncedMs: number | null = null;
  /** Bytes read when the last response was given: more of them since mean that a request has begun. */
  private bytesReadAtLastResponse: number;
  /** When the last request was answered, or the connection came; monotonic milliseconds. */
  private idleSinceMs: number;
  private readonly networks: ClientNetworks;
  private isAuthenticated = false;
  private flushTimer: NodeJS.Timeout | null = null;
  private headTimer: NodeJS.Timeout | null = null;
  /** Gives a head that is overdue because it was not read its time again. */
  private restartHeadTimer: (() => void) | null = null;

  constructor(
    socket: Socket,
    { peer, maxHeadBytes, queueBudget, clock, bytesReadBefore, onQueueOverflow }: ClientConnectionOptions,
  ) {
    this.socket = socket;
    this.peer = peer;
    this.maxHeadBytes = maxHeadBytes;
    this.queueBudget = queueBudget;
    this.onQueueOverflow = onQueueOverflow;
    this.readControl = new ReadControl(socket, {
      queueBudget,
      onOverflow: () => {
        this.stopAccepting();
        this.onQueueOverflow();
      },
    });
    this.bytesReadAtLastResponse = bytesReadBefore ?? socket.bytesRead;
    this.idleSinceMs = clock.monotonic();
    this.networks = clientNetworks(peer.remoteAddress);
    onDestroySoon(socket, () => {
      const takesOver = this.mayStillSend();
      if (takesOver) this.linger();
      return takesOver;
    });
    // Node has a listener of its own but takes it away from a tunnel that we refuse, and without one a reset ends the
    // process.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.stopServing();
      this.queueBudget.removeRequests(this.queuedCount);
      this.queuedCount = 0;
      this.stopFlushTimer();
      this.stopHeadTimer();
    });
  }

  /** Whether the response being written has to be the last one. */
  isLast(): boolean {
    return this.isClosing || (this.takesNoMore && this.waiting.length === 0);
  }

  /** Whether one more request would be served. What comes when it would not is forgotten. */
  accepts(): boolean {
    if (!this.takesNoMore && !this.isClosing) return true;
    this.readControl.discard();
    return false;
  }

  /** Serves it, when those before it are answered. */
  enqueue(request: PipelinedRequest): void {
    this.stopHeadTimer();
    this.requests += 1;
    if (this.requests >= maxRequests) this.stopAccepting();
    if (this.current === null) {
      if (this.hasLargeHead()) request.failBody(denial('header_too_large'));
      this.startRequest(request);
      return;
    }
    this.waiting.push(request);
    if (this.waiting.length >= maxWaiting) this.stopAccepting();
    this.readControl.hold();
    this.onRequestQueued();
  }

  /** A request of it was let through for somebody. */
  markAuthenticated(): void {
    this.isAuthenticated = true;
  }

  /** Whether one was. */
  hasAuthenticated(): boolean {
    return this.isAuthenticated;
  }

  /** How little would be lost with it; `null` while a request is being served, and not while it ends after the last. */
  idleState(): IdleConnection | null {
    if (this.current !== null) return null;
    return { networks: this.networks, hasAuthenticated: this.isAuthenticated, sinceMs: this.idleSinceMs };
  }

  /** Whether a request of it is being served, or it was switched to another protocol. */
  isServing(): boolean {
    return this.current !== null;
  }

  /**
   * Whether more came for one head than it may have. Node counts neither white space around values nor empty lines
   * before it.
   */
  hasLargeHead(): boolean {
    return (
      this.current === null &&
      !this.isClosing &&
      this.socket.bytesRead - this.bytesReadAtLastResponse > this.maxHeadBytes + oneReadBytes
    );
  }

  /**
   * The parser cannot go on. If it failed on a body, fails that request; otherwise answers with `refusal` in the place
   * of the request that it could not read.
   */
  stopReading(reason: Denial, refusal: PipelinedRequest): void {
    if (this.isClosing || this.takesNoMore) return;
    const last = this.waiting.at(-1) ?? this.current;
    if (last === null || last.isReceived()) this.enqueue(refusal);
    else last.failBody(reason);
    this.stopAccepting();
  }

  /**
   * The caller ended its side in the midst of a message. Behind a request that was received whole that is a hang-up, as
   * it is between messages, where Node ends our side.
   *
   * @returns whether it was; otherwise the request that is being served is the one that broke off, or none is.
   */
  endBehindRequest(): boolean {
    if (this.current === null || (this.waiting.length === 0 && !this.current.isReceived())) return false;
    this.stopServing();
    this.socket.end();
    return true;
  }

  /** A head was not complete in time. Where we had stopped reading, it gets that time again when we read on. */
  expireHead(limitMs: number, onExpired: () => void): void {
    if (this.readControl.isHeld()) {
      this.restartHeadTimer = () => {
        this.headTimer = setTimeout(onExpired, limitMs);
      };
    } else onExpired();
  }

  /** The current request is answered, or nobody is left to answer to. `nowMs` is of the monotonic clock. */
  finish(request: PipelinedRequest, nowMs: number): void {
    if (this.current !== request) return;
    this.current = null;
    this.stopFlushTimer();
    this.bytesReadAtLastResponse = this.socket.bytesRead;
    this.idleSinceMs = nowMs;
    const next = this.waiting.shift();
    if (next !== undefined) {
      this.startRequest(next);
      // Last, since what was held may bring the next ones at once.
      this.onQueuedRequestServed();
    } else if (this.unannouncedMs !== null) {
      if (this.isClosing) this.socket.destroySoon();
      else setTimeout(this.closeIdle, this.unannouncedMs).unref();
    }
  }

  /** The response being written is the last one: nothing that follows is served. */
  stopServing(): void {
    this.isClosing = true;
    this.waiting.length = 0;
    this.readControl.stop();
  }

  /** What follows is no request: the request that is being served reads on. */
  switchProtocols(): void {
    this.stopServing();
    this.readControl.handOver();
  }

  /** Ends it at the deadline of a shutdown. */
  cutOff(): void {
    this.current?.cutOff();
    this.abort();
  }

  /** Ends it without a clean end of the response; `reset` where a closed connection would be taken for one. */
  abort(reset = false): void {
    this.stopServing();
    // There is no way to reset below TLS, where an end without `close_notify` says the same.
    if (reset && !(this.socket instanceof TLSSocket)) this.socket.resetAndDestroy();
    else this.socket.destroy();
  }

  /** Ends it, since too much waits behind the request that is being served. */
  endOverflowing(): void {
    this.abort();
    this.onQueueOverflow();
  }

  /**
   * A shutdown has begun: a body that is being read has less time from now on, and the connection ends once no request
   * comes any more. After a response that said that it was the last one, that is at once; a caller that was not told
   * may be sending the next request by now, and has `unannouncedMs` for it.
   */
  drain(unannouncedMs: number): void {
    this.unannouncedMs = unannouncedMs;
    this.current?.shortenBodyTimeouts();
  }

  /**
   * Where no request has begun, says that none is served any more and reads on for a moment: a reset could take from
   * the caller what it has not read.
   */
  readonly closeIdle = (): void => {
    if (
      this.current === null &&
      !this.isClosing &&
      !this.socket.destroyed &&
      this.socket.bytesRead === this.bytesReadAtLastResponse
    ) {
      this.linger();
    }
  };

  /** Gives the caller that long to take what was written, and as long again where it took some of a large response. */
  startWriteTimeout(limitMs: number, onStalled: () => void): void {
    const { socket } = this;
    this.stopFlushTimer();
    if (socket.writableLength === 0) return;
    const sent = sentBytes(socket);
    this.flushTimer = setTimeout(() => {
      // Where nothing is left to take, only the end of the connection is waited for.
      const takesOn = socket.writableLength > 0 && sentBytes(socket) - sent >= leastTakenBytes;
      if (takesOn) this.startWriteTimeout(limitMs, onStalled);
      else onStalled();
    }, limitMs);
  }

  /** The caller took what was written. */
  endWriteTimeout(): void {
    this.stopFlushTimer();
  }

  /** The caller took what was written, on a connection that Node has left to us. */
  onDrain(): void {
    this.current?.onDrain();
  }

  /** Writes the last response past Node, where it has no response object for it. */
  writeLast(bytes: string): void {
    this.stopServing();
    if (this.socket.writable) this.socket.write(bytes, 'latin1');
    this.linger();
  }

  /** Serves what waits, and parses nothing more. */
  private stopAccepting(): void {
    this.takesNoMore = true;
    this.readControl.discard();
  }

  private startRequest(request: PipelinedRequest): void {
    this.current = request;
    request.start();
  }

  /** One more was read that cannot be served at once. */
  private onRequestQueued(): void {
    if (this.socket.destroyed) return;
    this.queuedCount += 1;
    if (!this.queueBudget.addRequest()) this.endOverflowing();
  }

  /** One of those that waited is served; when it is the last, reading goes on. */
  private onQueuedRequestServed(): void {
    this.queuedCount -= 1;
    this.queueBudget.removeRequests(1);
    if (this.waiting.length > 0 || this.takesNoMore || this.isClosing) return;
    this.readControl.release();
    this.restartHeadTimer?.();
    this.restartHeadTimer = null;
  }

  private mayStillSend(): boolean {
    if (this.socket.readableEnded) return false;
    return !this.readControl.isReading() || this.current?.isReceived() === false;
  }

  private linger(): void {
    const { socket } = this;
    this.isClosing = true;
    const timer = setTimeout(() => socket.destroy(), lingerMs);
    socket.once('close', () => {
      clearTimeout(timer);
    });
    // When the caller's side has ended as well, the socket is destroyed by itself.
    socket.end();
    this.readControl.discard();
  }

  private stopHeadTimer(): void {
    if (this.headTimer === null) return;
    clearTimeout(this.headTimer);
    this.headTimer = null;
  }

  private stopFlushTimer(): void {
    if (this.flushTimer === null) return;
    clearTimeout(this.flushTimer);
    this.flushTimer = null;
  }
}
