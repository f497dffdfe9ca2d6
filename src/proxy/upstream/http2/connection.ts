import {
  connect as connectHttp2,
  constants,
  type ClientHttp2Session,
  type ClientHttp2Stream,
  type OutgoingHttpHeaders,
  type Settings,
} from 'node:http2';
import type { Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import type { Connector } from '../connector.js';
import {
  endAfterReading,
  isDestroyed,
  NativeSession,
  openStream,
  sessionMemoryMb,
  type StreamOptions,
} from '../../node-internals/http2-stream.js';
import { BrokenResponse, ConnectTimeout, NotHttp2, NotProcessed } from '../errors.js';
import type { OpenSocket } from '../socket.js';
import { FrameRateLimiter, type FrameRate } from './frame-rate-limiter.js';
import type { HeadRules } from './request-head.js';
import type { RequestStream } from './request-stream.js';

/** Times of a connection, milliseconds. */
export interface ConnectionTimes {
  /** Without a byte for so long behind a request, or before it is used again, it is asked whether it is there. */
  readonly quietMs: number;
  /** How long the response to that may take. */
  readonly pingMs: number;
  /** Without streams for so long it is closed. */
  readonly idleMs: number;
}

/** Below the 60 s after which load balancers and many servers close what is idle. */
export const usualTimes: ConnectionTimes = { quietMs: 10_000, pingMs: 5_000, idleMs: 50_000 };

/** What a connection tells whoever keeps it. */
export interface Http2ConnectionHost {
  /** It may have more room than before, or less. `peerMax` is what the upstream allows at once. */
  readonly onRoom: (peerMax: number) => void;
  /** It takes no more streams. Those that are open go on. */
  readonly onDraining: (connection: Http2Connection) => void;
  /** It is closed. */
  readonly onGone: (connection: Http2Connection) => void;
}

interface Http2ConnectionOptions {
  readonly connector: Connector;
  readonly headRules: HeadRules;
  /** How many streams it may carry at once. */
  readonly maxStreams: number;
  /** How many it probably may, until the upstream has said so. */
  readonly expectedStreams: number;
  /** How long the upstream may take for its first settings; milliseconds. */
  readonly settingsTimeoutMs: number;
  readonly times: ConnectionTimes;
}

/** Response heads of applications with many cookies fit, as in HTTP/1.1; what is larger is a broken response. */
export const maxHeadBytes = 64 * 1024;

/** With 32 bytes that count beside each, more do not fit into that. */
const maxHeaders = 2_048;

/**
 * What the upstream may send on a connection before anybody here takes it; each stream has the 64 KiB that HTTP/2
 * begins with. Node takes what comes on a connection at once, so that no slow caller holds up the others.
 */
const connectionWindowBytes = 1024 * 1024;

/**
 * What a stream may hold, megabytes: two pieces of a body of 64 KiB that wait for the upstream, as many bytes of a
 * response as its window takes, and its head, of which each header costs some more.
 */
const streamMegabytes = 1;

/** PING and SETTINGS frames of the upstream: gRPC servers measure by PING how far away we are, hundreds a second. */
const controlFrames: FrameRate = { most: 1_000, perSecond: 500 };

/** DATA frames of a few bytes: streams of small messages have many. */
const tinyPieces: FrameRate = { most: 20_000, perSecond: 20_000 };

/**
 * Streams that we reset. Callers who leave make us do so, and servers end a connection where that comes too often
 * (CVE-2023-44487: nghttp2 after 1,000, Envoy after 500), which would break the requests of all other callers on it.
 */
const resets: FrameRate = { most: 200, perSecond: 10 };

/** How often in the time of a silence it is looked whether there is one. */
const looksWhileQuiet = 10;

/** How long a socket may take to close when all was said. */
const farewellMs = 1_000;

/**
 * - `opening`: the upstream has not sent its first settings. Nothing was sent but ours
 * - `checking`: it was idle or silent for a while, and was asked whether it is still there. New streams wait
 * - `open`: streams can be opened
 * - `draining`: no more of them, those that there are go on
 * - `closed`: it carries nothing any more
 */
type State = 'opening' | 'checking' | 'open' | 'draining' | 'closed';

/** One connection to the upstream, with as many requests at once as both sides allow. */
export class Http2Connection {
  readonly headRules: HeadRules;
  private readonly options: Http2ConnectionOptions;
  private readonly host: Http2ConnectionHost;
  private state: State = 'opening';
  private readonly streams = new Set<RequestStream>();
  /** Those of them that wait until it is open. */
  private readonly waiting = new Set<RequestStream>();
  private peerMax: number;
  private socket: Socket;
  private session: ClientHttp2Session | null = null;
  private native: NativeSession | null = null;
  /** Ends the wait for first settings, or for the response to a PING. */
  private limit: NodeJS.Timeout | null = null;
  private watch: NodeJS.Timeout | null = null;
  private bytesRead = 0;
  /**
   * Since when the upstream owes a sign of life for a stream that was opened, as far as the looks tell; monotonic
   * milliseconds. A stream that was taken back since then is no such sign.
   */
  private askedMs: number | null = null;
  private idleSinceMs = 0;
  /** Whether the upstream ended the connection for an error. */
  private isGivenUpByPeer = false;
  private readonly controlFrames = new FrameRateLimiter(controlFrames);
  private readonly tinyPieces = new FrameRateLimiter(tinyPieces);
  private readonly resets = new FrameRateLimiter(resets);

  constructor(options: Http2ConnectionOptions, host: Http2ConnectionHost) {
    this.options = options;
    this.host = host;
    this.headRules = options.headRules;
    this.peerMax = options.expectedStreams;
    this.socket = options.connector.connect((outcome) => {
      if (outcome instanceof Error) this.fail(outcome);
      else this.begin(outcome);
    });
  }

  /** Streams that it has, open or about to be. */
  get count(): number {
    return this.streams.size;
  }

  isOpen(): boolean {
    return this.state === 'open';
  }

  /** Whether it is open, and not being asked whether it is still there. */
  isSound(): boolean {
    return this.state === 'open' && this.limit === null;
  }

  hasRoom(): boolean {
    return (
      this.state !== 'draining' &&
      this.state !== 'closed' &&
      // Node tells that it is gone in a later turn of the event loop.
      (this.session === null || !isDestroyed(this.session)) &&
      this.streams.size < Math.min(this.options.maxStreams, this.peerMax)
    );
  }

  /** Whether so many of its streams were reset that the upstream may end it soon. */
  isWornOut(): boolean {
    return this.resets.isUsedUp();
  }

  wasGivenUpByPeer(): boolean {
    return this.isGivenUpByPeer;
  }

  /** Takes a place for a stream. Give it back by `remove`. */
  add(stream: RequestStream): void {
    const nowMs = performance.now();
    this.checkFirst(nowMs);
    // What came before is no answer to this one.
    this.hear(nowMs);
    this.streams.add(stream);
    this.askedMs ??= nowMs;
  }

  remove(stream: RequestStream): void {
    this.waiting.delete(stream);
    if (!this.streams.delete(stream) || this.streams.size > 0) return;
    this.idleSinceMs = performance.now();
    if (this.state === 'draining') this.close();
  }

  /** Has the stream opened when this is open. */
  await(stream: RequestStream): void {
    if (this.state === 'opening' || this.state === 'checking') this.waiting.add(stream);
    else stream.displace();
  }

  /** The stream need not be opened any more. */
  leave(stream: RequestStream): void {
    this.waiting.delete(stream);
  }

  /** Opens a stream. `null` where none can be opened any more: nothing was sent. */
  request(head: OutgoingHttpHeaders, options: StreamOptions): ClientHttp2Stream | null {
    const { session } = this;
    if (session === null || isDestroyed(session)) {
      this.fail(new NotProcessed());
      return null;
    }
    // Node closes it where the upstream said GOAWAY, and tells that later; or where nghttp2 did not send a section, and
    // tells nobody: what is under way goes on.
    if (session.closed) {
      this.drain();
      return null;
    }
    const stream = openStream(session, head, options);
    if (stream.id !== undefined) return stream;
    // The ids of this connection are used up (RFC 9113 §5.1.1). The stream that Node returns all the same is destroyed,
    // and has nothing to tell but that.
    stream.on('error', ignore);
    this.drain();
    return null;
  }

  /** Takes no more streams, and closes when the last one has ended. */
  drain(): void {
    if (this.state === 'closed' || this.state === 'draining') return;
    const { waiting } = this;
    this.state = 'draining';
    this.host.onDraining(this);
    for (const stream of [...waiting]) stream.displace();
    if (this.streams.size === 0) this.close();
  }

  /** Ends it at once. Its streams are told that they are broken. */
  close(): void {
    this.end(constants.NGHTTP2_NO_ERROR);
  }

  /** Is freed later than a stream of it that broke off. */
  outlive(stream: ClientHttp2Stream): void {
    this.native?.freeAfter(stream);
  }

  countReset(): void {
    this.resets.take();
  }

  countTinyPiece(): void {
    if (!this.tinyPieces.take()) this.giveUpFlood();
  }

  /** Ends it, since the upstream asks for more than a response is worth (RFC 9113 §10.5). */
  giveUpFlood(): void {
    this.end(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  private begin(opened: OpenSocket): void {
    if (this.state === 'closed') {
      opened.socket.destroy();
      return;
    }
    const { connector, maxStreams, settingsTimeoutMs, times } = this.options;
    this.socket = opened.socket;
    const session = connectHttp2(connector.origin, {
      createConnection: () => opened.socket,
      settings: { enablePush: false, maxHeaderListSize: maxHeadBytes },
      maxHeaderListPairs: maxHeaders,
      maxSessionMemory: sessionMemoryMb(maxStreams, streamMegabytes),
    });
    endAfterReading(session);
    this.session = session;
    this.native = new NativeSession(session);
    this.limitTo(settingsTimeoutMs, () => this.fail(new ConnectTimeout('no settings came in time')));
    this.watch = setInterval(this.look, times.quietMs / looksWhileQuiet);
    session
      // What came with the end of the handshake may have ended it before that is told.
      .once('connect', () => {
        if (!isDestroyed(session)) session.setLocalWindowSize(connectionWindowBytes);
      })
      .on('remoteSettings', ({ maxConcurrentStreams }: Settings) => this.onSettings(maxConcurrentStreams))
      .on('ping', () => this.countControlFrame())
      .on('goaway', (code: number, lastId: number) => this.onGoaway(code, lastId))
      .on('error', (error: Error) => this.fail(this.state === 'opening' ? new NotHttp2(error.message) : error))
      .on('close', () => this.fail(new NotHttp2('the upstream closed the connection')))
      // What it pushes all the same nobody asked for.
      .on('stream', (pushed: ClientHttp2Stream) => {
        pushed.on('error', ignore).close(constants.NGHTTP2_REFUSED_STREAM);
        this.outlive(pushed);
      });
  }

  private onSettings(peerMax = Infinity): void {
    this.countControlFrame();
    if (this.state === 'closed') return;
    this.peerMax = peerMax;
    if (this.state === 'opening') this.beOpen();
    this.host.onRoom(peerMax);
  }

  /** Opens the streams that wait, as many as there is room for. */
  private beOpen(): void {
    this.stopLimit();
    this.state = 'open';
    this.idleSinceMs = performance.now();
    this.onSignOfLife(this.idleSinceMs);
    const room = Math.min(this.options.maxStreams, this.peerMax);
    let opened = this.streams.size - this.waiting.size;
    for (const stream of [...this.waiting]) {
      this.waiting.delete(stream);
      if (opened < room) stream.open();
      else stream.displace();
      opened += 1;
    }
  }

  private onGoaway(code: number, lastId: number): void {
    this.isGivenUpByPeer ||= code !== constants.NGHTTP2_NO_ERROR;
    for (const stream of this.streams) stream.onLastStream(lastId);
    this.drain();
  }

  private countControlFrame(): void {
    if (!this.controlFrames.take()) this.giveUpFlood();
  }

  /**
   * A connection that was idle for a while, or is silent, may be dead. It is asked first, while the request can still
   * go elsewhere.
   */
  private checkFirst(nowMs: number): void {
    const isAsked = this.limit !== null;
    const isRested = this.streams.size === 0 && nowMs - this.idleSinceMs >= this.options.times.quietMs;
    if (this.state !== 'open' || !(isAsked || isRested)) return;
    this.state = 'checking';
    if (!isAsked) this.ping();
  }

  /** Looks whether something came since the last time, and asks where that was too long ago. */
  private readonly look = (): void => {
    const { times } = this.options;
    const nowMs = performance.now();
    this.hear(nowMs);
    if (this.state !== 'open' && this.state !== 'draining') return;
    const isSilent = this.askedMs !== null && nowMs - this.askedMs >= times.quietMs;
    if (isSilent && this.limit === null) this.ping();
    else if (this.streams.size === 0 && nowMs - this.idleSinceMs >= times.idleMs) this.drain();
  };

  /** Takes note of what came since the last time. */
  private hear(nowMs: number): void {
    const { bytesRead } = this.socket;
    if (bytesRead === this.bytesRead) return;
    this.bytesRead = bytesRead;
    this.onSignOfLife(nowMs);
  }

  private onSignOfLife(nowMs: number): void {
    this.askedMs = this.streams.size > 0 ? nowMs : null;
  }

  /** Asks whether the upstream is there, unless Node is about to tell that the connection is gone. */
  private ping(): void {
    const { session } = this;
    if (session === null || isDestroyed(session)) return;
    this.awaitPong();
    const onPong = (error: Error | null): void => {
      if (error !== null || this.state === 'closed') return;
      this.stopLimit();
      this.onSignOfLife(performance.now());
      if (this.state === 'checking') this.beOpen();
    };
    // Node sends no PING on a connection that is closing; settings are acknowledged as well.
    if (session.closed) session.settings({}, onPong);
    else session.ping(onPong);
  }

  /** Where bytes came but no response to the PING, that may be on its way behind them: it gets its time once more. */
  private awaitPong(isLast = false): void {
    const { bytesRead } = this.socket;
    const giveUp = (): void => {
      if (this.limit === null) return;
      if (isLast || this.socket.bytesRead === bytesRead) this.fail(new NotProcessed('the upstream does not respond'));
      else this.awaitPong(true);
    };
    // Timers are called before what has arrived is read.
    this.limitTo(this.options.times.pingMs, () => setImmediate(giveUp));
  }

  private limitTo(ms: number, onDue: () => void): void {
    this.stopLimit();
    this.limit = setTimeout(onDue, ms);
  }

  private stopLimit(): void {
    if (this.limit !== null) clearTimeout(this.limit);
    this.limit = null;
  }

  /** It is of no use any more. */
  private fail(error: Error): void {
    this.end(constants.NGHTTP2_NO_ERROR, error);
  }

  /** @param error what ended it; none where we do. */
  private end(code: number, error: Error | null = null): void {
    const { state, session, socket } = this;
    if (state === 'closed') return;
    const waiting = [...this.waiting];
    this.state = 'closed';
    this.waiting.clear();
    this.stopLimit();
    if (this.watch !== null) clearInterval(this.watch);
    this.host.onGone(this);
    if (session === null) socket.destroy();
    else {
      if (code === constants.NGHTTP2_NO_ERROR) session.destroy();
      else session.destroy(new BrokenResponse('the connection was given up'), code);
      // Whoever does not take the farewell is not waited for.
      const timer = setTimeout(() => socket.destroy(), farewellMs);
      socket.once('close', () => clearTimeout(timer));
    }
    for (const stream of waiting) {
      // Nothing was sent for it: where the connection was good before, it may go elsewhere.
      if (state === 'checking' && error !== null) stream.displace();
      else stream.failUnopened(error ?? new BrokenResponse('the connection was given up'));
    }
  }
}

function ignore(): void {
  // Told to nobody: nobody asked, or who did is told otherwise.
}
