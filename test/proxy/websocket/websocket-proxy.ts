/** A proxy with WebSocket routes, a receiver made of a real library behind it, and clients of the same. */
import { createServer, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { WebSocket, WebSocketServer, type ClientOptions, type ServerOptions } from 'ws';
import { listen } from '../../support/listening.js';
import { connectRaw, type RawConnection, type RawResponse } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { addReceivers, addMirror, isMirrored, type Seen } from '../../support/mirror-servers.js';
import type { Claims } from '../../support/tokens.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startProxy, type Harness, type HarnessOptions } from '../harness.js';

export const key = 'dGhlIHNhbXBsZSBub25jZQ==';

export const webSocketRoutes = [
  {
    name: 'live',
    methods: ['GET'],
    path: '/live',
    websocket: true,
    subjects: ['checkout'],
    permissions: ['orders:read'],
  },
  { name: 'open', methods: ['GET'], path: '/open', websocket: true, access: 'public' },
  { name: 'list-orders', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: ['orders:read'] },
];

export interface WebSocketUpstream {
  readonly url: string;
  readonly port: number;
  /** Handshakes that came, in order. */
  readonly upgrades: IncomingMessage[];
  /** The receiver's ends of what is open, or was. */
  readonly sockets: WebSocket[];
  /** Messages that came so far. */
  readonly messages: () => number;
  /** Connections open now. */
  readonly open: () => number;
  /** What the second proxy has in its place, in runs with a shadow mirror. */
  readonly mirror: WebSocketUpstream | null;
}

export interface WebSocketProxy extends Harness {
  readonly webSockets: WebSocketUpstream;
  readonly url: string;
  /** A client of the library; connecting. */
  readonly connect: (options?: ConnectOptions) => Client;
}

export interface ConnectOptions extends ClientOptions {
  readonly path?: string;
  readonly protocols?: string[];
  readonly claims?: Claims;
  /** Whether the token is left out. */
  readonly anonymous?: boolean;
}

/** A client, and what happened to it. */
export interface Client {
  readonly socket: WebSocket;
  readonly opened: Promise<void>;
  readonly messages: string[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
}

/** Echoes every message, and answers plain requests with 404. */
export async function startWebSocketUpstream(t: Scope, options: ServerOptions = {}): Promise<WebSocketUpstream> {
  const own = await startOne(t, options);
  if (!isMirrored) return own;
  const mirror = await startOne(t, options);
  addMirror(own.url, mirror.url);
  addReceivers({ own: findIn(own), mirror: findIn(mirror), isAlike: true });
  return { ...own, mirror };
}

function findIn({ upgrades }: WebSocketUpstream): (requestId: string) => Seen | null {
  return (requestId) => {
    const found = upgrades.findLast(({ headers }) => headers['x-request-id'] === requestId);
    return found === undefined
      ? null
      : { method: 'GET', target: found.url ?? '', rawHeaders: found.rawHeaders, body: Buffer.alloc(0) };
  };
}

async function startOne(t: Scope, options: ServerOptions): Promise<WebSocketUpstream> {
  const upgrades: IncomingMessage[] = [];
  const sockets: WebSocket[] = [];
  const connections = new Set<Socket>();
  let messages = 0;
  const server = createServer((_req, res) => res.writeHead(404).end('plain'));
  const webSockets = new WebSocketServer({ noServer: true, ...options });
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });
  server.on('upgrade', (req, socket, head) => {
    upgrades.push(req);
    webSockets.handleUpgrade(req, socket, head, (webSocket) => {
      sockets.push(webSocket);
      webSocket.on('error', () => undefined);
      webSocket.on('message', (data: Buffer, isBinary) => {
        messages += 1;
        webSocket.send(data, { binary: isBinary });
      });
    });
  });
  const { port } = await listen(t, server);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    upgrades,
    sockets,
    messages: () => messages,
    open: () => connections.size,
    mirror: null,
  };
}

export interface WebSocketProxyOptions extends HarnessOptions {
  readonly server?: ServerOptions;
}

export async function startWebSocketProxy(t: Scope, options: WebSocketProxyOptions = {}): Promise<WebSocketProxy> {
  const webSockets = await startWebSocketUpstream(t, options.server);
  const config: ConfigTree = { routes: webSocketRoutes, ...options.config };
  const proxy = await startProxy(t, { upstreamUrl: webSockets.url, ...options, config });
  const url = `ws://127.0.0.1:${proxy.port}`;
  return {
    ...proxy,
    webSockets,
    url,
    connect: ({ path = '/live', protocols = [], claims, anonymous = false, ...rest } = {}) => {
      const headers = anonymous ? rest.headers : { ...proxy.authorization(claims), ...rest.headers };
      return clientOf(
        t,
        new WebSocket(`${url}${path}`, protocols, {
          perMessageDeflate: false,
          ...rest,
          ...(headers === undefined ? {} : { headers }),
        }),
      );
    },
  };
}

export function clientOf(t: Scope, socket: WebSocket): Client {
  const messages: string[] = [];
  t.teardown(() => socket.terminate());
  socket.on('message', (data: Buffer) => messages.push(data.toString()));
  const opened = new Promise<void>((resolve, reject) => {
    socket.on('open', resolve).on('error', reject);
  });
  opened.catch(() => undefined);
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on('close', (code, reason) => resolve({ code, reason: reason.toString() }));
  });
  return { socket, opened, messages, closed };
}

/** An opening handshake of these fields, as it stands. */
export function handshake(fields: string, path = '/live', method = 'GET', version = 'HTTP/1.1'): string {
  return `${method} ${path} ${version}\r\nHost: a\r\n${fields}\r\n`;
}

/** The fields of a sound one, without the credential. */
export const soundFields = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n`;

/** A connection that has been switched by hand, and the answer. */
export async function switchRaw(
  t: Scope,
  proxy: Harness,
  fields = `${soundFields}${proxy.bearer()}`,
): Promise<{ raw: RawConnection; answer: RawResponse }> {
  const raw = await connectRaw(proxy.port);
  t.teardown(raw.end);
  raw.write(handshake(fields));
  const answer = await raw.readResponse();
  if (answer?.status !== 101) throw new Error(`not switched: ${String(answer?.status)}`);
  return { raw, answer };
}

/** A frame; masked with a mask that changes nothing where it is a client's. */
export function frame(opcode: number, payload: string | Buffer, { masked = true, fin = true, rsv = 0 } = {}): Buffer {
  const body = Buffer.from(payload as string, 'latin1');
  const mask = masked ? 0x80 : 0;
  const first = (fin ? 0x80 : 0) | (rsv << 4) | opcode;
  const length =
    body.length < 126
      ? [mask | body.length]
      : body.length < 65_536
        ? [mask | 126, body.length >> 8, body.length & 0xff]
        : [
            mask | 127,
            0,
            0,
            0,
            0,
            body.length >>> 24,
            (body.length >> 16) & 0xff,
            (body.length >> 8) & 0xff,
            body.length & 0xff,
          ];
  return Buffer.concat([Buffer.from([first, ...length]), masked ? Buffer.alloc(4) : Buffer.alloc(0), body]);
}
