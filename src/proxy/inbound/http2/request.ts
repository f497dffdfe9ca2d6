import { constants, type ServerHttp2Stream } from 'node:http2';
import type { Readable } from 'node:stream';
import { isGrpc } from '../../../decision/grpc/content-type.js';
import { headerValue, type RequestHead } from '../../../decision/http/request-head.js';
import type { FairQueue, Waiting } from '../../../decision/limits/fair-queue.js';
import type { ClientNetworks } from '../../../lib/ip-ranges.js';
import { resetStream } from '../../node-internals/http2-stream.js';
import type { BodySource, ReceivedRequest, ResponseWriter, ResponseWriterHost } from '../received-request.js';
import type { Http2ClientConnection } from './connection.js';
import { Http2ResponseWriter } from './response-writer.js';

/** Their requests have no body, as a rule (RFC 9110 §9.3.1, §9.3.2). */
const bodylessMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** How long the end of a request may take that probably has no body; milliseconds. */
const emptyBodyMs = 5_000;

/** A request of HTTP/2: one stream of its connection. */
export class Http2Request implements ReceivedRequest, BodySource, Waiting {
  readonly head: RequestHead;
  readonly connection: Http2ClientConnection;
  readonly upgrade = null;
  readonly brokenBy = 'caller_gone';
  readonly stream: ServerHttp2Stream & Readable;
  readonly networks: ClientNetworks;
  /** When its response began to wait for the caller to take it; monotonic milliseconds, `null` while it does not. */
  stalledSinceMs: number | null = null;
  writer: Http2ResponseWriter | null = null;
  /** When the last of its response was written; monotonic milliseconds, `null` before. */
  writtenMs: number | null = null;
  /** Whether it has a place among the streams of all connections. */
  hasPlace = false;
  /** Whether it lost its place among the open heads, and was refused unseen. */
  isOusted = false;
  /** Whether its response was broken off since the caller did not take it. */
  isUntaken = false;
  /** When it was us who broke it off; monotonic milliseconds, `null` where we did not. */
  abortedMs: number | null = null;
  private hasEnded: boolean;
  /** Set while nobody knows whether a body follows. */
  private wait: { readonly sinceMs: number; readonly onKnown: () => void } | null = null;
  private readonly openHeads: FairQueue<Http2Request>;
  private bytesOfBody = 0;
  private rawTrailers: readonly string[] = [];

  /** @param openHeads those of all connections of which nobody knows yet whether a body follows. */
  constructor(
    stream: ServerHttp2Stream,
    head: RequestHead,
    connection: Http2ClientConnection,
    openHeads: FairQueue<Http2Request>,
  ) {
    this.stream = stream;
    this.head = head;
    this.connection = connection;
    this.networks = connection.networks;
    this.openHeads = openHeads;
    this.hasEnded = head.endsStream === true;
    // Node tells the end of an empty body before somebody reads.
    if (!this.hasEnded) stream.on('end', this.onEnd);
  }

  /**
   * Calls `onKnown` when it is known whether a body follows; at once where the head says so. The head of a GET may
   * leave the stream open although no body follows, as Apache's does: an empty frame then ends it (RFC 9113 §8.1).
   */
  awaitBody(onKnown: () => void): void {
    if (!this.isUndecided()) {
      onKnown();
      return;
    }
    this.wait = { sinceMs: this.connection.now(), onKnown };
    this.stream.once('readable', this.onFirst);
  }

  /**
   * Takes a place among the open heads, where it needs one; `false` where there is none. One of the network that has
   * most of them may lose its own for that, and is refused unseen.
   */
  takePlace(): boolean {
    if (!this.isUndecided()) return true;
    const { entered, ousted } = this.openHeads.enter(this);
    // Not in the midst of reading its connection.
    if (ousted !== null) setImmediate(() => ousted.refuse());
    return entered;
  }

  isGone(): boolean {
    return this.stream.destroyed;
  }

  /** Whether its head leaves open that a body follows. */
  private isUndecided(): boolean {
    const { head, hasEnded } = this;
    if (hasEnded || !bodylessMethods.has(head.method)) return false;
    return (headerValue(head, 'content-length') ?? headerValue(head, 'expect') ?? '0') === '0';
  }

  /** Its stream has ended. */
  onClosed(): void {
    this.stopWaiting();
  }

  /** It could not be served. */
  leave(): void {
    this.openHeads.leave(this);
  }

