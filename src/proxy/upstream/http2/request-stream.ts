import type { Readable } from 'node:stream';
import { constants, type ClientHttp2Stream, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import { contentLengthOf } from '../../../decision/http/framing.js';
import { ByteBuffer } from '../../inbound/byte-buffer.js';
import { hasSentEnd, readOn, readPast, resetStream, type StreamReader } from '../../node-internals/http2-stream.js';
import type { CallConnection, ConnectionRequest, RequestEvents } from '../call.js';
import { BrokenResponse, HeadTooLong, MalformedRequest, NotProcessed } from '../errors.js';
import { Deadline } from '../http1/deadline.js';
import { bodyless } from '../http1/response-head.js';
import { statedLength } from '../http1/serialize-request.js';
import { maxHeadBytes, type Http2Connection } from './connection.js';
import { isHeadTooLong, requestHead } from './request-head.js';
import { pieceBytes, PieceWriter, StreamBodyWriter } from './body-writer.js';

/** Interim responses before the final one: an upstream that sends more never comes to it. */
const maxInterim = 1_000;

/**
 * Smaller pieces of a body are counted as tiny, bytes: how many there are tells a flood from a body that comes slowly.
 */
const tinyBytes = 64;

/** A colon and a space, or a line end: a section is as large as it would be in HTTP/1.1. */
const bytesBesideText = 2;

const streamOf = Symbol('stream');

/** The stream of a request, as its listeners see it. */
interface OwnedStream extends ClientHttp2Stream {
  [streamOf]: RequestStream;
}

/**
 * One request on its way through an HTTP/2 connection, which carries others at the same time. It counts as a stream of
 * that connection from when it was made until the pool gives it back.
 */
export class RequestStream implements CallConnection, StreamReader {
  readonly connection: Http2Connection;
  private readonly deadline = new Deadline(() => this.events?.onTimeout());
  private request: ConnectionRequest | null = null;
  /** Who hears of the request; `null` before it, and when it has ended. */
  private events: RequestEvents | null = null;
  private stream: ClientHttp2Stream | null = null;
  private upload: StreamBodyWriter | PieceWriter | null = null;
  /** Whether the last of the request was handed to the stream. */
  private isSent = false;
  private hasHead = false;
  /** Bytes that the response has by its head; `null` where that does not say. */
  private expectedBytes: number | null = null;
  private bytes = 0;
  /** What came before the head was told, or while the sink takes no more. */
  private held: ByteBuffer | null = null;
  private isPaused = false;
  /** Whether the upstream ended the message. */
  private hasEnd = false;
  private trailers: readonly string[] | null = null;
  private interim = 0;
  /** Whether the upstream said that it takes nothing of this stream (RFC 9113 §6.8). */
  private isBeyondLast = false;

  constructor(connection: Http2Connection) {
    this.connection = connection;
  }

  send(request: ConnectionRequest, events: RequestEvents): void {
    this.request = request;
    this.events = events;
    if (this.connection.isOpen()) this.open();
    else this.connection.await(this);
  }

  setLimit(limitMs: number): void {
    if (this.events !== null) this.deadline.set(limitMs);
  }

  clearLimit(): void {
    this.deadline.clear();
  }

  resume(): void {
    if (!this.isPaused || this.events === null) return;
    this.isPaused = false;
    if (!this.handOn() || this.stream === null) return;
    if (this.hasEnd) this.finish();
    else readOn(this.stream);
  }

  abort(error: Error): void {
    const { events } = this;
    if (events === null) return;
    this.end();
    this.reset();
    setImmediate(() => events.onError(error));
  }

  /** Called when the connection is open. */
  open(): void {
    const { request, events, connection } = this;
    if (request === null || events === null) return;
    const { body } = request;
    const length = body === null ? 0 : Buffer.isBuffer(body) ? body.length : statedLength(request.headers);
    const head = request.upgrade === undefined ? requestHead(request, length, connection.headRules) : null;
    if (head === null || isHeadTooLong(request)) {
      this.fail(head === null ? new MalformedRequest() : new HeadTooLong());
      return;
    }
    events.onConnect();
    if (this.events !== events) return;
    const hasNoBody = body === null || (Buffer.isBuffer(body) && body.length === 0);
    const waitForTrailers = body !== null && 'trailers' in body;
    const stream = connection.request(head, { endStream: hasNoBody, waitForTrailers });
    if (stream === null) {
      this.displace();
      return;
    }
    this.stream = stream;
    (stream as OwnedStream)[streamOf] = this;
    stream.on('response', onResponse).on('headers', onInterim).on('trailers', onTrailers).on('error', ignore);
    readPast(stream, this);
    if (hasNoBody) this.onSent();
    else if (!Buffer.isBuffer(body)) this.startUpload(stream, body, length);
    else if (body.length > pieceBytes) this.sendPieces(stream, body);
    else {
      stream.end(body);
      this.onSent();
    }
  }

  /** The connection will not be open. */
  failUnopened(error: Error): void {
    this.fail(error);
  }

  /** There is no room for it on the connection after all. */
  displace(): void {
    const { events } = this;
    this.end();
    events?.onUnprocessed(null, true);
  }

  /** Streams after this one were not processed, and will not be. */
  onLastStream(lastId: number): void {
    const id = this.stream?.id;
    if (id !== undefined && id > lastId) this.isBeyondLast = true;
  }

  onResponse(status: number, rawHeaders: string[], contentLength: string | undefined): void {
    const { events } = this;
    if (events === null) return;
    const length = contentLength === undefined ? null : contentLengthOf(contentLength);
    // nghttp2 counts further than we do.
    const isUncounted = contentLength !== undefined && length === null;
    if (this.hasHead || status < 200 || isUncounted || isTooLarge(rawHeaders)) {
      this.breakOff('the upstream sent what is no response');
      return;
    }
    const hasNoBody = this.request?.method === 'HEAD' || bodyless.has(status);
    this.expectedBytes = hasNoBody ? 0 : length;
    // Names of pseudo-headers come first, and a response has one of them (RFC 9113 §8.3.2).
    events.onHead(status, rawHeaders.slice(2));
    this.hasHead = true;
    this.handOn();
  }

  onInterim(): void {
    this.interim += 1;
    if (this.interim > maxInterim) this.connection.giveUpFlood();
  }

  onTrailers(rawHeaders: readonly string[]): void {
    if (isTooLarge(rawHeaders)) this.breakOff('the trailers are too large');
    else this.trailers = rawHeaders;
  }

  onPiece(bytes: Buffer): boolean {
    if (this.events === null) return true;
    if (bytes.length < tinyBytes) this.connection.countTinyPiece();
    this.bytes += bytes.length;
    if (!this.hasHead || this.isPaused) {
      (this.held ??= new ByteBuffer()).append(bytes);
      return !this.isPaused;
    }
    return this.take(bytes);
  }

  onEndStream(): void {
    if (this.hasEnd) return;
    this.hasEnd = true;
    // Head and trailers that came before are told behind this.
    process.nextTick(finish, this);
  }

  onClosed(): void {
    if (this.events !== null && !this.hasEnd) process.nextTick(breakClosed, this);
  }

  /** The response has ended, and what was told of it is all. */
  finish(): void {
    const { events } = this;
    if (events === null || this.isPaused) return;
    if (!this.hasHead || (this.expectedBytes !== null && this.bytes !== this.expectedBytes)) {
      this.breakOff('the response is not as long as its head says');
      return;
    }
    const { stream, trailers, isSent } = this;
    const hasEnded = (): boolean => stream === null || hasSentEnd(stream);
    this.end();
    // As long as the stream is open, it has its place on the connection.
    const complete = (): void => {
      // The upstream wants no more of the request than it got (RFC 9113 §8.1).
      if (!hasEnded()) this.reset();
      events.onComplete(true, trailers);
    };
    // What came with the end of the response may let the last of the request out: the body behind the reading, and what
    // follows it, such as trailers, a turn later.
    if (isSent && !hasEnded()) setImmediate(() => setImmediate(complete));
    else complete();
  }

  /** The stream is closed, and the response has not ended. */
  breakClosed(): void {
    const { stream, events, connection } = this;
    if (stream === null || events === null || this.hasEnd) return;
    const isRefused = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && !connection.wasGivenUpByPeer();
    const isUnprocessed = !this.hasHead && (this.isBeyondLast || isRefused || stream.pending);
    const mayRepeat = !(this.upload instanceof StreamBodyWriter) || this.upload.isUntouched();
    this.end();
    stream.destroy();
    if (isUnprocessed) events.onUnprocessed(new NotProcessed(), mayRepeat);
    else events.onError(new BrokenResponse('the upstream broke the response off'));
  }

  private startUpload(stream: ClientHttp2Stream, body: Readable, length: number | null): void {
    this.upload = new StreamBodyWriter(stream, body, {
      length,
      onProgress: (takesMore) => this.events?.onBodySent(takesMore),
      onEnd: () => this.onSent(),
      onBroken: () => this.abort(new BrokenResponse('the body of the request broke off')),
    });
    this.upload.start();
  }

  private sendPieces(stream: ClientHttp2Stream, body: Buffer): void {
    this.upload = new PieceWriter(stream, body, () => (this.isSent = true));
    this.upload.start();
    // It is all here: the time for the response begins, as with a body in one piece.
    this.events?.onRequestSent();
  }

  private onSent(): void {
    this.isSent = true;
    this.events?.onRequestSent();
  }

  /** Hands on what is held. `false` where the sink takes no more. */
  private handOn(): boolean {
    const { held } = this;
    if (held === null || held.length === 0) return true;
    return this.take(held.take());
  }

  private take(bytes: Buffer): boolean {
    if (this.events?.onData(bytes) === false) this.isPaused = true;
    return !this.isPaused;
  }

  private breakOff(reason: string): void {
    this.abort(new BrokenResponse(reason));
  }

  private fail(error: Error): void {
    const { events } = this;
    this.end();
    events?.onError(error);
  }

  /** Says to the upstream that nobody wants the rest. */
  private reset(): void {
    const { stream } = this;
    if (stream === null) {
      this.connection.leave(this);
      return;
    }
    if (stream.closed) return;
    this.connection.countReset();
    resetStream(stream, constants.NGHTTP2_CANCEL);
  }

  private end(): void {
    if (this.stream !== null && !this.hasEnd) this.connection.outlive(this.stream);
    this.events = null;
    this.held = null;
    this.deadline.end();
    this.upload?.stop();
  }
}

/** Node holds the upstream to that limit too, but not before the upstream has confirmed to know it. */
function isTooLarge(rawHeaders: readonly string[]): boolean {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length + bytesBesideText;
  return bytes > maxHeadBytes;
}

function onResponse(
  this: ClientHttp2Stream,
  headers: IncomingHttpHeaders & IncomingHttpStatusHeader,
  ...[, rawHeaders]: readonly unknown[]
): void {
  const { ':status': status = 0, 'content-length': contentLength } = headers;
  (this as OwnedStream)[streamOf].onResponse(status, rawHeaders as string[], contentLength);
}

function onInterim(this: ClientHttp2Stream): void {
  (this as OwnedStream)[streamOf].onInterim();
}

function onTrailers(this: ClientHttp2Stream, ...[, , rawHeaders]: readonly unknown[]): void {
  (this as OwnedStream)[streamOf].onTrailers(rawHeaders as string[]);
}

function finish(stream: RequestStream): void {
  stream.finish();
}

function breakClosed(stream: RequestStream): void {
  stream.breakClosed();
}

function ignore(): void {
  // Told by `onClosed`.
}
