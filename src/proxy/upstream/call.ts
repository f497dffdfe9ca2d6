import type { Duplex, Readable } from 'node:stream';
import { denial, type Denial } from '../../decision/denial.js';
import type { HolderCount, Slot } from '../exchange/concurrency.js';
import type { AttemptsMade } from '../../decision/egress/attempts.js';
import type { RequestTrace } from '../../ports/tracing.js';
import type { CallSpan } from './call-span.js';
import { responseFailure, connectFailure } from './errors.js';

/** A request as it goes out on one connection. */
export interface ConnectionRequest {
  readonly method: string;
  /** The request target, byte for byte as it goes out. */
  readonly target: string;
  /**
   * Names and values in turn. A streamed body without `Content-Length` goes out chunked, or in HTTP/2 without a length.
   * `TE: trailers` asks for the trailers of the response.
   */
  readonly headers: string[];
  /** A stream that has trailers is a `BodyTrailers` too. */
  readonly body: Readable | Buffer | null;
  /** Protocol to switch to, where one is asked for. */
  readonly upgrade?: string;
}

/** A streamed body that may end with a trailer section (RFC 9110 §6.5). */
export interface BodyTrailers {
  /** Asked once, after its `end`: names and values in turn of what goes out; `null` or nothing where there are none. */
  readonly trailers: () => readonly string[] | null;
}

/** What a body ends with, asked after its end; `null` where it has no trailers. */
export function trailersOf(body: Readable | (Readable & BodyTrailers)): readonly string[] | null {
  return 'trailers' in body ? body.trailers() : null;
}

/** Hears how one request goes. It ends in exactly one `onComplete`, `onError`, `onUnprocessed` or `onUpgrade`. */
export interface RequestEvents {
  /** It is about to be written: the last moment to `abort` with nothing sent. */
  readonly onConnect: () => void;
  /** Some of its body was written, or taken; whether the upstream takes more at once. */
  readonly onBodySent: (takesMore: boolean) => void;
  /** The last byte of it was written. */
  readonly onRequestSent: () => void;
  /** The final response head; names and values in turn. */
  readonly onHead: (status: number, headers: string[]) => void;
  /** `false` stops the upstream until `resume`. */
  readonly onData: (chunk: Buffer) => boolean;
  /**
   * The response is whole. `isReusable` tells whether another request may follow on the connection; `trailers` are
   * names and values in turn, `null` where there are none.
   */
  readonly onComplete: (isReusable: boolean, trailers: readonly string[] | null) => void;
  /** The limit that was set has passed. */
  readonly onTimeout: () => void;
  readonly onError: (error: unknown) => void;
  /**
   * The upstream certainly processed nothing of it. `error` is `null` where it was not even tried, since there was no
   * room on the connection after all; `mayRepeat` tells that nothing of a streamed body is used up.
   */
  readonly onUnprocessed: (error: Error | null, mayRepeat: boolean) => void;
  readonly onUpgrade: (headers: readonly string[], socket: Duplex) => void;
}

/** What carries one request of a call at a time: an HTTP/1.1 connection, or a stream of an HTTP/2 connection. */
export interface CallConnection {
  /** `isLast` tells the upstream of HTTP/1.1 that no other request follows on the connection. */
  send(request: ConnectionRequest, events: RequestEvents, isLast: boolean): void;
  /** Sets the time limit of the request under way, milliseconds, in place of the one before. */
  setLimit(limitMs: number): void;
  clearLimit(): void;
  /** Lets the body go on after `onData` said `false`. */
  resume(): void;
  /** Breaks off the request under way, which then ends in `onError`. */
  abort(error: Error): void;
}

