import {
  constants,
  performServerHandshake,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';
import { readHttp2Head } from '../../../decision/http2/request-head.js';
import { headerBytes } from '../../../decision/http/request-head.js';
import { hasTooManyHeaders, maxHeaders } from '../../../decision/http/request-headers.js';
import type { FairQueue } from '../../../decision/limits/fair-queue.js';
import { TokenBucket } from '../../../decision/limits/token-bucket.js';
import type { IdleConnection } from '../../../decision/limits/idle-connections.js';
import { clientNetworks, type ClientNetworks } from '../../../lib/ip-ranges.js';
import type { Clock } from '../../../ports/system.js';
import type { Peer } from '../../auth/authorize-request.js';
import { lingerMs, type PipelinedRequest } from '../client-connection.js';
import {
  endAfterReading,
  isDestroyed,
  NativeSession,
  resetStream,
  sessionMemoryMb,
} from '../../node-internals/http2-stream.js';
import { startReading, stopReading } from '../../node-internals/socket.js';
import type { ReceivedRequest, RequestConnection } from '../received-request.js';
import type { ReadTurns, TurnTaker } from './read-turns.js';
import { Http2Request } from './request.js';
import type { HeldPlaces, StreamHolder, StreamPlaces } from './stream-places.js';

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = constants;

/** Bytes of one body that may come before somebody reads them (RFC 9113 §6.9.2). */
const streamWindowBytes = 65_535;

/** The same for all bodies of a connection together, of which each has a window of its own. */
const connectionWindowBytes = 1024 * 1024;

/** Headers that reach us: more than a request may have, so that one with too many is told so. */
const headerPairs = maxHeaders + 64;

/** What the size of a list of headers counts for each of them (RFC 9113 §6.5.2). */
const headerOverhead = 32;

/**
 * Streams that a caller took back, or had end by a mistake of its own, before we ended them: each costs a decision. So
 * many at once, so many more for each that was served, and each second. A head with too many headers counts as several.
 */
const resets = { most: 200, perSecond: 20, perServed: 1, forTooMany: 20 };

/**
 * PING and SETTINGS frames, which want a response. Callers that measure their bandwidth send some with each message.
 */
const controls = { most: 500, perSecond: 50, perServed: 4 };

/**
 * Bytes that came and are of no head or body: frames that say nothing, such as PRIORITY, WINDOW_UPDATE, empty and tiny
 * DATA, and heads that were never complete.
 */
const overhead = { most: 1024 * 1024, perSecond: 256 * 1024 };

/**
 * Useful bytes of a request beside those of its head and body. Only what comes beyond twice the useful bytes counts
 * towards `overhead`.
 */
const overheadOfRequest = 512;

/**
 * What the caller says of a response while it comes: WINDOW_UPDATE of the stream and of the connection, and PING to
 * measure its bandwidth, 43 bytes together. Some do so for each read of 4 KiB, others for each message.
 */
const overheadOfWrite = 32;
const bytesForOneOfOverhead = 64;

/**
 * What a stream may hold, megabytes. A kept response is written at once, and `max_stored_response` is 4 MiB at most;
 * pieces of one that is streamed, a body and a head take a few hundred KB.
 */
const streamMegabytes = 5;

/** A response head has 64 KiB at most, and each line counts as 12 bytes more: of a longer one Node says GOAWAY. */
const maxSentHeadBytes = 256 * 1024;

/** A stream's own error may come this often on one connection, by Node's count (`maxSessionInvalidFrames`). */
const maxInvalidFrames = 100;

/**
 * How long a caller may be silent before it is asked whether it is there, and as long for its response; milliseconds.
 * Where it has no requests under way, it need not respond. What nghttp2 has given up ends by it, too: on Node 20 it
 * says GOAWAY for some mistakes of a connection, such as DATA on a stream that was ended, and takes and sends nothing
 * from then on, not even the question, but the connection stays open.
 */
const silenceMs = 10_000;

/** The last stream that a GOAWAY names while new ones may still be on their way (RFC 9113 §6.8). */
const anyStream = 2 ** 31 - 1;

/** After that many requests a caller connects anew, so that new instances get their share. */
const maxRequests = 100_000;

export interface Http2ClientConnectionOptions {
  readonly peer: Peer;
  readonly maxStreams: number;
  readonly maxHeaderBytes: number;
  readonly keepAliveMs: number;
  readonly clock: Pick<Clock, 'monotonic'>;
  /** Makes of a request what serves it. */
  readonly serve: (request: ReceivedRequest) => PipelinedRequest;
  /** Those of all connections. */
  readonly streamPlaces: StreamPlaces;
  /** Requests of all connections of which nobody knows yet whether a body follows. */
  readonly openHeads: FairQueue<Http2Request>;
  /** Has it read beside those of others. */
  readonly readTurns: ReadTurns;
  /** A head came, with so many headers. */
  readonly onHeaders: (count: number) => void;
  /** It was ended for what its caller sent. */
  readonly onAbuse: () => void;
  readonly fail: (error: unknown) => void;
}

/**
 * A client connection of HTTP/2: many requests at a time, each judged on its own. What a caller may cost without
 * asking for anything is bounded by token buckets; who empties one is told to calm down (ENHANCE_YOUR_CALM), and the
 * connection ends.
 */
export class Http2ClientConnection implements RequestConnection, TurnTaker, StreamHolder {
  readonly peer: Peer;
  private readonly socket: Socket;
  private readonly session: ServerHttp2Session;
  private readonly native: NativeSession;
  private readonly options: Http2ClientConnectionOptions;
  readonly networks: ClientNetworks;
  private readonly served = new Map<PipelinedRequest, Http2Request>();
  private readonly resets: TokenBucket;
  private readonly controls: TokenBucket;
  private readonly overhead: TokenBucket;
  private requests = 0;
  private readonly places: HeldPlaces;
  private isGoingAway = false;
  private isClosing = false;
  private idleSinceMs: number;
  /** Bytes that the frames of heads and bodies account for. */
  private usefulBytes = 0;
  private readBytes = 0;
  private heardMs: number;
  /** Whether it was asked since it was heard last. */
  private isAsked = false;
  /** Bytes that had been written when it was asked. */
  private writtenBytes = 0;
  /** Since when nothing is left to do on it but to end; `null` before. */
  private endsSinceMs: number | null = null;

  constructor(socket: Socket, options: Http2ClientConnectionOptions) {
    const { clock, maxHeaderBytes, maxStreams } = options;
    const nowMs = clock.monotonic();
    this.socket = socket;
    this.options = options;
    this.peer = options.peer;
    this.networks = clientNetworks(options.peer.remoteAddress);
    this.idleSinceMs = nowMs;
    this.heardMs = nowMs;
    this.resets = new TokenBucket(resets.most, resets.perSecond, nowMs);
    this.controls = new TokenBucket(controls.most, controls.perSecond, nowMs);
    this.overhead = new TokenBucket(overhead.most, overhead.perSecond, nowMs);
    this.session = performServerHandshake(socket, {
      settings: {
        maxConcurrentStreams: maxStreams,
        initialWindowSize: streamWindowBytes,
        maxHeaderListSize: 2 * maxHeaderBytes + headerPairs * headerOverhead,
        enableConnectProtocol: false,
      },
      maxHeaderListPairs: headerPairs,
      maxSessionMemory: sessionMemoryMb(maxStreams, streamMegabytes),
      maxSessionInvalidFrames: maxInvalidFrames,
      maxSessionRejectedStreams: maxInvalidFrames,
      maxOutstandingPings: 2,
      maxSendHeaderBlockLength: maxSentHeadBytes,
    });
    endAfterReading(this.session);
    socket.on('end', this.onCallerEnd).once('close', () => {
      options.readTurns.delete(this);
      options.streamPlaces.delete(this.places);
    });
    options.readTurns.add(this);
    this.places = options.streamPlaces.add(this);
    this.native = new NativeSession(this.session);
    this.session.setLocalWindowSize(connectionWindowBytes);
    this.session
      .on('stream', this.onStream)
      .on('ping', this.onControl)
      .on('remoteSettings', this.onControl)
      // A reset, or what is no HTTP/2: Node has said so to the caller and ends it.
      .on('error', ignore)
      // Told before the streams that came with it.
      .on('goaway', () => setImmediate(() => this.leaveWhenIdle()));
  }

  now(): number {
    return this.options.clock.monotonic();
  }

  pauseReading(): void {
    stopReading(this.socket);
  }

  resumeReading(): void {
    startReading(this.socket);
  }

  isGone(): boolean {
    return this.socket.destroyed;
  }

  markAuthenticated(): void {
    this.options.streamPlaces.recognize(this.places);
  }

  hasAuthenticated(): boolean {
    return this.places.kind === 'known';
  }

  /** How many requests of it are being served. */
  streams(): number {
    return this.served.size;
  }

  /**
   * How little would be lost with it; `null` while requests are being served. One whose response was written is no
   * longer being served, also where its caller has not taken it: who takes nothing would hold the connection by it.
   */
  idleState(): IdleConnection | null {
    const { networks } = this;
    const hasAuthenticated = this.hasAuthenticated();
    let sinceMs: number | null = null;
    for (const request of this.served.values()) {
      const untakenMs = request.untakenSinceMs();
      if (untakenMs === null) return null;
      // Of a stranger the first counts, so that it does not stay young by asking again.
      const choose = hasAuthenticated ? Math.max : Math.min;
      sinceMs = choose(sinceMs ?? untakenMs, untakenMs);
    }
    return { networks, hasAuthenticated, sinceMs: sinceMs ?? this.idleSinceMs };
  }

  untaken(sinceMs: number): number {
    return this.untakenSince(sinceMs).length;
  }

  endUntaken(sinceMs: number): void {
    const untakenMs = (request: Http2Request): number => request.untakenSinceMs() ?? Infinity;
    const [first, ...others] = this.untakenSince(sinceMs);
    if (first === undefined) return;
    const oldest = others.reduce((one, other) => (untakenMs(other) < untakenMs(one) ? other : one), first);
    this.givePlace(oldest);
    // Not in the midst of reading its connection.
    setImmediate(() => oldest.writer?.endUntaken());
  }

  finish(exchange: PipelinedRequest, nowMs: number): void {
    const request = this.served.get(exchange);
    if (request === undefined) return;
    this.served.delete(exchange);
    this.givePlace(request);
    this.idleSinceMs = nowMs;
    this.usefulBytes += request.bodyBytes();
    // The rest of a body that nobody reads any more may be on its way: it is no overhead.
    if (!request.isComplete()) this.usefulBytes += streamWindowBytes;
    if (request.wasTakenBack()) {
      // Callers behind a front proxy share its connection: who takes nothing costs the others nothing.
      const isFree = request.isOusted || (request.isUntaken && this.hasAuthenticated());
      if (!isFree && !this.resets.take(1, nowMs)) this.calm();
    } else {
      this.resets.give(resets.perServed);
      this.controls.give(controls.perServed);
    }
    if (this.served.size === 0 && this.isGoingAway) this.leaveWhenIdle();
  }

  /**
   * A shutdown was announced, it has served enough, or its certificate is over: the caller is asked to open no more
   * streams.
   */
  announceEnd(): void {
    if (this.isGoingAway || isDestroyed(this.session)) return;
    this.isGoingAway = true;
    this.session.goaway(NGHTTP2_NO_ERROR, anyStream);
  }

  /** A shutdown has begun: bodies may take less time from now on. */
  drain(): void {
    this.announceEnd();
    for (const exchange of this.served.keys()) exchange.shortenBodyTimeouts();
  }

  /** Takes no more streams; ends when those under way are answered. */
  closeIdle(): void {
    this.isGoingAway = true;
    this.close();
  }

  /** Ends it at the deadline of a shutdown. */
  cutOff(): void {
    for (const exchange of [...this.served.keys()]) exchange.cutOff();
    this.session.destroy();
  }

  /** To be called now and then: ends what has taken too long, or was of no use. */
  look(): void {
    const nowMs = this.now();
    if (this.isStuck(nowMs)) {
      this.cut();
      return;
    }
    if (isDestroyed(this.session)) return;
    for (const request of this.served.values()) request.expire(nowMs);
    this.countOverhead(nowMs);
    this.askWhetherThere(nowMs);
    if (this.served.size === 0 && nowMs - this.idleSinceMs > this.options.keepAliveMs) this.close();
  }

  private readonly onStream = (
    stream: ServerHttp2Stream,
    _headers: IncomingHttpHeaders,
    _flags: number,
    rawHeaders: readonly string[] = [],
  ): void => {
    // A reset by the caller is told as an error too; its `close` follows.
    stream.on('error', ignore);
    try {
      this.serve(stream, rawHeaders);
    } catch (error) {
      this.options.fail(error);
      resetStream(stream, constants.NGHTTP2_INTERNAL_ERROR);
    }
  };

  private serve(stream: ServerHttp2Stream, rawHeaders: readonly string[]): void {
    const { options } = this;
    this.requests += 1;
    options.readTurns.count(this, rawHeaders.length / 2);
    options.onHeaders(rawHeaders.length / 2);
    const read = readHttp2Head(rawHeaders, stream.endAfterHeaders);
    const head = read.ok ? read.value : read.error.head;
    if (hasTooManyHeaders(head) && !this.resets.take(resets.forTooMany, this.now())) {
      this.calm();
      return;
    }
    this.usefulBytes += headerBytes(head) + overheadOfRequest;
    if (stream.destroyed) {
      this.native.freeAfter(stream);
      if (!this.resets.take(1, this.now())) this.calm();
      return;
    }
    const request = new Http2Request(stream, head, this, options.openHeads);
    request.hasPlace = !this.isClosing && options.streamPlaces.take(this.places);
    if (!request.hasPlace || !request.takePlace()) {
      // It was not looked at, and may be sent again (RFC 9113 §8.7).
      resetStream(stream, NGHTTP2_REFUSED_STREAM);
      this.native.freeAfter(stream);
      // Callers that are known to be such would lose their other requests, too.
      const isFree = request.hasPlace || this.isClosing || this.hasAuthenticated();
      this.givePlace(request);
      if (!isFree && !this.resets.take(1, this.now())) this.calm();
      return;
    }
    const exchange = this.exchangeOf(request);
    this.served.set(exchange, request);
    // Its place ends with its stream at the latest, whatever becomes of the exchange.
    stream.once('close', () => {
      if (!request.isComplete()) this.native.freeAfter(stream);
      request.onClosed();
      this.finish(exchange, this.now());
    });
    if (!stream.endAfterHeaders) stream.once('aborted', () => setImmediate(() => request.endTakenBack()));
    if (this.requests >= maxRequests) this.announceEnd();
    if (!read.ok) exchange.failBody(read.error.denial);
    request.awaitBody(() => exchange.start());
  }

  private givePlace(request: Http2Request): void {
    if (request.hasPlace) this.options.streamPlaces.give(this.places);
    request.hasPlace = false;
  }

  private exchangeOf(request: Http2Request): PipelinedRequest {
    try {
      return this.options.serve(request);
    } catch (error) {
      this.givePlace(request);
      request.leave();
      throw error;
    }
  }

  /** Those with a place whose response was written by then, and is still to be taken. */
  private untakenSince(sinceMs: number): readonly Http2Request[] {
    return [...this.served.values()].filter(
      (request) => request.hasPlace && (request.untakenSinceMs() ?? Infinity) <= sinceMs,
    );
  }

  /** Part of a response was written. */
  onWritten(bytes: number): void {
    this.usefulBytes += overheadOfWrite + bytes / bytesForOneOfOverhead;
    this.controls.give(1);
  }

  /**
   * A caller that ends its side can open no window and confirm nothing any more: it has left. nginx takes a gRPC call
   * back like that. Sockets of a server of HTTP/1.1 may be half open, so that Node leaves it to us.
   */
  private readonly onCallerEnd = (): void => {
    this.cut();
  };

  private readonly onControl = (): void => {
    if (!this.controls.take(1, this.now())) this.calm();
  };

  /** What was read, less what heads and bodies account for, may not go beyond its bucket. */
  private countOverhead(nowMs: number): void {
    const { bytesRead } = this.socket;
    let useful = this.usefulBytes;
    for (const request of this.served.values()) useful += request.bodyBytes();
    const surplus = bytesRead - this.readBytes - 2 * useful;
    if (bytesRead !== this.readBytes) {
      this.heardMs = nowMs;
      this.isAsked = false;
    }
    this.readBytes = bytesRead;
    this.usefulBytes = 0;
    for (const request of this.served.values()) this.usefulBytes -= request.bodyBytes();
    if (surplus > 0 && !this.overhead.take(surplus, nowMs)) this.calm();
  }

  private askWhetherThere(nowMs: number): void {
    const { session } = this;
    if (isDestroyed(session) || nowMs - this.heardMs < silenceMs) return;
    if (this.isAsked) {
      if (nowMs - this.heardMs > 2 * silenceMs && !this.isLeftAlone()) this.cut();
      return;
    }
    this.isAsked = true;
    this.writtenBytes = this.socket.bytesWritten;
    // Node sends no PING on a connection that is closing.
    if (session.closed) session.settings({});
    else session.ping(ignore);
  }

  /** Whether nothing is under way on it, and the question went out: many callers read nothing until they ask again. */
  private isLeftAlone(): boolean {
    return this.served.size === 0 && this.socket.bytesWritten !== this.writtenBytes;
  }

  /**
   * Whether the connection or one of its streams was ended here, and the caller does not react. Node waits without a
   * limit until all is written, and then until the caller ends its side.
   */
  private isStuck(nowMs: number): boolean {
    const isOver = isDestroyed(this.session) || (this.isClosing && this.served.size === 0);
    this.endsSinceMs = isOver ? (this.endsSinceMs ?? nowMs) : null;
    if (this.endsSinceMs !== null) return nowMs - this.endsSinceMs >= lingerMs;
    for (const { abortedMs } of this.served.values()) {
      if (abortedMs !== null && nowMs - abortedMs >= lingerMs) return true;
    }
    return false;
  }

  /** Ends it without waiting for the caller to take what is left. */
  private cut(): void {
    this.isClosing = true;
    this.session.destroy();
    this.socket.destroy();
  }

  private leaveWhenIdle(): void {
    this.isGoingAway = true;
    if (this.served.size === 0) this.close();
  }

  private close(): void {
    if (this.isClosing || isDestroyed(this.session)) return;
    this.isClosing = true;
    this.session.close();
  }

  private calm(): void {
    if (isDestroyed(this.session)) return;
    this.isClosing = true;
    this.options.onAbuse();
    // Without an error Node takes no note of the code, and says NO_ERROR.
    this.session.destroy(new Error('ENHANCE_YOUR_CALM'), NGHTTP2_ENHANCE_YOUR_CALM);
  }
}

const ignore = (): void => undefined;
