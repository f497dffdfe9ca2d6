import type { ServerResponse } from 'node:http';
import type { Denial } from '../../decision/denial.js';
import { problemOf } from '../../decision/http/problem-details.js';
import type { ClientConnection } from './client-connection.js';
import type { ClientRequest } from './http1-request.js';
import type { ResponseWriter, ResponseWriterHost } from './received-request.js';
import { bodyless } from '../upstream/http1/response-head.js';
import { GatheredWrites, smallWriteBytes } from './gathered-writes.js';
import type { UpgradedSocket, UpgradeRequest } from '../websocket/upgrade-request.js';

/** How long a caller may leave a response of ours, which is short, unread; milliseconds. */
export const refusalFlushMs = 10_000;

/** Longer bodies cost more to copy than a write. */
const maxCoalescedBytes = 16 * 1024;

/** After these nobody knows whether both ends agree where the next request begins. */
const closing: ReadonlySet<number> = new Set([400, 405, 408, 413, 414, 417, 431]);

/** As Node takes them. */
function pairsOf(headers: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) pairs.push([headers[i] ?? '', headers[i + 1] ?? '']);
  return pairs;
}

/** Writers that have begun a response and not flushed it: the same read may bring its end. */
let begun: Http1ResponseWriter[] = [];

/** Once for all that a turn of the event loop brings. */
function flushSoon(writer: Http1ResponseWriter): void {
  if (begun.length === 0) process.nextTick(flushBegun);
  begun.push(writer);
}

function flushBegun(): void {
  const writers = begun;
  begun = [];
  flushFrom(writers, 0);
}

/** One that throws keeps none of the others. */
function flushFrom(writers: readonly Http1ResponseWriter[], first: number): void {
  let next = first;
  try {
    while (next < writers.length) writers[next++]?.flush();
  } finally {
    if (next < writers.length) setImmediate(flushFrom, writers, next);
  }
}

/** What a response of HTTP/1.1 is written to. */
interface Http1Parts {
  readonly req: ClientRequest;
  readonly res: ServerResponse;
  readonly connection: ClientConnection;
  readonly upgrade: UpgradeRequest | null;
}

/** Writes a response of HTTP/1.1: the upstream's response as it comes, or a problem document. */
export class Http1ResponseWriter implements ResponseWriter {
  private readonly req: ClientRequest;
  private readonly res: ServerResponse;
  private readonly connection: ClientConnection;
  private readonly host: ResponseWriterHost;
  private readonly isHead: boolean;
  private readonly comesWithBody: boolean;
  private readonly offersUpgrade: boolean;
  private readonly upgrade: UpgradeRequest | null;
  private isSwitched = false;
  /** What came in the same packet as the head: if it is the whole body, head and body go out in one piece. */
  private heldChunk: Buffer | null = null;
  private isFlushed = false;
  private listensForDrain = false;
  /** `null` until a small piece has to wait: most responses are one with their head, or come in large pieces. */
  private gatheredWrites: GatheredWrites | null = null;
  private headers: readonly string[] = [];

  constructor({ req, res, connection, upgrade }: Http1Parts, host: ResponseWriterHost) {
    this.req = req;
    this.res = res;
    this.connection = connection;
    this.upgrade = upgrade;
    this.host = host;
    this.isHead = req.method === 'HEAD';
    this.comesWithBody = req.comesWithBody();
    this.offersUpgrade = req.headers.upgrade !== undefined;
  }

  /** Whether the whole request was received. Node says so of one without a body only after it was handed over. */
  isReceived(): boolean {
    // What follows the head of a request to switch protocols has no end.
    return this.upgrade === null && (this.req.complete || !this.comesWithBody);
  }

  /** What the caller was sent, 0 where nothing was. */
  status(): number {
    return this.res.headersSent ? this.res.statusCode : 0;
  }

  /** A caller of HTTP/1.1 is refused in HTTP's own terms, and few of them can read trailers. */
  grpcStatus(): null {
    return null;
  }

  /** Whether everything was handed to the system. */
  isDelivered(): boolean {
    return this.isSwitched || this.res.writableFinished;
  }

  /**
   * Answers with a problem document. The connection ends with it when the caller may still be sending, nobody asked for
   * the body, or the denial says so.
   */
  refuse(reason: Denial, requestId: string, isBodyRead: boolean): void {
    if (this.req.socket.destroyed || this.isSwitched) return;
    const { status, headers, body } = problemOf(reason, requestId, () => this.host.challenges());
    this.writeHead(
      status,
      [...headers, 'Content-Length', String(Buffer.byteLength(body))],
      closing.has(status) || reason.endsConnection === true || (this.comesWithBody && !isBodyRead),
    );
    this.writeInOnePiece(body, 'utf8');
    this.res.end();
    this.connection.startWriteTimeout(refusalFlushMs, () => {
      this.abort();
    });
  }