/** What the upstream is asked. */
export interface UpstreamRequest extends ConnectionRequest {
  /** Whose connections it counts among. */
  readonly holder: string;
  /** Milliseconds from the end of the request to the end of the response head. */
  readonly responseTimeoutMs: number;
  /** Its place, where it was reserved in its turn: given back when it starts or ends. */
  readonly place?: Slot;
  /** Milliseconds that it waited for that turn, which count among those that it may wait. */
  readonly waitedMs?: number;
  /** The request that it is part of, where that is traced: what goes out names a span of it. */
  readonly trace?: Pick<RequestTrace, 'send'> | undefined;
  /** It has switched protocols, where that was asked for, and the connection is whoever's this is. */
  readonly onUpgrade?: (rawHeaders: readonly string[], socket: Duplex) => void;
  /** Asked on a connection, right before the first byte: why the request may not go out any more, or `null`. */
  readonly lateRefusal?: () => Denial | null;
}

/** Takes the upstream's response as it comes. */
export interface ResponseSink {
  /** How often it was sent, where that may have been more than once: right before the head, or the error. */
  readonly onAttempts?: (made: AttemptsMade) => void;
  /** The final response head; 1xx ones are dropped. `rawHeaders` has names and values in turn. */
  readonly onHead: (status: number, rawHeaders: readonly string[]) => void;
  /** Some of the body. `false` stops the upstream until `resume`. */
  readonly onData: (chunk: Buffer) => boolean;
  /** The response is complete. `trailers` are names and values in turn, as they came; `null` where there are none. */
  readonly onEnd: (trailers: readonly string[] | null) => void;
  /** There is no response, or the rest of it will not come. */
  readonly onError: (reason: Denial) => void;
}

/** What a call needs of the upstream it belongs to. */
export interface CallHost<C extends CallConnection> {
  readonly idleTimeoutMs: number;
  /** The connection has nothing of the call any more; `sound` when it may carry another request. */
  readonly release: (connection: C, holderCount: HolderCount, sound: boolean) => void;
  /** The call will not start. */
  readonly leaveQueue: (call: QueuedCall<C>) => void;
  /** Starts the call again, or has it wait, after `avoided` processed nothing of it. Not there where that never is. */
  readonly repeat?: (call: Call<C>, avoided: C) => void;
}

/** What an upstream sees of a call that waits. */
export interface QueuedCall<C extends CallConnection> {
  readonly holder: string;
  readonly request: ConnectionRequest;
  /** Whether it goes out on a connection of its own. */
  readonly hasOwnConnection: boolean;
  readonly start: (connection: C, holderCount: HolderCount) => void;
  /** It will not start. */
  readonly refuse: (reason: Denial) => void;
}

/** Why a call of ours ended early. Made once: its stack would say nothing. */
const brokenOff = new Error('broken off');

/**
 * One request on its way through one connection, and the only place that keeps its time: in the queue, from the end of
 * the request to the response head, and between the bytes of the response.
 */
export class Call<C extends CallConnection> implements RequestEvents, QueuedCall<C> {
  readonly holder: string;
  readonly request: UpstreamRequest;
  readonly hasOwnConnection: boolean;
  private readonly sink: ResponseSink;
  private readonly host: CallHost<C>;
  /** `null` where it is not traced. */
  private readonly span: CallSpan | null;
  private connection: C | null = null;
  private holderCount: HolderCount | null = null;
  /** Whether some of it may have been written. */
  private hasBegun = false;
  private waiting: NodeJS.Timeout | null = null;
  /** Whether the sink was told the end, or said that it does not want to hear. */
  private isOver = false;
  private hasHead = false;
  /** Whether it went out a second time, after the upstream had processed nothing of it. */
  private isRepeated = false;

  constructor(
    request: UpstreamRequest,
    isAlone: boolean,
    sink: ResponseSink,
    host: CallHost<C>,
    span: CallSpan | null,
  ) {
    this.hasOwnConnection = isAlone;
    this.holder = request.holder;
    this.request = span?.request ?? request;
    this.sink = sink;
    this.host = host;
    this.span = span;
  }

  /** Waits for a connection, no longer than the limit. */
  wait(limitMs: number): void {
    this.waiting = setTimeout(() => {
      this.host.leaveQueue(this);
      this.refuse(denial('overloaded'));
    }, limitMs);
  }

  start(connection: C, holderCount: HolderCount): void {
    this.stopWaiting();
    this.request.place?.();
    this.connection = connection;
    this.holderCount = holderCount;
    connection.send(this.request, this, this.hasOwnConnection);
  }

