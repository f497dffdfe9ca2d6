import type { Duplex, Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { denial, type Denial } from '../decision/denial.js';
import { hasReadableBody } from '../decision/response-fields.js';
import type { Access } from './slots.js';
import type { UpstreamConnection } from './upstream-connection.js';
import { answerFailure, connectFailure } from './upstream-failure.js';

/** What the receiver is asked. */
export interface UpstreamRequest {
  readonly access: Access;
  readonly method: string;
  /** The request target, byte for byte as it goes out. */
  readonly target: string;
  /** Names and values in turn. A body without `Content-Length` goes out chunked. */
  readonly fields: string[];
  readonly body: Readable | Buffer | null;
  /** Milliseconds from the end of the request to the end of the response head. */
  readonly responseTimeoutMs: number;
  /** Asked on a connection, right before the first byte: why the request may not go out any more, or `null`. */
  readonly lateRefusal?: () => Denial | null;
  /** Protocol to switch to, where one is asked for. */
  readonly upgrade?: string;
}

/** Takes the receiver's answer as it comes. */
export interface AnswerSink {
  /** The final response head; 1xx ones are dropped. `rawHeaders` has names and values in turn. */
  readonly onHead: (status: number, rawHeaders: readonly string[]) => void;
  /** Some of the body. `false` stops the receiver until `resume`. */
  readonly onBody: (chunk: Buffer) => boolean;
  /** The answer is complete. */
  readonly onEnd: () => void;
  /** There is no answer, or the rest of it will not come. */
  readonly onFailure: (reason: Denial) => void;
  /** It has switched protocols, and the connection is the sink's. Only where that was asked for. */
  readonly onUpgrade?: (rawHeaders: readonly string[], socket: Duplex) => void;
}

/** What a call needs of the upstream it belongs to. */
export interface CallHost {
  readonly idleTimeoutMs: number;
  /** The connection has nothing of the call any more; `sound` when it may carry another request. */
  readonly release: (connection: UpstreamConnection, access: Access, sound: boolean) => void;
  /** The call will not start. */
  readonly leaveLine: (call: CallInLine) => void;
}

/** What an upstream sees of a call that waits. */
export interface CallInLine {
  readonly access: Access;
  readonly start: (connection: UpstreamConnection) => void;
}

/** Why a call of ours ended early; undici wants an error for it. Made once: its stack would say nothing. */
const brokenOff = new Error('broken off');

/**
 * One request on its way through one connection, and the only place that keeps its time: in line, from the end of the
 * request to the response head, and between the bytes of the answer.
 */
export class Call implements Dispatcher.DispatchHandler, CallInLine {
  readonly access: Access;
  private readonly request: UpstreamRequest;
  private readonly sink: AnswerSink;
  private readonly host: CallHost;
  private connection: UpstreamConnection | null = null;
  /** Breaks off what was written; `null` before the first byte. */
  private abort: ((error?: Error) => void) | null = null;
  private unpause: (() => void) | null = null;
  private timer: NodeJS.Timeout | null = null;
  /** Whether the sink was told the end, or said that it does not want to hear. */
  private isOver = false;
  private hasHead = false;
  private isSent = false;

  constructor(request: UpstreamRequest, sink: AnswerSink, host: CallHost) {
    this.access = request.access;
    this.request = request;
    this.sink = sink;
    this.host = host;
  }

  /** Stands in line, no longer than the limit. */
  wait(limitMs: number): void {
    this.timer = setTimeout(() => {
      this.host.leaveLine(this);
      this.fail(denial('overloaded'));
    }, limitMs);
  }

  start(connection: UpstreamConnection): void {
    this.stopTimer();
    this.connection = connection;
    const { method, target, fields, body, upgrade = null } = this.request;
    connection.dispatch({ method, path: target, headers: fields, body, upgrade }, this);
  }

  resume(): void {
    if (this.isOver) return;
    this.startIdleTimer();
    this.unpause?.();
  }

  cancel(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.stopTimer();
    if (this.connection === null) this.host.leaveLine(this);
    else this.abort?.(brokenOff);
  }

  mayBeSent(): boolean {
    return this.abort !== null;
  }

  onConnect(abort: (error?: Error) => void): void {
    if (this.isOver) {
      abort(brokenOff);
      return;
    }
    const refused = this.request.lateRefusal?.() ?? null;
    if (refused !== null) {
      this.fail(refused);
      abort(brokenOff);
      return;
    }
    this.abort = abort;
    this.connection?.expectAnswer();
  }

  /** A receiver that answers while it still takes the body is not idle. */
  onBodySent(): void {
    if (this.hasHead && !this.isOver) this.timer?.refresh();
  }

  /** Called by undici when the last byte of the request was written, though its types do not say so. */
  onRequestSent(): void {
    this.isSent = true;
    if (this.isOver || this.hasHead) return;
    this.timer = setTimeout(() => {
      this.breakOff(denial('upstream_timeout'));
    }, this.request.responseTimeoutMs);
  }

  onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200 || this.isOver) return true;
    this.hasHead = true;
    this.unpause = resume;
    this.startIdleTimer();
    const fields = rawHeaders.map(latin1);
    if (hasReadableBody(fields)) this.sink.onHead(status, fields);
    else this.breakOff(denial('upstream_failed'));
    return true;
  }

  onUpgrade(_status: number, rawHeaders: Buffer[] | string[] | null, socket: Duplex): void {
    const isNews = this.end();
    // Not now: undici still has its hands on the connection that it gives up.
    queueMicrotask(() => {
      this.release(false);
    });
    if (isNews && this.sink.onUpgrade !== undefined) this.sink.onUpgrade((rawHeaders ?? []).map(latin1), socket);
    else socket.destroy();
  }

  onData(chunk: Buffer): boolean {
    if (this.isOver) return true;
    if (this.sink.onBody(chunk)) {
      this.timer?.refresh();
      return true;
    }
    this.stopTimer();
    return false;
  }

  onComplete(): void {
    const isWhole = this.connection?.isBroken() === false;
    if (this.end()) {
      if (isWhole) this.sink.onEnd();
      else this.sink.onFailure(denial('upstream_failed'));
    }
    // An answer that came before the end of the request leaves a connection on which nobody knows what comes next.
    this.release(this.isSent && isWhole);
  }

  onError(error: unknown): void {
    const isNews = this.end();
    if (isNews) this.sink.onFailure(this.abort === null ? connectFailure(error) : answerFailure(error));
    this.release(false);
  }

  /** Ends it for a reason of ours, before or after its head. */
  private breakOff(reason: Denial): void {
    this.fail(reason);
    this.abort?.(brokenOff);
  }

  private fail(reason: Denial): void {
    if (this.end()) this.sink.onFailure(reason);
  }

  /** Whether this is the first end. */
  private end(): boolean {
    this.stopTimer();
    if (this.isOver) return false;
    this.isOver = true;
    return true;
  }

  private release(sound: boolean): void {
    const { connection } = this;
    this.connection = null;
    if (connection !== null) this.host.release(connection, this.access, sound);
  }

  private startIdleTimer(): void {
    this.stopTimer();
    this.timer = setTimeout(() => {
      this.breakOff(denial('upstream_timeout'));
    }, this.host.idleTimeoutMs);
  }

  private stopTimer(): void {
    if (this.timer === null) return;
    clearTimeout(this.timer);
    this.timer = null;
  }
}

function latin1(bytes: Buffer | string): string {
  return bytes.toString('latin1');
}
