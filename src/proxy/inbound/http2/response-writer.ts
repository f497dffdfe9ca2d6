import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Denial } from '../../../decision/denial.js';
import { http2Headers } from '../../../decision/http2/node-headers.js';
import { grpcRefusalOf } from '../../../decision/grpc/refusal.js';
import { grpcStatusIn } from '../../../decision/grpc/status.js';
import { valuesOf } from '../../../decision/http/header-values.js';
import { problemOf } from '../../../decision/http/problem-details.js';
import { hasSentEnd, resetStream } from '../../node-internals/http2-stream.js';
import type { UpgradedSocket } from '../../websocket/upgrade-request.js';
import { bodyless } from '../../upstream/http1/response-head.js';
import { GatheredWrites, smallWriteBytes } from '../gathered-writes.js';
import type { ResponseWriter, ResponseWriterHost } from '../received-request.js';
import { refusalFlushMs } from '../response-writer.js';
import type { Http2Request } from './request.js';

const { NGHTTP2_NO_ERROR, NGHTTP2_INTERNAL_ERROR } = constants;

/**
 * How long the rest of a request may come after its response was given, milliseconds; then the stream is reset with
 * NO_ERROR (RFC 9113 §8.1). Not sooner: curl before 8.0 takes that reset for a failure, and drops a response that was
 * whole.
 */
const lastBytesMs = 1_000;

/**
 * So much of a whole response is written at a time, and the caller has its time anew for each: Node does not tell how
 * much of a write was taken.
 */
const pieceBytes = 64 * 1024;

/** Writes a response of HTTP/2: the upstream's response as it comes, or a refusal. */
export class Http2ResponseWriter implements ResponseWriter {
  private readonly request: Http2Request;
  private readonly stream: ServerHttp2Stream;
  private readonly host: ResponseWriterHost;
  /** All of a response was given. Node ends streams that are reset, so that `writableEnded` does not say it. */
  private isWritten = false;
  private sentStatus = 0;
  private sentGrpcStatus: number | null = null;
  private takesTrailers = false;
  /** Since when only the rest of the request is missing; monotonic milliseconds. */
  private lastBytesSinceMs: number | null = null;
  private trailers: readonly string[] | null = null;
  private flushMs = refusalFlushMs;
  private listensForDrain = false;
  private gatheredWrites: GatheredWrites | null = null;
  /** What is still to be written of a whole response. */
  private rest: Buffer | null = null;

  constructor(request: Http2Request, host: ResponseWriterHost) {
    this.request = request;
    this.stream = request.stream;
    this.host = host;
  }

  isReceived(): boolean {
    return this.request.isComplete();
  }

  status(): number {
    return this.sentStatus;
  }

  grpcStatus(): number | null {
    return this.sentGrpcStatus;
  }

  /** Node closes a stream before it says that all was written. A reset and a lost connection are told by the code. */
  isDelivered(): boolean {
    return (
      this.isWritten &&
      this.rest === null &&
      this.stream.rstCode === NGHTTP2_NO_ERROR &&
      this.request.abortedMs === null
    );
  }

  refuse(reason: Denial, requestId: string): void {
    const { stream } = this;
    if (stream.destroyed || stream.closed || stream.headersSent) return;
    this.flushMs = refusalFlushMs;
    this.markWritten();
    if (this.request.isGrpc()) {
      const { status, headers } = grpcRefusalOf(reason, requestId, () => this.host.challenges());
      this.sentGrpcStatus = grpcStatusIn(headers);
      this.respond(status, headers, true);
    } else {
      const { status, headers, body } = problemOf(reason, requestId, () => this.host.challenges());
      this.respond(status, [...headers, 'content-length', String(Buffer.byteLength(body))], false);
      stream.end(this.isHead() ? undefined : body);
    }
    if (reason.endsConnection === true) this.request.connection.announceEnd();
    this.endRequest();
  }

  begin(status: number, headers: string[]): boolean {
    const { stream } = this;
    if (stream.destroyed || stream.closed) return true;
    this.flushMs = this.host.writeTimeoutMs();
    const isGrpc = this.request.isGrpc();
    // A gRPC call that ends with its head has to be seen to (Trailers-Only).
    const isWhole = this.isHead() || bodyless.has(status) || (isGrpc && valuesOf(headers, 'grpc-status').length > 0);
    if (isGrpc && isWhole) this.sentGrpcStatus = grpcStatusIn(headers);
    this.takesTrailers = !isWhole && (isGrpc || this.request.takesTrailers());
    this.respond(status, headers, isWhole);
    if (isWhole) this.endRequest();
    return isWhole;
  }

  write(chunk: Buffer): boolean {
    const { stream } = this;
    if (stream.destroyed || stream.writableEnded) return true;
    this.request.connection.onWritten(chunk.length);
    let flows: boolean;
    if (this.gatheredWrites === null && (chunk.length >= smallWriteBytes || stream.writableLength === 0)) {
      flows = stream.write(chunk);
    } else {
      this.gatheredWrites ??= new GatheredWrites({
        isBlocked: () => stream.writableLength > 0,
        write: (bytes, onTaken) => stream.destroyed || stream.writableEnded || stream.write(bytes, onTaken),
      });
      flows = this.gatheredWrites.write(chunk);
    }
    if (!flows) this.waitForCaller();
    return flows;
  }