  /** It was not looked at, and may be sent again (RFC 9113 §8.7). */
  private refuse(): void {
    if (this.stopWaiting() === null) return;
    this.isOusted = true;
    resetStream(this.stream, constants.NGHTTP2_REFUSED_STREAM);
  }

  /** Ends what has taken too long; `nowMs` is of the monotonic clock. */
  expire(nowMs: number): void {
    if (this.wait !== null && nowMs - this.wait.sinceMs >= emptyBodyMs) this.endWait();
    this.writer?.expire(nowMs);
  }

  begin(onOver: () => void): boolean {
    const { stream } = this;
    if (stream.destroyed) return false;
    stream.on('close', onOver);
    // Node ends a stream only once somebody has read its end.
    if (this.hasEnded) stream.resume();
    return true;
  }

  createWriter(host: ResponseWriterHost): ResponseWriter {
    this.writer = new Http2ResponseWriter(this, host);
    return this.writer;
  }

  body(): BodySource {
    this.stream.on('trailers', (_fields, _flags, rawTrailers?: readonly string[]) => {
      this.rawTrailers = rawTrailers ?? [];
    });
    return this;
  }

  /** A stream that was reset ends as well, but not on the side that sent it. */
  isComplete(): boolean {
    return this.hasEnded || (!this.stream.readableEnded && this.hasArrived());
  }

  /** Whether it is a gRPC call. */
  isGrpc(): boolean {
    return isGrpc(headerValue(this.head, 'content-type'));
  }

  /** Whether the caller wants to have trailers of the response (RFC 9110 §10.1.4). */
  takesTrailers(): boolean {
    return headerValue(this.head, 'te') === 'trailers';
  }

  trailers(): readonly string[] {
    return this.rawTrailers;
  }

  /** Since when nothing but its caller keeps it, who has yet to take what was written; `null` before all was. */
  untakenSinceMs(): number | null {
    const { writtenMs, stalledSinceMs } = this;
    return writtenMs === null ? null : Math.max(writtenMs, stalledSinceMs ?? writtenMs);
  }

  onRead(bytes: number): void {
    this.bytesOfBody += bytes;
  }

  /** Bytes of its body that came, read or not. */
  bodyBytes(): number {
    return this.bytesOfBody + this.stream.readableLength;
  }

  /**
   * Whether the caller ended the stream before it was answered, by a reset or by a mistake, or did not take its
   * response. The first may be so with NO_ERROR as well: Node ends our side of a stream that is reset, so that the
   * stream itself does not tell whether it was answered.
   */
  wasTakenBack(): boolean {
    if (this.abortedMs !== null) return this.isUntaken;
    return this.writer?.isDelivered() !== true;
  }

  /**
   * The caller reset it. With NO_ERROR Node closes the stream, but ends it only once what came before was read, for
   * which a body that is held back for the upstream waits.
   */
  endTakenBack(): void {
    if (this.abortedMs === null && this.stream.rstCode === constants.NGHTTP2_NO_ERROR) this.stream.destroy();
  }

  sendContinue(): void {
    const { destroyed, closed, headersSent } = this.stream;
    if (!destroyed && !closed && !headersSent) this.stream.additionalHeaders({ ':status': 100 });
  }

  /** Its first bytes came, or its end. */
  private readonly onFirst = (): void => {
    const { stream } = this;
    if (stream.closed || stream.destroyed) {
      // It was taken back. Node closes it once somebody has read its end.
      stream.resume();
      return;
    }
    if (stream.readableLength === 0) {
      const head: { endsStream?: boolean } = this.head;
      head.endsStream = true;
      this.hasEnded = true;
    }
    this.endWait();
  };

  private endWait(): void {
    this.stopWaiting()?.onKnown();
  }

  private stopWaiting(): typeof this.wait {
    const { wait } = this;
    if (wait === null) return null;
    this.wait = null;
    this.stream.off('readable', this.onFirst);
    this.openHeads.leave(this);
    return wait;
  }

  /** Its end may be told before nghttp2 took note of it; a reset, whatever its code, has closed the stream by then. */
  private readonly onEnd = (): void => {
    this.hasEnded ||= this.hasArrived() || !this.stream.closed;
  };

  private hasArrived(): boolean {
    const { stream } = this;
    // One that was reset is closed on both sides.
    this.hasEnded ||= !stream.destroyed && !stream.closed && stream.state.remoteClose === 1;
    return this.hasEnded;
  }
}
