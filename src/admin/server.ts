import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { HostPort } from '../config/types.js';
import type { Log } from '../ports/system.js';
import { limitConnections } from './connection-limit.js';
import { isOwnHost } from './host-check.js';

/** What one path answers. */
export interface Page {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export interface PageServerSettings {
  readonly listen: HostPort;
  /** Whether `Host` has to name this listener: on where pages say more than monitors need. */
  readonly checksHost: boolean;
  /** Above this the oldest silent connection gives way to a new one. */
  readonly maxConnections: number;
  /** Path to page; read anew for every request. */
  readonly pages: Readonly<Record<string, () => Page | Promise<Page>>>;
  readonly log: Log;
}

/** A small read-only server for operators and monitors, apart from the callers' listener. */
export interface PageServer {
  /** Rejects with the system's error where the address cannot be had. */
  readonly listen: () => Promise<AddressInfo>;
  /** Ends every connection, answered or not. */
  readonly close: () => Promise<void>;
}

// A request here is a few hundred bytes: whoever needs more space or time is no monitor.
const maxHeaderBytes = 8 * 1024;
const headersTimeoutMs = 2_000;
const requestTimeoutMs = 5_000;
const idleTimeoutMs = 10_000;
const checkIntervalMs = 1_000;

/** Creates the server of a few pages; GET and HEAD only. */
export function createPageServer(settings: PageServerSettings): PageServer {
  const server = createServer(
    {
      maxHeaderSize: maxHeaderBytes,
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: requestTimeoutMs,
      connectionsCheckingInterval: checkIntervalMs,
    },
    (request, response) => {
      void answer(settings, request, response);
    },
  );
  limitConnections(server, settings.maxConnections);
  server.timeout = idleTimeoutMs;
  server.on('clientError', refuseConnection);
  return { listen: () => listen(server, settings.listen), close: () => close(server) };
}

async function answer(settings: PageServerSettings, request: IncomingMessage, response: ServerResponse): Promise<void> {
  // A body has no meaning here; what comes of it is dropped, and the connection with it.
  if (request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined) {
    response.setHeader('connection', 'close');
  }
  const page = await pageFor(settings, request);
  if (page.status === 405) response.setHeader('allow', 'GET, HEAD');
  response.writeHead(page.status, {
    'content-type': page.type,
    'content-length': Buffer.byteLength(page.body),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(page.body);
  request.resume();
}

async function pageFor(settings: PageServerSettings, request: IncomingMessage): Promise<Page> {
  const hosts = hostCount(request);
  // Load balancers ask for health in HTTP/1.0 and name no host.
  if (hosts > 1 || (hosts === 0 && settings.checksHost)) return problem(400, 'Bad Request');
  const { localAddress } = request.socket;
  if (settings.checksHost && !isOwnHost(request.headers.host ?? '', settings.listen.host, localAddress)) {
    return problem(421, 'Misdirected Request');
  }
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  const create = Object.hasOwn(settings.pages, path) ? settings.pages[path] : undefined;
  if (create === undefined) return problem(404, 'Not Found');
  if (request.method !== 'GET' && request.method !== 'HEAD') return problem(405, 'Method Not Allowed');
  try {
    return await create();
  } catch (error) {
    settings.log.error('an admin page failed', { path, error: error instanceof Error ? error.message : 'unknown' });
    return problem(500, 'Internal Server Error');
  }
}

/** Node keeps the first of several `Host` fields; which one was meant is anyone's guess (RFC 9112 §3.2). */
function hostCount(request: IncomingMessage): number {
  return request.rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
}

function problem(status: number, title: string): Page {
  return { status, type: 'application/problem+json', body: JSON.stringify({ type: 'about:blank', title, status }) };
}

function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
}

function listen(server: Server, { host, port }: HostPort): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port }, () => {
      server.off('error', reject);
      server.on('error', () => {
        // One connection could not be accepted, for want of file descriptors: the next one may be.
      });
      const address = server.address();
      if (address === null || typeof address === 'string') reject(new Error('the listener has no address'));
      else resolve(address);
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => {
      resolve();
    });
    server.closeAllConnections();
  });
}
