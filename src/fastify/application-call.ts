import { ServerResponse, type IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { denial, type Denial } from '../decision/denial.js';
import type { ResponseSink, UpstreamRequest } from '../proxy/upstream/call.js';
import { ResponseParser } from '../proxy/upstream/http1/response-parser.js';
import type { UpstreamCall } from '../proxy/upstream/pool/pool.js';

/** What a handler is run with. */
interface HandlerRun {
  readonly request: IncomingMessage;
  /** The response to the caller, with what hooks have set so far. */
  readonly begun: ServerResponse;
  /** Runs the handler, which is to answer into the response given. */
  readonly run: (response: ServerResponse) => void;
}

/**
 * One run of a handler, in the place of a request to an upstream. It answers into a response that has no connection:
 * what it writes there is read as the response of an upstream is, so that `send`, streams, `hijack` and `raw` all come
 * to one head, one body, and an end or none; and it goes on when its caller leaves.
 */
export class ApplicationCall implements UpstreamCall {
  private readonly request: UpstreamRequest;
  private readonly sink: ResponseSink;
  private readonly run: HandlerRun['run'];
  private readonly response: ServerResponse;
  private readonly socket: ResponseSocket;
  private readonly parser: ResponseParser;
  /** Lets the handler write on. */
  private heldBack: (() => void) | null = null;
  private timer: NodeJS.Timeout | null = null;
  private hasBegun = false;
  /** Whether the sink was told the end, or does not want to hear. */
  private isOver = false;

  constructor(asked: UpstreamRequest, sink: ResponseSink, { request, begun, run }: HandlerRun) {
    this.request = asked;
    this.sink = sink;
    this.run = run;
    this.parser = new ResponseParser({
      onHead: ({ status, headers }) => {
        this.stopTimer();
        sink.onHead(status, headers);
      },
      onSwitch: () => this.fail(denial('upstream_failed')),
    });
    this.parser.expect(asked.method === 'HEAD');
    this.socket = new ResponseSocket(this.take);
    this.response = new ServerResponse(request);
    this.response.statusCode = begun.statusCode;
    for (const [name, value] of Object.entries(begun.getHeaders())) {
      if (value !== undefined) this.response.setHeader(name, value);
    }
    // Node's server passes that on where there is a connection.
    this.socket.on('drain', () => this.response.emit('drain'));
    this.socket.once('close', () => this.fail(denial('upstream_failed')));
    this.response.once('finish', this.onFinish);
    // Who writes after the end has said so: as on a connection, where Fastify listens for it.
    this.response.on('error', () => undefined);
    this.response.assignSocket(this.socket);
  }

  /** Not at once: who asks has to know this call before its sink hears of it. */
  start(): void {
    queueMicrotask(() => {
      if (this.isOver) return;
      const refused = this.request.lateRefusal?.() ?? null;
      if (refused !== null) {
        this.fail(refused);
        return;
      }
      this.hasBegun = true;
      this.timer = setTimeout(() => this.fail(denial('upstream_timeout')), this.request.responseTimeoutMs);
      this.run(this.response);
    });
  }

  resume(): void {
    const { heldBack } = this;
    this.heldBack = null;
    heldBack?.();
  }

  /** The handler goes on, and is told that nobody reads its response any more. */
  cancel(): void {
    this.end();
    this.socket.destroy();
  }

  mayBeSent(): boolean {
    return this.hasBegun;
  }

  private readonly take = (bytes: Buffer, onTaken: () => void): void => {
    if (this.isOver) {
      onTaken();
      return;
    }
    const body = this.parser.read(bytes);
    const flows = body === null || this.sink.onData(body);
    // What follows a whole response is dropped, as on a connection to an upstream.
    if (this.parser.isDone()) this.complete();
    else if (!this.parser.isSound) this.fail(denial('upstream_failed'));
    else if (!flows) {
      this.heldBack = onTaken;
      return;
    }
    onTaken();
  };

  private readonly onFinish = (): void => {
    if (this.parser.end()) this.complete();
    else this.fail(denial('upstream_failed'));
    // So `close` follows on `finish`, as on a connection.
    this.socket.destroy();
  };

  private complete(): void {
    if (this.isOver) return;
    this.end();
    this.sink.onEnd(null);
  }

  private fail(reason: Denial): void {
    if (this.isOver) return;
    this.end();
    this.socket.destroy();
    this.sink.onError(reason);
  }

  private end(): void {
    this.isOver = true;
    this.stopTimer();
  }

  private stopTimer(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}

/** What a response takes for the connection of its caller. */
class ResponseSocket extends Socket {
  private readonly onBytes: (bytes: Buffer, onTaken: () => void) => void;

  constructor(onBytes: (bytes: Buffer, onTaken: () => void) => void) {
    super();
    this.onBytes = onBytes;
    // Whoever destroys the response with an error has said so; an error that nobody listens for would end the process.
    this.on('error', () => undefined);
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, callback: () => void): void {
    this.onBytes(typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk, callback);
  }

  override _writev(chunks: { chunk: Buffer | string; encoding: BufferEncoding }[], callback: () => void): void {
    const pieces = chunks.map(({ chunk, encoding }) =>
      typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk,
    );
    this.onBytes(Buffer.concat(pieces), callback);
  }
}