  end(trailers: readonly string[] | null): void {
    const { stream } = this;
    if (stream.destroyed || stream.writableEnded || this.isWritten) return;
    this.markWritten();
    this.trailers = trailers;
    if (trailers !== null && this.takesTrailers && this.request.isGrpc()) this.sentGrpcStatus = grpcStatusIn(trailers);
    this.gatheredWrites?.flush();
    if (this.rest === null) stream.end();
    this.endRequest();
  }

  sendWhole(status: number, headers: string[], body: Buffer): void {
    const hasLength = headers.some((text, i) => i % 2 === 0 && text.toLowerCase() === 'content-length');
    if (!hasLength && !this.isHead() && !bodyless.has(status)) headers.push('content-length', String(body.length));
    if (this.begin(status, headers) || body.length === 0) return;
    this.rest = body;
    this.writePiece();
  }

  /** The one before was taken. */
  private readonly writePiece = (): void => {
    const { stream, rest } = this;
    if (rest === null || stream.destroyed || stream.writableEnded) return;
    if (rest.length > pieceBytes) {
      this.rest = rest.subarray(pieceBytes);
      this.request.connection.onWritten(pieceBytes);
      this.awaitFlush();
      stream.write(rest.subarray(0, pieceBytes), this.writePiece);
      return;
    }
    this.rest = null;
    this.write(rest);
    if (!this.isWritten) return;
    this.markWritten();
    stream.end();
  };

  abort(): void {
    this.request.abortedMs ??= this.request.connection.now();
    resetStream(this.stream, NGHTTP2_INTERNAL_ERROR);
  }

  /** A gRPC call has its status behind the messages, whatever came of them. */
  breakOff(reason: Denial, requestId: string): void {
    const { stream } = this;
    if (stream.destroyed || this.isWritten || !this.takesTrailers || !this.request.isGrpc()) {
      this.abort();
      return;
    }
    this.flushMs = refusalFlushMs;
    const { headers } = grpcRefusalOf(reason, requestId);
    this.end(headers.filter((_text, i) => (headers[i - (i % 2)] ?? '').startsWith('grpc-')));
  }

  /** What a stream of HTTP/2 carries stays HTTP/2: no protocol was offered that it could be switched to. */
  switchProtocols(): UpgradedSocket | null {
    return null;
  }

  endUpgraded(): void {
    this.abort();
  }

  onDrain(): void {
    if (!this.listensForDrain) return;
    this.request.stalledSinceMs = null;
    this.host.onWritable();
  }

  /** Ends it where the caller has not taken for too long what was written; `nowMs` is of the monotonic clock. */
  expire(nowMs: number): void {
    const { stream, request, flushMs, lastBytesSinceMs } = this;
    if (stream.destroyed) return;
    if (isSent(stream)) {
      request.stalledSinceMs = null;
      if (lastBytesSinceMs !== null && nowMs - lastBytesSinceMs >= lastBytesMs) this.wantNoMore();
      return;
    }
    // The rest of the request has its time behind the response.
    if (lastBytesSinceMs !== null) this.lastBytesSinceMs = nowMs;
    const { stalledSinceMs } = request;
    if (stalledSinceMs !== null && nowMs - stalledSinceMs >= flushMs) this.giveUp();
  }

  /** What was written is not taken as soon as it has to; it may have been by now. */
  endUntaken(): void {
    const { stream } = this;
    if (stream.destroyed || stream.closed) return;
    if (isSent(stream)) this.wantNoMore();
    else this.giveUp();
  }

  /** The rest of the request (RFC 9113 §8.1). */
  private wantNoMore(): void {
    this.stream.close(NGHTTP2_NO_ERROR);
  }

  private giveUp(): void {
    this.request.isUntaken = true;
    this.host.onWriteTimeout();
  }

  /** The response is given. What still comes of the request is read and dropped, and has `lastBytesMs` to come. */
  private endRequest(): void {
    if (this.isReceived()) {
      // Nobody reads it, and Node closes a stream once its end was read.
      if (this.stream.readableFlowing === null) this.stream.resume();
      return;
    }
    this.lastBytesSinceMs = this.request.connection.now();
    // Read and forgotten. Node resets a stream at once of which nobody has read anything.
    this.stream.resume();
  }

  private isHead(): boolean {
    return this.request.head.method === 'HEAD';
  }

  private respond(status: number, headers: readonly string[], endStream: boolean): void {
    const head: OutgoingHttpHeaders = http2Headers(headers);
    head[':status'] = status;
    this.sentStatus = status;
    if (endStream) this.markWritten();
    const { takesTrailers } = this;
    if (takesTrailers) this.stream.on('wantTrailers', this.sendTrailers);
    // Both are given, so that Node adds none: see `openStream`.
    this.stream.respond(head, { endStream: endStream && !takesTrailers, waitForTrailers: takesTrailers });
  }

  private readonly sendTrailers = (): void => {
    if (!this.stream.destroyed) this.stream.sendTrailers(http2Headers(this.trailers ?? []));
  };

  private waitForCaller(): void {
    this.request.stalledSinceMs ??= this.request.connection.now();
    if (this.listensForDrain) return;
    this.listensForDrain = true;
    this.stream.on('drain', () => this.onDrain());
  }

  /** Of a whole response the rest may be left to be written. */
  private markWritten(): void {
    this.isWritten = true;
    if (this.rest === null) this.request.writtenMs ??= this.request.connection.now();
    this.awaitFlush();
  }

  private awaitFlush(): void {
    this.request.stalledSinceMs = this.request.connection.now();
  }
}

/** Whether all of a response was taken by the system, its end with it. */
function isSent(stream: ServerHttp2Stream): boolean {
  return stream.writableFinished && hasSentEnd(stream);
}
