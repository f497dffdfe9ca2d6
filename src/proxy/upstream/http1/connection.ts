import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { CallConnection, ConnectionRequest, RequestEvents } from '../call.js';
import type { Connect } from '../connector.js';
import type { ResponseHead } from './response-head.js';
import { ResponseParser, type ResponseHeadEvents } from './response-parser.js';
import { BodyWriter } from './body-writer.js';
import { Deadline } from './deadline.js';
import { serializeRequest, statedLength } from './serialize-request.js';
import { Pieces, restingReads } from '../../resting-reads.js';
import { createEventLoopBatch } from '../../exchange/event-loop-batch.js';
import { BrokenResponse, MalformedRequest } from '../errors.js';
import type { OpenSocket } from '../socket.js';

/** What a connection tells whoever keeps it. */
export interface ConnectionHost {
  /** It carries no other request, and the upstream was told or said so: to be left to end it. */
  readonly onClosing: (opened: OpenSocket) => void;
  /** It ended while it was idle. */
  readonly onGone: (connection: Http1Connection) => void;
}

/** Below the 5 s after which Node, gunicorn and kin close an idle connection, so that no request meets that close. */
const idleTimeoutMs = 4_000;

/** How far an upstream's own `Keep-Alive: timeout` is followed, and how long before that the connection is given up. */
const maxKeepAliveMs = 60_000;
const keepAliveMarginMs = 1_000;

/** Longer bodies cost more to copy behind their head than a second piece to write. */
const maxJoinedBytes = 16 * 1024;

/**
 * Larger reads are not kept for the end of the turn, bytes: copying them costs more than reading them together saves.
 */
const maxPendingBytes = 8 * 1024;

/** From this status on a response may be made from the head alone, with the body unread: redirects and refusals. */
const firstNonSuccessStatus = 300;

const atTurnEnd = createEventLoopBatch();

/** What is taken for granted of an upstream, so that a connection may carry another request. */
export interface ConnectionTrust {
  /** That it sends no body where there is none by rule. */
  readonly ends: boolean;
  /** That it reads the body of what it answers otherwise than with success, or closes. */
  readonly refusals: boolean;
}

/**
 * One connection to the upstream, opened at its first request: one request at a time, never a second time, and nothing
 * that was not asked for is taken from it.
 */
export class Http1Connection implements CallConnection, ResponseHeadEvents {
  private readonly connect: Connect;
  private readonly host: ConnectionHost;
  private readonly trust: ConnectionTrust;
  private readonly parser = new ResponseParser(this);
  private readonly deadline = new Deadline(() => this.onDue());
  private opened: OpenSocket | null = null;
  private pieces: Pieces | null = null;
  /** What it will be of, while it is being opened. */
  private opening: Socket | null = null;
  /** Who hears of the request under way; `null` where there is none. */
  private events: RequestEvents | null = null;
  private upload: BodyWriter | null = null;
  private head: ResponseHead | null = null;
  /** What was read in this turn of the event loop, where it waits for the turn's end. */
  private pendingSegment: Buffer | null = null;
  /** Whether the upstream was told that no other request follows. */
  private isLast = false;
  /** Whether it was asked to switch protocols. */
  private maySwitch = false;
  private hasBody = false;
  private isSent = false;
  /** Whether the sink takes no more for now. */
  private isPaused = false;
  private isOver = false;
  /**
   * Whether a read is under way. A limit that is set meanwhile takes effect at the read's end, and only where the
   * response goes on: to set one takes a look at the clock.
   */
  private isInRead = false;
  private nextLimitMs: number | null = null;
  /** When its last response was whole; monotonic milliseconds. */
  private wholeAtMs = -Infinity;

  constructor(connect: Connect, host: ConnectionHost, trust: ConnectionTrust) {
    this.connect = connect;
    this.host = host;
    this.trust = trust;
  }

  /** Whether a request can go out on it without waiting. */
  isIdle(): boolean {
    return this.opened !== null && this.events === null && !this.isOver && !this.deadline.isDue();
  }

  /** Since when it carries nothing; monotonic milliseconds. Of one that is idle. */
  get idleSinceMs(): number {
    return this.wholeAtMs;
  }

  /** `isLast` tells the upstream that no other request follows on the connection. */
  send(request: ConnectionRequest, events: RequestEvents, isLast: boolean): void {
    this.events = events;
    this.isLast = isLast;
    this.maySwitch = request.upgrade !== undefined;
    this.hasBody = request.body !== null;
    if (this.opened !== null) {
      this.write(this.opened.socket, request, events);
      return;
    }
    this.opening = this.connect(
      (outcome) => {
        this.opening = null;
        if (outcome instanceof Error) {
          this.fail(outcome);
          return;
        }
        this.watch(outcome);
        this.write(outcome.socket, request, events);
      },
      this.maySwitch ? undefined : this.read,
    );
  }