  /** Begins the upstream's response; `true` when that is already the whole of it, which then ends as in `end`. */
  begin(status: number, headers: string[]): boolean {
    this.headers = headers;
    this.writeHead(status, headers);
    if (this.isHead || bodyless.has(status)) {
      this.res.end();
      this.connection.startWriteTimeout(this.host.writeTimeoutMs(), this.onWriteTimeout);
      return true;
    }
    flushSoon(this);
    return false;
  }

  switchProtocols(headers: string[]): UpgradedSocket | null {
    if (this.upgrade === null) return null;
    this.isSwitched = true;
    this.res.writeHead(101, headers);
    this.res.flushHeaders();
    return this.upgrade.handOver();
  }

  endUpgraded(): void {
    this.res.emit('close');
  }

  /** Begins a whole response, of which only the end is left to say then. */
  sendWhole(status: number, headers: string[], body: Buffer): void {
    const hasLength = headers.some((text, i) => i % 2 === 0 && text.toLowerCase() === 'content-length');
    if (!hasLength && !this.isHead && !bodyless.has(status)) headers.push('Content-Length', String(body.length));
    const isWhole = this.begin(status, headers);
    if (!isWhole && body.length > 0) this.write(body);
  }

  /** `false` when the client does not keep up: `onWritable` says when it does. */
  write(chunk: Buffer): boolean {
    if (!this.isFlushed && this.heldChunk === null && chunk.length <= maxCoalescedBytes) {
      this.heldChunk = chunk;
      return true;
    }
    this.flush();
    const { req, res } = this;
    let flows: boolean;
    if (this.gatheredWrites === null && (chunk.length >= smallWriteBytes || req.socket.writableLength === 0)) {
      flows = res.destroyed || res.writableEnded || res.write(chunk);
    } else {
      this.gatheredWrites ??= this.gatherWrites();
      flows = this.gatheredWrites.write(chunk);
    }
    if (!flows) this.waitForClient();
    return flows;
  }

  end(trailers: readonly string[] | null): void {
    const { heldChunk } = this;
    this.isFlushed = true;
    this.heldChunk = null;
    if (heldChunk !== null) this.writeInOnePiece(heldChunk.toString('latin1'), 'latin1');
    this.gatheredWrites?.flush();
    if (trailers !== null && this.res.chunkedEncoding) this.res.addTrailers(pairsOf(trailers));
    this.res.end();
    this.connection.startWriteTimeout(this.host.writeTimeoutMs(), this.onWriteTimeout);
  }

  /** The caller took what was written. */
  onDrain(): void {
    if (!this.listensForDrain) return;
    this.connection.endWriteTimeout();
    this.host.onWritable();
  }

  /** Breaks it off, so that nobody takes what was sent for the whole. */
  abort(): void {
    const hasLength = this.headers.some((text, i) => i % 2 === 0 && text.toLowerCase() === 'content-length');
    const endsWithConnection = this.res.headersSent && !this.res.chunkedEncoding && !hasLength;
    this.connection.abort(endsWithConnection);
  }

  /** There is no place for a reason after a body. */
  breakOff(): void {
    this.abort();
  }

  private readonly onWriteTimeout = (): void => this.host.onWriteTimeout();

  private gatherWrites(): GatheredWrites {
    const {
      req: { socket },
      res,
    } = this;
    return new GatheredWrites({
      isBlocked: () => socket.writableLength > 0,
      write: (bytes, onTaken) => res.destroyed || res.writableEnded || res.write(bytes, onTaken),
    });
  }

  private waitForClient(): void {
    this.connection.startWriteTimeout(this.host.writeTimeoutMs(), this.onWriteTimeout);
    if (this.listensForDrain) return;
    this.listensForDrain = true;
    this.res.on('drain', () => this.onDrain());
  }

  private writeHead(status: number, headers: string[], isLast = false): void {
    if (isLast || this.mustClose()) {
      headers.push('Connection', 'close');
      this.connection.stopServing();
    }
    this.res.writeHead(status, headers);
    // Node may have reasons of its own to make it the last one.
    if (!this.res.shouldKeepAlive) this.connection.stopServing();
  }

  private mustClose(): boolean {
    if (!this.res.shouldKeepAlive || !this.isReceived()) return true;
    // What follows an offer to upgrade in the same packet is lost in Node's parser.
    return this.offersUpgrade || this.connection.isLast() || this.host.isShuttingDown();
  }

  /** One string goes out with the head in one piece; `end` would make a vector of pieces of it, which costs more. */
  private writeInOnePiece(body: string, encoding: 'latin1' | 'utf8'): void {
    const { socket } = this.req;
    // Node would cork it too, and uncork it in a turn of its queue that nobody needs.
    socket.cork();
    this.res.write(body, encoding);
    socket.uncork();
  }

  /** Sends what came so far: a head whose body is yet to come must not wait for it. */
  flush(): void {
    if (this.isFlushed) return;
    this.isFlushed = true;
    const { heldChunk } = this;
    this.heldChunk = null;
    // `flushHeaders` would write the head as UTF-8, and with it other bytes than the upstream's.
    if (heldChunk === null) this.res.write('', 'latin1');
    else this.res.write(heldChunk);
  }
}
