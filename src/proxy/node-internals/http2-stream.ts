import { AsyncResource } from 'node:async_hooks';
import { Readable } from 'node:stream';
import type { ClientHttp2Session, ClientHttp2Stream, Http2Session, Http2Stream, OutgoingHttpHeaders } from 'node:http2';

/** Takes what a stream receives. */
export interface StreamReader {
  /** Some of the body. `false` reads no more until `readOn`. */
  readonly onPiece: (bytes: Buffer) => boolean;
  /** The other side ended the message: END_STREAM came, and nothing was wrong with the length. */
  readonly onEndStream: () => void;
  /** The stream is closed, by whomever. Comes once or more often, behind `onEndStream` where that came. */
  readonly onClosed: () => void;
}

const bound: Pick<AsyncResource, 'bind'> = AsyncResource.prototype;

/** What Node adds to the options of a request where it is missing. From 22 on it warns of a weight (DEP0194). */
const nodesOwnOptions = {
  parent: 0,
  exclusive: false,
  silent: false,
  ...(Number.parseInt(process.versions.node, 10) < 22 ? { weight: 16 } : {}),
};

/** Those of Node's options that differ from stream to stream here. */
export interface StreamOptions {
  readonly endStream: boolean;
  readonly waitForTrailers: boolean;
}

/**
 * Opens a stream of a session that is connected: `session.request`, for half of what that costs on Node.js 20, and nine
 * tenths on 24. In two places Node would have V8 make a hidden class for each stream, which holds all that belongs to
 * it until old objects are collected:
 *
 * - What opens the stream is given to a resource of its own by `AsyncResource.bind`, for the case that it has to wait
 *   for the connection, and what that returns has two accessors that no other function has. Here it is called before
 *   `request` returns, and needs no resource.
 * - Options that are missing are added to a copy, of a shape that V8 11 takes for a prototype's. So all are given.
 */
export function openStream(
  session: ClientHttp2Session,
  head: OutgoingHttpHeaders,
  { endStream, waitForTrailers }: StreamOptions,
): ClientHttp2Stream {
  const { bind } = bound;
  // Whoever else binds something meanwhile has it bound.
  bound.bind = (call) => {
    bound.bind = bind;
    return call;
  };
  try {
    return session.request(head, { endStream, waitForTrailers, ...nodesOwnOptions });
  } finally {
    bound.bind = bind;
  }
}

const readerOf = Symbol('reader');

interface ReadPast extends ClientHttp2Stream {
  [readerOf]: StreamReader;
}

/**
 * Has what a stream receives go to `reader` and past its buffer, and reads on. Replaces `stream.push`, by which Node's
 * `onStreamRead` hands on DATA frames and their end.
 *
 * Node emits `end` alike for a message that ended, for one that was reset with NO_ERROR or CANCEL, and for one whose
 * connection went away. But for END_STREAM it pushes `null` while the stream is not closed, and for everything else
 * once it is. What arrives while nobody reads is pushed all the same, up to the window, so that a buffer of many tiny
 * pieces would be a multiple of that.
 */
export function readPast(stream: ClientHttp2Stream, reader: StreamReader): void {
  (stream as ReadPast)[readerOf] = reader;
  stream.push = push;
  readOn(stream);
}

/** Reads on after `onPiece` said `false`. Calls `stream._read`, which tells Node's handle so. */
export function readOn(stream: ClientHttp2Stream): void {
  if (!stream.destroyed) stream._read(0);
}

/**
 * Resets a stream, and nothing else. Replaces `stream.end`: Node's `close` calls it first, which on some versions sends
 * END_STREAM before RST_STREAM, so that half a body looks like a whole one.
 */
export function resetStream(stream: Http2Stream, code: number): void {
  if (stream.closed) return;
  stream.end = leaveOpen;
  stream.close(code);
}

/**
 * Whether our END_STREAM went out, or never will, as the stream is closed. That all was handed to the stream, or that
 * it told `finish`, says less: the last bytes, trailers, or an END_STREAM for itself may wait for a window.
 */