  /** Sets the time limit of the request under way, milliseconds, in place of the one before. */
  setLimit(limitMs: number): void {
    if (this.isInRead) this.nextLimitMs = limitMs;
    else if (!this.isOver) this.deadline.set(limitMs);
  }

  clearLimit(): void {
    this.nextLimitMs = null;
    this.deadline.clear();
  }

  /** Lets the body go on after `onData` said `false`. */
  resume(): void {
    this.isPaused = false;
    this.opened?.socket.resume();
  }

  /** Breaks off the request under way, which then ends in `onError`. */
  abort(error: Error): void {
    if (!this.isOver) this.breakOff(error);
  }

  /** Ends it at once. */
  close(): void {
    this.fail(new BrokenResponse('the connection was given up'));
  }

  /** Ends it while it is idle, to make room for another one at once. */
  closeIdle(): void {
    if (!this.isOver && this.opened !== null) this.leave(this.opened, false);
  }

  onHead(head: ResponseHead): void {
    this.head = head;
    this.events?.onHead(head.status, head.headers);
  }

  /** Hands the connection over, with what came of the other protocol before anything else. */
  onSwitch(head: ResponseHead, rest: Buffer): void {
    const { events, opened } = this;
    if (events === null || opened === null) return;
    const { socket } = opened;
    this.isOver = true;
    this.events = null;
    this.opened = null;
    this.deadline.end();
    socket.off('data', this.onStreamRead).pause();
    if (rest.length > 0) socket.unshift(rest);
    events.onUpgrade(head.headers, socket);
  }

  private write(socket: Socket, request: ConnectionRequest, events: RequestEvents): void {
    this.isSent = false;
    this.isPaused = false;
    this.nextLimitMs = null;
    this.head = null;
    this.pieces?.restart();
    this.parser.expect(request.method === 'HEAD', this.maySwitch, asksForTrailers(request.headers));
    const { body } = request;
    const length = lengthOf(request);
    const head = serializeRequest(request, length, this.isLast);
    if (head === null) {
      this.fail(new MalformedRequest());
      return;
    }
    events.onConnect();
    if (this.events !== events) return;
    if (body === null || Buffer.isBuffer(body)) {
      writeWhole(socket, head, body);
      this.onSent();
      return;
    }
    this.upload = new BodyWriter(socket, head, body, {
      length,
      onProgress: (takesMore) => this.events?.onBodySent(takesMore),
      onEnd: () => this.onSent(),
      onBroken: () => this.abort(new BrokenResponse('the body of the request broke off')),
    });
    this.upload.start();
  }

  private onSent(): void {
    this.upload = null;
    this.isSent = true;
    this.events?.onRequestSent();
  }

  private watch(opened: OpenSocket): void {
    const { socket } = opened;
    this.opened = opened;
    // Node reads on below TLS, and what it has read is lost when the connection is reset meanwhile.
    this.pieces = socket instanceof TLSSocket ? null : new Pieces(restingReads, socket, () => this.events === null);
    // A connection that may be handed over is read as a stream: whoever takes it over cannot use the shared read
    // buffer.
    if (this.maySwitch) socket.on('data', this.onStreamRead);
    socket.on('error', (error) => {
      this.readPendingSegment();
      this.fail(error);
    });
    socket.on('end', () => {
      this.readPendingSegment();
      if (this.events !== null && opened.endedItself() && this.parser.end()) this.complete('ended');
      else this.fail(new BrokenResponse('the upstream closed the connection'));
    });
    socket.on('close', () => {
      this.readPendingSegment();
      this.fail(new BrokenResponse('the connection is closed'));
    });
  }

  /**
   * Reads what came, and hands on what is of the body. The beginning of a response waits for the end of this turn of
   * the event loop, where it may. `false` reads no more until `resume`.
   *
   * @param bytes good until this returns: the next read fills the same place.
   */
  private readonly read = (bytes: Buffer, mayWait = true): boolean => {
    if (this.pendingSegment !== null) this.readPendingSegment();
    else if (mayWait && this.events !== null && this.head === null && bytes.length <= maxPendingBytes) {
      this.pendingSegment = Buffer.from(bytes);
      atTurnEnd(this.readPendingSegment);
      return true;
    }
    if (this.isOver) {
      // It was left to the upstream to end it.
      this.opened?.socket.destroy();
      return false;
    }
    const { events, parser } = this;
    this.isInRead = true;
    try {
      const body = events === null ? null : parser.read(bytes);
      if (body !== null && events?.onData(body) === false) this.isPaused = true;
    } finally {
      this.isInRead = false;
    }
    const isSound = events !== null && parser.isSound;
    if (this.events !== null && this.head !== null && parser.isDone()) {
      this.complete(isSound ? 'sound' : 'spoilt');
      return true;
    }
    if (this.nextLimitMs !== null) {
      this.setLimit(this.nextLimitMs);
      if (isSound) this.pieces?.took(bytes.length, this.nextLimitMs);
    }
    this.nextLimitMs = null;
    if (!isSound) this.abort(new BrokenResponse('the upstream sent what is no response'));
    return !this.isPaused;
  };