  /** Tells the sink, where it was not told an end before. */
  refuse(reason: Denial): void {
    if (this.end()) this.fail(reason);
  }

  resume(): void {
    if (this.isOver) return;
    this.connection?.setLimit(this.host.idleTimeoutMs);
    this.connection?.resume();
  }

  cancel(): void {
    if (!this.end()) return;
    this.span?.end(null, 'caller_gone');
    if (this.connection === null) this.host.leaveQueue(this);
    else this.connection.abort(brokenOff);
  }

  mayBeSent(): boolean {
    return this.hasBegun;
  }

  onConnect(): void {
    const refused = this.isOver ? null : (this.request.lateRefusal?.() ?? null);
    if (refused !== null) this.refuse(refused);
    if (this.isOver) this.connection?.abort(brokenOff);
    else this.hasBegun = true;
  }

  /**
   * An upstream that answers while it still takes the body is not idle. One that takes no more of it has so long; else
   * the caller is waited for.
   */
  onBodySent(takesMore: boolean): void {
    if (this.isOver) return;
    if (this.hasHead || !takesMore) this.connection?.setLimit(this.host.idleTimeoutMs);
    else this.connection?.clearLimit();
  }

  onRequestSent(): void {
    if (!this.isOver && !this.hasHead) this.connection?.setLimit(this.request.responseTimeoutMs);
  }

  onTimeout(): void {
    this.breakOff(denial('upstream_timeout'));
  }

  onHead(status: number, headers: readonly string[]): void {
    if (this.isOver) return;
    this.hasHead = true;
    this.connection?.setLimit(this.host.idleTimeoutMs);
    this.span?.head(status, headers);
    this.sink.onHead(status, headers);
  }

  onUpgrade(headers: readonly string[], socket: Duplex): void {
    const isFirstEnd = this.end();
    this.release(false);
    if (isFirstEnd) this.span?.switched();
    if (isFirstEnd && this.request.onUpgrade !== undefined) this.request.onUpgrade(headers, socket);
    else socket.destroy();
  }

  onData(chunk: Buffer): boolean {
    if (this.isOver) return true;
    if (this.sink.onData(chunk)) {
      this.connection?.setLimit(this.host.idleTimeoutMs);
      return true;
    }
    this.connection?.clearLimit();
    return false;
  }

  onComplete(isReusable: boolean, trailers: readonly string[] | null): void {
    if (this.end()) {
      this.span?.end(trailers, null);
      this.sink.onEnd(trailers);
    }
    this.release(isReusable);
  }

  /** Goes out once more, on another connection where there is one: nothing of it counts as sent. */
  onUnprocessed(error: Error | null, mayRepeat: boolean): void {
    const { connection, host } = this;
    const isLastTry = !mayRepeat || (error !== null && this.isRepeated);
    this.hasBegun = false;
    if (this.isOver || connection === null || host.repeat === undefined || isLastTry) {
      this.onError(error);
      return;
    }
    this.isRepeated ||= error !== null;
    this.release(false);
    host.repeat(this, connection);
  }

  onError(error: unknown): void {
    if (this.end()) this.fail(this.hasBegun ? responseFailure(error) : connectFailure(error));
    this.release(false);
  }

  /** Ends it for a reason of ours, before or after its head. */
  private breakOff(reason: Denial): void {
    this.refuse(reason);
    this.connection?.abort(brokenOff);
  }

  private fail(reason: Denial): void {
    this.span?.end(null, reason.reason);
    this.sink.onError(reason);
  }

  /** Whether this is the first end. */
  private end(): boolean {
    this.stopWaiting();
    this.request.place?.();
    if (this.isOver) return false;
    this.isOver = true;
    return true;
  }

  private release(isReusable: boolean): void {
    const { connection, holderCount } = this;
    this.connection = null;
    if (connection !== null && holderCount !== null) this.host.release(connection, holderCount, isReusable);
  }

  private stopWaiting(): void {
    if (this.waiting === null) return;
    clearTimeout(this.waiting);
    this.waiting = null;
  }
}
