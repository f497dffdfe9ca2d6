import type { Duplex } from 'node:stream';
import { denial, type Denial } from '../../decision/denial.js';
import type { HolderCount, Slot } from '../exchange/concurrency.js';
import type { ConnectionRequest, HttpConnection, RequestEvents } from './http1/http-connection.js';
import { responseFailure, connectFailure } from './errors.js';

/** What the receiver is asked. */
export interface UpstreamRequest extends ConnectionRequest {
  /** Whose connections it counts among. */
  readonly holder: string;
  /** Milliseconds from the end of the request to the end of the response head. */
  readonly responseTimeoutMs: number;
  /** Its place, where it was reserved in its turn: given back when it starts or ends. */
  readonly place?: Slot;
  /** Milliseconds that it waited for that turn, which count among those that it may wait. */
  readonly waitedMs?: number;
  /** It has switched protocols, where that was asked for, and the connection is whoever's this is. */
  readonly onUpgrade?: (rawHeaders: readonly string[], socket: Duplex) => void;
  /** Asked on a connection, right before the first byte: why the request may not go out any more, or `null`. */
  readonly lateRefusal?: () => Denial | null;
}

/** Takes the receiver's answer as it comes. */
export interface ResponseSink {
  /** The final response head; 1xx ones are dropped. `rawHeaders` has names and values in turn. */
  readonly onHead: (status: number, rawHeaders: readonly string[]) => void;
  /** Some of the body. `false` stops the receiver until `resume`. */
  readonly onData: (chunk: Buffer) => boolean;
  /** The answer is complete. */
  readonly onEnd: () => void;
  /** There is no answer, or the rest of it will not come. */
  readonly onError: (reason: Denial) => void;
}

/** What a call needs of the upstream it belongs to. */
export interface CallHost {
  readonly idleTimeoutMs: number;
  /** The connection has nothing of the call any more; `sound` when it may carry another request. */
  readonly release: (connection: HttpConnection, holderCount: HolderCount, sound: boolean) => void;
  /** The call will not start. */
  readonly leaveQueue: (call: QueuedCall) => void;
}

/** What an upstream sees of a call that waits. */
export interface QueuedCall {
  readonly holder: string;
  readonly request: ConnectionRequest;
  /** Whether it goes out on a connection of its own. */
  readonly hasOwnConnection: boolean;
  readonly start: (connection: HttpConnection, holderCount: HolderCount) => void;
  /** It will not start. */
  readonly refuse: (reason: Denial) => void;
}

/** Why a call of ours ended early. Made once: its stack would say nothing. */
const brokenOff = new Error('broken off');

/**
 * One request on its way through one connection, and the only place that keeps its time: in line, from the end of the
 * request to the response head, and between the bytes of the answer.
 */
export class Call implements RequestEvents, QueuedCall {
  readonly holder: string;
  readonly request: UpstreamRequest;
  readonly hasOwnConnection: boolean;
  private readonly sink: ResponseSink;
  private readonly host: CallHost;
  private connection: HttpConnection | null = null;
  private holderCount: HolderCount | null = null;
  /** Whether some of it may have been written. */
  private hasBegun = false;
  private waiting: NodeJS.Timeout | null = null;
  /** Whether the sink was told the end, or said that it does not want to hear. */
  private isOver = false;
  private hasHead = false;

  constructor(request: UpstreamRequest, isAlone: boolean, sink: ResponseSink, host: CallHost) {
    this.hasOwnConnection = isAlone;
    this.holder = request.holder;
    this.request = request;
    this.sink = sink;
    this.host = host;
  }

  /** Stands in line, no longer than the limit. */
  wait(limitMs: number): void {
    this.waiting = setTimeout(() => {
      this.host.leaveQueue(this);
      this.refuse(denial('overloaded'));
    }, limitMs);
  }

  start(connection: HttpConnection, holderCount: HolderCount): void {
    this.stopWaiting();
    this.request.place?.();
    this.connection = connection;
    this.holderCount = holderCount;
    connection.send(this.request, this, this.hasOwnConnection);
  }

  /** Tells the sink, where it was not told an end before. */
  refuse(reason: Denial): void {
    if (this.end()) this.sink.onError(reason);
  }

  resume(): void {
    if (this.isOver) return;
    this.connection?.setLimit(this.host.idleTimeoutMs);
    this.connection?.resume();
  }

  cancel(): void {
    if (!this.end()) return;
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

  /** A receiver that answers while it still takes the body is not idle. */
  onBodySent(): void {
    if (this.hasHead && !this.isOver) this.connection?.setLimit(this.host.idleTimeoutMs);
  }

  onRequestSent(): void {
    if (!this.isOver && !this.hasHead) this.connection?.setLimit(this.request.responseTimeoutMs);
  }

  onTimeout(): void {
    this.breakOff(denial('upstream_timeout'));
  }

  onHead(status: number, fields: readonly string[]): void {
    if (this.isOver) return;
    this.hasHead = true;
    this.connection?.setLimit(this.host.idleTimeoutMs);
    this.sink.onHead(status, fields);
  }

  onUpgrade(fields: readonly string[], socket: Duplex): void {
    const isFirstEnd = this.end();
    this.release(false);
    if (isFirstEnd && this.request.onUpgrade !== undefined) this.request.onUpgrade(fields, socket);
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

  onComplete(isReusable: boolean): void {
    if (this.end()) this.sink.onEnd();
    this.release(isReusable);
  }

  onError(error: unknown): void {
    if (this.end()) this.sink.onError(this.hasBegun ? responseFailure(error) : connectFailure(error));
    this.release(false);
  }

  /** Ends it for a reason of ours, before or after its head. */
  private breakOff(reason: Denial): void {
    this.refuse(reason);
    this.connection?.abort(brokenOff);
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