  /** Reads a connection that may be handed over. */
  private readonly onStreamRead = (bytes: Buffer): void => {
    if (!this.read(bytes, false)) this.opened?.socket.pause();
  };

  /** Reads what waits for the end of the turn, before anything that came after it. */
  private readonly readPendingSegment = (): void => {
    const bytes = this.pendingSegment;
    this.pendingSegment = null;
    if (bytes !== null && !this.read(bytes, false)) this.opened?.socket.pause();
  };

  /**
   * The response is whole.
   *
   * @param state what that leaves of the connection: `spoilt` where more came than was asked for.
   */
  private complete(state: 'sound' | 'spoilt' | 'ended'): void {
    const { events, head, opened } = this;
    // A response that came before the end of the request leaves a connection on which nobody knows what comes next.
    const isClear = state === 'sound' && this.isSent && opened?.socket.writableLength === 0;
    const keepMs = head === null || this.isLast || !head.persists ? 0 : keptMs(head.keepAliveS);
    const isTrusted = this.trust.ends || head?.endIsDoubtful === false;
    const isReusable = isClear && keepMs > 0 && isTrusted && !this.mayBeUnread(head);
    this.upload?.stop();
    this.upload = null;
    this.events = null;
    // What comes on an idle connection is seen at once.
    this.pieces?.restart();
    if (isReusable) {
      this.wholeAtMs = this.deadline.set(keepMs);
      // TLS hands on what it has unwrapped even when told to stop. The next response would not be read.
      if (this.isPaused) opened.socket.resume();
    } else if (isClear) this.leave(opened, (this.isLast && !this.maySwitch) || head?.persists === false);
    else this.end();
    events?.onComplete(isReusable, this.parser.trailers());
  }

  /** Whether the body of the request may still be there, as the beginning of the next one (RFC 9112 §9.3). */
  private mayBeUnread(head: ResponseHead | null): boolean {
    return !this.trust.refusals && this.hasBody && head !== null && head.status >= firstNonSuccessStatus;
  }

  /** Ends it in a way that does not keep its port. */
  private leave(opened: OpenSocket, willBeEnded: boolean): void {
    this.isOver = true;
    this.deadline.end();
    if (willBeEnded) this.host.onClosing(opened);
    else opened.reset();
  }

  private onDue(): void {
    this.readPendingSegment();
    if (this.events === null) this.fail(null);
    else this.events.onTimeout();
  }

  /**
   * Ends it at once and tells so in the next turn: by then what was told before is passed on, and whoever breaks it off
   * is done.
   */
  private breakOff(error: Error): void {
    const { events } = this;
    this.end();
    setImmediate(() => {
      if (events === null) this.host.onGone(this);
      else events.onError(error);
    });
  }

  /** It is of no use any more, under way or idle. */
  private fail(error: Error | null): void {
    if (this.isOver) return;
    const { events } = this;
    this.end();
    if (events === null) this.host.onGone(this);
    else events.onError(error);
  }

  private end(): void {
    this.isOver = true;
    this.events = null;
    this.deadline.end();
    this.upload?.stop();
    this.upload = null;
    (this.opened?.socket ?? this.opening)?.destroy();
  }
}

/** Bytes of the body; `null` where nobody knows before it ends. */
function lengthOf({ body, headers }: ConnectionRequest): number | null {
  if (body === null) return 0;
  return Buffer.isBuffer(body) ? body.length : statedLength(headers);
}

/** Whether the request says that its sender takes trailers (RFC 9110 §10.1.4). */
function asksForTrailers(headers: readonly string[]): boolean {
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]?.length === 2 && headers[i]?.toLowerCase() === 'te') return true;
  }
  return false;
}

function writeWhole(socket: Socket, head: string, body: Buffer | null): void {
  if (body === null || body.length === 0) {
    socket.write(head, 'latin1');
    return;
  }
  if (body.length > maxJoinedBytes) {
    socket.cork();
    socket.write(head, 'latin1');
    socket.write(body);
    socket.uncork();
    return;
  }
  const joined = Buffer.allocUnsafe(head.length + body.length);
  joined.write(head, 'latin1');
  body.copy(joined, head.length);
  socket.write(joined);
}

function keptMs(keepAliveS: number | null): number {
  return keepAliveS === null ? idleTimeoutMs : Math.min(keepAliveS * 1000, maxKeepAliveMs) - keepAliveMarginMs;
}
