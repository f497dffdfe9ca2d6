import type { Socket } from 'node:net';
import type { Connect } from './connector.js';
import type { AnswerHead } from './answer-head.js';
import { AnswerParser, type AnswerEvents } from './answer-parser.js';
import { BodyWriter } from './body-writer.js';
import { Deadline } from './deadline.js';
import { requestText, statedLength } from './request-text.js';
import { createTurnEnd } from '../turn-end.js';
import { BrokenAnswer, MalformedRequest } from './connection-errors.js';
import type { ConnectionHost, ConnectionRequest, RequestEvents, UpstreamConnection } from './upstream-connection.js';

/** Below the 5 s after which Node, gunicorn and kin close an idle connection, so that no request meets that close. */
const keepAliveMs = 4_000;

/** How far a receiver's own `Keep-Alive: timeout` is followed, and how long before that the connection is given up. */
const maxKeepAliveMs = 60_000;
const keepAliveMarginMs = 1_000;

/** What one read may bring. */
const readBytes = 64 * 1024;

/** Longer bodies cost more to copy behind their head than a second piece to write. */
const maxJoinedBytes = 16 * 1024;

/** What costs more to copy than it gains to be read with others. */
const maxSetAsideBytes = 8 * 1024;

const atTurnEnd = createTurnEnd();

/**
 * One connection to the receiver, opened at its first request: one request at a time, never a second time, and nothing that
 * was not asked for is taken from it.
 */
export class HttpConnection implements UpstreamConnection, AnswerEvents {
  private readonly connect: Connect;
  private readonly host: ConnectionHost;
  private readonly parser = new AnswerParser(this);
  private readonly deadline = new Deadline(() => this.onDue());
  private socket: Socket | null = null;
  /** The same while it is being opened. */
  private opening: Socket | null = null;
  /** Who hears of the request under way; `null` where there is none. */
  private events: RequestEvents | null = null;
  private upload: BodyWriter | null = null;
  private head: AnswerHead | null = null;
  /** What was read in this turn of the event loop, where it waits for the turn's end. */
  private setAside: Buffer | null = null;
  private isSent = false;
  /** Whether the sink takes no more for now. */
  private isPaused = false;
  private isOver = false;

  constructor(connect: Connect, host: ConnectionHost) {
    this.connect = connect;
    this.host = host;
  }

  /** Whether a request can go out on it without waiting. */
  isIdle(): boolean {
    return this.socket !== null && this.events === null && !this.isOver && !this.deadline.isDue();
  }

  send(request: ConnectionRequest, events: RequestEvents): void {
    this.events = events;
    if (this.socket !== null) {
      this.write(this.socket, request, events);
      return;
    }
    const buffer = Buffer.allocUnsafeSlow(readBytes);
    this.opening = this.connect((outcome) => {
      this.opening = null;
      if (outcome instanceof Error) {
        this.fail(outcome);
        return;
      }
      this.watch(outcome);
      this.write(outcome, request, events);
    }, { buffer, callback: length => this.onRead(buffer.subarray(0, length)) });
  }

  setLimit(limitMs: number): void {
    if (!this.isOver) this.deadline.set(limitMs);
  }

  liftLimit(): void {
    this.deadline.lift();
  }

  resume(): void {
    this.isPaused = false;
    this.socket?.resume();
  }

  abort(error: Error): void {
    if (!this.isOver) this.breakOff(error);
  }

  close(): void {
    this.fail(new BrokenAnswer('the connection was given up'));
  }

  onHead(head: AnswerHead): void {
    this.head = head;
    this.events?.onHead(head.status, head.fields);
  }

  onData(bytes: Buffer): void {
    if (this.events?.onData(bytes) === false) this.isPaused = true;
  }

  private write(socket: Socket, request: ConnectionRequest, events: RequestEvents): void {
    this.isSent = false;
    this.isPaused = false;
    this.head = null;
    this.parser.expect(request.method === 'HEAD');
    const { body } = request;
    const length = lengthOf(request);
    const head = requestText(request, length);
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
    this.upload = new BodyWriter(socket, body, {
      head,
      length,
      onProgress: () => this.events?.onBodySent(),
      onEnd: () => this.onSent(),
      onBroken: () => this.abort(new BrokenAnswer('the body of the request broke off')),
    });
    this.upload.start();
  }

  private onSent(): void {
    this.upload = null;
    this.isSent = true;
    this.events?.onRequestSent();
  }

  private watch(socket: Socket): void {
    this.socket = socket;
    socket.on('error', (error) => {
      this.readSetAside();
      this.fail(error);
    });
    socket.on('end', () => {
      this.readSetAside();
      if (this.events !== null && this.parser.end()) this.complete();
      else this.fail(new BrokenAnswer('the receiver closed the connection'));
    });
    socket.on('close', () => {
      this.readSetAside();
      this.fail(new BrokenAnswer('the connection is closed'));
    });
  }

  /**
   * Sets the beginning of an answer aside for the end of the turn. `false` reads no more until `resume`.
   *
   * @param bytes good until this returns: the next read fills the same place.
   */
  private onRead(bytes: Buffer): boolean {
    if (this.events !== null && this.setAside === null && this.head === null && bytes.length <= maxSetAsideBytes) {
      this.setAside = Buffer.from(bytes);
      atTurnEnd(() => this.readSetAside());
      return true;
    }
    this.readSetAside();
    return this.read(bytes);
  }

  /** Reads what was set aside, before anything that came after it. */
  private readSetAside(): void {
    const bytes = this.setAside;
    this.setAside = null;
    if (bytes !== null && !this.read(bytes)) this.socket?.pause();
  }

  /** `false` where the sink takes no more for now. */
  private read(bytes: Buffer): boolean {
    if (this.isOver) return true;
    const isSound = this.events !== null && this.parser.read(bytes);
    if (this.events !== null && this.parser.isDone() && this.head !== null) {
      this.complete(isSound);
      return true;
    }
    if (!isSound) this.abort(new BrokenAnswer('the receiver sent what is no answer'));
    return !this.isPaused;
  }

  private complete(isSound = true): void {
    const { events, head, socket } = this;
    const keepMs = head === null || !head.persists ? 0 : keptMs(head.keepAliveS);
    // An answer that came before the end of the request leaves a connection on which nobody knows what comes next.
    const isReusable = isSound && this.isSent && socket?.writableLength === 0 && keepMs > 0;
    this.upload?.stop();
    this.upload = null;
    this.events = null;
    if (isReusable) {
      this.deadline.set(keepMs);
      // TLS hands on what it has unwrapped even when told to stop. The next answer would not be read.
      if (this.isPaused) socket.resume();
    } else this.end();
    events?.onComplete(isReusable);
  }

  private onDue(): void {
    this.readSetAside();
    if (this.events === null) this.fail(null);
    else this.events.onTimeout();
  }

  /** Fails when what was told before was passed on, and whoever breaks it off is done. */
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
    (this.socket ?? this.opening)?.destroy();
  }
}

/** Bytes of the body; `null` where nobody knows before it ends. */
function lengthOf({ body, fields }: ConnectionRequest): number | null {
  if (body === null) return 0;
  return Buffer.isBuffer(body) ? body.length : statedLength(fields);
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
  return keepAliveS === null ? keepAliveMs : Math.min(keepAliveS * 1000, maxKeepAliveMs) - keepAliveMarginMs;
}