export function hasSentEnd(stream: Pick<Http2Stream, 'closed' | 'state'>): boolean {
  return stream.closed || stream.state.localClose === 1;
}

/** Megabytes that a connection may hold for itself: what Node allows all of it by default. */
const ownMegabytes = 10;

/**
 * `maxSessionMemory` of a connection, megabytes: more than it can hold. Node counts what waits for the windows of the
 * other side as well, and beyond the limit resets whichever stream has a head come next with ENHANCE_YOUR_CALM, so that
 * who takes nothing breaks the requests of others. What bounds each stream, and how many there are, are limits of our
 * own.
 *
 * @param ofStream megabytes that one stream may hold at most, in both directions.
 */
export function sessionMemoryMb(streams: number, ofStream: number): number {
  return ownMegabytes + streams * ofStream;
}

const doomed = new WeakSet<Http2Session>();

/**
 * Has a connection that is to be closed or destroyed go on until what was read is taken in. Node does either in the
 * midst of it, as at a GOAWAY, and nghttp2 reads on then. Before 1.68.1, as on Node 20, a frame of a wrong size behind
 * that aborts the process (CVE-2026-27135), and others have it write where it must not. Replaces `session.close` and
 * `session.destroy`, which Node's own code calls as well.
 */
export function endAfterReading(session: Http2Session): void {
  for (const method of ['close', 'destroy'] as const) {
    const value = (...given: readonly unknown[]): void => {
      if (method === 'destroy') doomed.add(session);
      // Within the reading, ticks and promises are run as well.
      setImmediate(() => {
        Reflect.deleteProperty(session, method);
        const end = Reflect.get(session, method) as (...given: readonly unknown[]) => void;
        Reflect.apply(end, session, given);
      });
    };
    Object.defineProperty(session, method, { value, configurable: true, writable: true });
  }
}

/** Whether a connection is destroyed, or will be in this turn of the loop. */
export function isDestroyed(session: Http2Session): boolean {
  return session.destroyed || doomed.has(session);
}

/** Holds native connections, each for a stream, until that stream was collected. */
const natives = new FinalizationRegistry<object>(() => undefined);

/**
 * What Node has of a connection below its object, and drops when that ends.
 *
 * It is kept until the session is closed, when all streams are, and not longer: settings that the other side never
 * acknowledged are held by it, and hold the session and who listens to it. Through such an object of ours the garbage
 * collector could never tell that nobody needs them any more.
 */
export class NativeSession {
  private native: object | null;

  constructor(session: Http2Session) {
    const symbol = Object.getOwnPropertySymbols(session).find(({ description }) => description === 'kHandle');
    const native: unknown = symbol === undefined ? null : Reflect.get(session, symbol);
    this.native = typeof native === 'object' ? native : null;
    // Streams that it ends tell so before.
    session.once('close', () => setImmediate(() => (this.native = null)));
  }

  /**
   * Has it be freed later than a stream that broke off. Node keeps a stream that it destroyed until the next turn of
   * its loop, and lets go of the connection at once. Where the garbage collector takes that in between, and the stream
   * has headers of a header block whose end did not come (as of one with too many CONTINUATION frames), Node aborts the
   * process: `Assertion failed: (current_nghttp2_memory_) == (0)`.
   */
  freeAfter(stream: Http2Stream): void {
    if (this.native !== null) natives.register(stream, this.native);
  }
}

function leaveOpen<T>(this: T): T {
  return this;
}

function push(this: ClientHttp2Stream, chunk: unknown): boolean {
  const reader = (this as ReadPast)[readerOf];
  if (Buffer.isBuffer(chunk)) return reader.onPiece(chunk);
  if (this.closed) reader.onClosed();
  else reader.onEndStream();
  // What Node's stream does at its end, it does still.
  return Readable.prototype.push.call(this, null);
}
