import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { once } from 'node:events';
import type { SecureContextOptions } from 'node:tls';
import type { Behaviour } from './jwks-server.js';
import { listen } from './listening.js';
import type { Scope } from './scope.js';
import { addReceivers, addMirror, isMirrored, mirrorPortOf, type Seen } from './mirror-servers.js';

/** A request as it reached the receiver; it stands in the list from its head on, the body follows. */
export interface ReceivedRequest {
  readonly method: string;
  /** The request target, byte for byte. */
  readonly target: string;
  readonly httpVersion: string;
  /** Name, value, name, value … as they came. */
  readonly rawHeaders: readonly string[];
  /** Every value of the field, in order. */
  readonly field: (name: string) => readonly string[];
  /** What came so far; whole once `complete`. */
  readonly body: Buffer;
  readonly complete: boolean;
  readonly aborted: boolean;
  readonly trailers: readonly string[];
  /** Counts connections from 1: two requests with the same number shared one. */
  readonly connection: number;
}

export interface UpstreamServer {
  readonly url: string;
  readonly port: number;
  readonly requests: ReceivedRequest[];
  /** Connections accepted so far. */
  readonly connections: () => number;
  /** Connections open now. */
  readonly open: () => number;
  /** Answers in the stead of the echo, at once at the head of the request; `null` goes back to the echo. */
  readonly behave: (behaviour: Behaviour | null) => void;
  readonly close: () => Promise<void>;
}

export interface UpstreamServerOptions {
  /** Serve TLS with this certificate. */
  readonly tls?: SecureContextOptions;
  /** Path of a unix socket to listen on instead of a port. */
  readonly unix?: string;
  readonly port?: number;
  /** Milliseconds an idle connection stays open. */
  readonly keepAliveTimeoutMs?: number;
  /** Give its mirror the same behaviours, and its end: for those that keep nothing in mind. */
  readonly alike?: boolean;
}

/** The service behind the proxy: keeps what it gets and answers 200 with it as JSON once the body is complete. */
export async function startUpstreamServer(t: Scope, options: UpstreamServerOptions = {}): Promise<UpstreamServer> {
  const own = await startOne(t, options);
  if (!isMirrored) return own;
  const place = options.unix === undefined ? { port: mirrorPortOf(options.port) } : { unix: `${options.unix}.mirror` };
  const mirror = await startOne(t, { ...options, ...place });
  addMirror(own.url, mirror.url);
  const isAlike = options.alike === true;
  addReceivers({ own: findIn(own), mirror: findIn(mirror), isAlike });
  if (!isAlike) return own;
  return {
    ...own,
    behave: (behaviour) => {
      own.behave(behaviour);
      mirror.behave(behaviour);
    },
    close: async () => {
      await Promise.all([own.close(), mirror.close()]);
    },
  };
}

function findIn({ requests }: UpstreamServer): (requestId: string) => Seen | null {
  // The last one: a test may use an id twice.
  return (requestId) => requests.findLast((one) => one.field('x-request-id')[0] === requestId) ?? null;
}

async function startOne(t: Scope, options: UpstreamServerOptions): Promise<UpstreamServer> {
  const requests: ReceivedRequest[] = [];
  const open = new Set<object>();
  let behaviour: Behaviour | null = null;
  let connections = 0;
  const numbers = new WeakMap<object, number>();
  const answer = (req: IncomingMessage, res: ServerResponse): void => {
    const received = receive(req, numbers.get(req.socket) ?? 0);
    requests.push(received);
    if (behaviour !== null) {
      behaviour(req, res);
      return;
    }
    req.on('end', () => {
      echo(received, res);
    });
  };
  const limits = {
    maxHeaderSize: 256 * 1024,
    keepAliveTimeout: options.keepAliveTimeoutMs ?? 60_000,
    requestTimeout: 0,
    headersTimeout: 0,
  };
  const server =
    options.tls === undefined ? createServer(limits, answer) : createTlsServer({ ...limits, ...options.tls }, answer);
  server.on(options.tls === undefined ? 'connection' : 'secureConnection', (socket: NodeJS.EventEmitter) => {
    connections += 1;
    numbers.set(socket, connections);
    open.add(socket);
    socket.on('close', () => open.delete(socket));
  });
  server.on('clientError', (_error, socket) => socket.destroy());
  const { port, close } =
    options.unix === undefined ? await listen(t, server, options.port) : await listenUnix(t, server, options.unix);
  return {
    url:
      options.unix === undefined
        ? `${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${String(port)}`
        : `unix:${options.unix}`,
    port,
    requests,
    connections: () => connections,
    open: () => open.size,
    behave: (next) => {
      behaviour = next;
    },
    close,
  };
}

function receive(req: IncomingMessage, connection: number): ReceivedRequest {
  const chunks: Buffer[] = [];
  req.on('data', (chunk: Buffer) => chunks.push(chunk));
  req.on('error', () => undefined);
  let aborted = false;
  req.on('close', () => {
    aborted = !req.complete;
  });
  return {
    method: req.method ?? '',
    target: req.url ?? '',
    httpVersion: req.httpVersion,
    rawHeaders: req.rawHeaders,
    field: (name) => fieldValues(req.rawHeaders, name),
    get body() {
      return Buffer.concat(chunks);
    },
    get complete() {
      return req.complete;
    },
    get aborted() {
      return aborted;
    },
    get trailers() {
      return req.rawTrailers;
    },
    connection,
  };
}

/** Every value of a field in a raw list of names and values. */
export function fieldValues(rawHeaders: readonly string[], name: string): readonly string[] {
  const wanted = name.toLowerCase();
  return rawHeaders.filter((_value, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === wanted);
}

function echo(received: ReceivedRequest, res: ServerResponse): void {
  const body = JSON.stringify({
    method: received.method,
    target: received.target,
    rawHeaders: received.rawHeaders,
    body: received.body.toString('latin1'),
  });
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  res.end(body);
}

async function listenUnix(
  t: Scope,
  server: Server,
  path: string,
): Promise<{ port: number; close: () => Promise<void> }> {
  server.listen(path);
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => {
      server.close(() => {
        resolve();
      });
    });
    server.closeAllConnections();
    await closed;
  };
  t.teardown(close);
  return { port: 0, close };
}
