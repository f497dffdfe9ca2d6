import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { Denial } from '../decision/denial.js';
import type { Peer } from './pipeline.js';

/** A request, or what stands for one that the parser refused: served when those before it are answered. */
export interface Turn {
  readonly start: () => void;
  /** Whether its message was received whole. */
  readonly isReceived: () => boolean;
  /** The rest of its body will not come. */
  readonly breakBody: (reason: Denial) => void;
  /** Time is up: it may say so to the caller, whose connection is about to end. */
  readonly cutOff: () => void;
}

/** Requests that may wait behind the one being served. A caller that pipelines more sends the rest again (RFC 9112 §9.3.2). */
const maxWaiting = 16;

/** After that many a caller connects anew, so that new instances get their share. */
const maxRequests = 10_000;

/** How long what the caller still sends is read after our last answer, so that it gets to read that answer. */
const lingerMs = 2_000;

/** A caller's connection: one request at a time, in order, each judged on its own. */
export class CallerConnection {
  readonly peer: Peer;
  private readonly socket: Socket;
  private readonly waiting: Turn[] = [];
  private current: Turn | null = null;
  private requests = 0;
  /** Nothing more is taken; what waits is still served. */
  private isFull = false;
  /** The last answer was given. */
  private isClosing = false;
  private closesWhenIdle = false;
  /** Whether bytes came, or may still come, that nobody will answer. */
  private hasUnanswered = false;
  /** Bytes read when the last answer was given: more of them since mean that a request has begun. */
  private restedAt: number;
  private flushTimer: NodeJS.Timeout | null = null;

  constructor(socket: Socket, peer: Peer) {
    this.socket = socket;
    this.peer = peer;
    this.restedAt = socket.bytesRead;
    const destroySoon = socket.destroySoon.bind(socket);
    // Node calls this after the last answer of a connection. It closes at once then, and the caller, still sending, is
    // reset and may lose the answer with what it had not read yet (RFC 9112 §9.6).
    socket.destroySoon = () => {
      if (this.mayStillSend()) this.linger();
      else destroySoon();
    };
    socket.on('close', () => {
      this.isClosing = true;
      this.waiting.length = 0;
      this.stopFlushTimer();
    });
  }

  /** Whether the answer being written has to be the last one. */
  isLast(): boolean {
    return this.isClosing || (this.isFull && this.waiting.length === 0);
  }

  take(turn: Turn): void {
    if (this.isFull || this.isClosing) {
      this.hasUnanswered = true;
      return;
    }
    this.requests += 1;
    const isIdle = this.current === null;
    if (!isIdle) this.waiting.push(turn);
    this.isFull = this.requests >= maxRequests || this.waiting.length >= maxWaiting;
    if (isIdle) this.begin(turn);
  }

  /** The parser can read no more. What it choked on is a body, or stands for a request of its own. */
  stopReading(reason: Denial, refusal: Turn): void {
    if (this.isClosing || this.isFull) return;
    this.hasUnanswered = true;
    const last = this.waiting.at(-1) ?? this.current;
    if (last === null || last.isReceived()) this.take(refusal);
    else last.breakBody(reason);
    this.isFull = true;
  }

  /** The current turn is answered, or nobody is left to answer to. */
  finish(turn: Turn): void {
    if (this.current !== turn) return;
    this.current = null;
    this.stopFlushTimer();
    this.restedAt = this.socket.bytesRead;
    const next = this.waiting.shift();
    if (next !== undefined && !this.isClosing) this.begin(next);
    else if (this.closesWhenIdle) this.socket.destroySoon();
  }

  /** The answer being written is the last one: nothing that follows is served. */
  close(): void {
    this.isClosing = true;
    this.waiting.length = 0;
  }

  /** Ends it at the deadline of a shutdown. */
  cutOff(): void {
    this.current?.cutOff();
    this.abort();
  }

  /** Ends it without a clean end of the answer; `reset` where a closed connection would be taken for one. */
  abort(reset = false): void {
    this.close();
    // There is no way to reset below TLS, where an end without `close_notify` says the same.
    if (reset && !(this.socket instanceof TLSSocket)) this.socket.resetAndDestroy();
    else this.socket.destroy();
  }

  /** Ends it as soon as no request has begun: now, or when the one being served is answered. */
  closeWhenIdle(): void {
    this.closesWhenIdle = true;
    if (this.current === null && this.socket.bytesRead === this.restedAt) this.abort();
  }

  /** Gives the caller that long to take what was written. */
  expectFlush(limitMs: number, onStalled: () => void): void {
    this.stopFlushTimer();
    if (this.socket.writableLength > 0) this.flushTimer = setTimeout(onStalled, limitMs);
  }

  /** The caller took what was written. */
  flushed(): void {
    this.stopFlushTimer();
  }

  /** Writes the last answer past Node, where it has no response object for it. */
  writeLast(bytes: string): void {
    this.close();
    if (this.socket.writable) this.socket.write(bytes, 'latin1');
    this.linger();
  }

  private begin(turn: Turn): void {
    this.current = turn;
    turn.start();
  }

  private mayStillSend(): boolean {
    if (this.socket.readableEnded) return false;
    return this.hasUnanswered || this.current?.isReceived() === false;
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
    socket.resume();
  }

  private stopFlushTimer(): void {
    if (this.flushTimer === null) return;
    clearTimeout(this.flushTimer);
    this.flushTimer = null;
  }
}
