import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { withoutSchemas } from '../proxy/inbound/no-schemas.js';
import type { HostPort } from '../config/types.js';
import type { Log } from '../ports/system.js';
import { isOwnHost } from './host-check.js';
import { serveInTurns } from './turns.js';

/** What one path answers. */
export interface Page {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  /** Besides those that every page has. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** What a page may make of a request: its query, and `Accept`. */
export type CreatePage = (query: URLSearchParams, accept: string | undefined) => Page | Promise<Page>;

interface PageServerSettings {
  readonly listen: HostPort;
  /** Whether `Host` has to name this listener: on where pages say more than monitors need. */
  readonly checksHost: boolean;
  /** Above this the oldest silent connection gives way to a new one. */
  readonly maxConnections: number;
  /** Path to page; read anew for every request. */
  readonly pages: Readonly<Record<string, CreatePage>>;
  /** Pages that are answered to requests with this header alone; left out where there are none. */
  readonly own?: { readonly header: string; readonly isMeant: (path: string) => boolean };
  /** Pages that come of asking the upstream. */
  readonly probes?: Readonly<Record<string, () => Promise<Page>>>;
  readonly log: Log;
}

/** A small read-only server for operators and monitors, apart from the clients' listener. */
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

/** Where the router is sent with a path that is no page. */
const nowhere = '/nowhere';

const titles: ReadonlyMap<number, string> = new Map([
  [400, 'Bad Request'],
  [403, 'Forbidden'],
  [404, 'Not Found'],
  [405, 'Method Not Allowed'],
  [421, 'Misdirected Request'],
  [500, 'Internal Server Error'],
]);

/** Creates the server of a few pages, as routes of Fastify; GET and HEAD only. */
export function createPageServer(settings: PageServerSettings): PageServer {
  const { listen: place, pages, probes = {}, log } = settings;
  const isPage = (path: string): boolean => Object.hasOwn(pages, path) || Object.hasOwn(probes, path);
  const app = fastify({
    serverFactory: (listener) => createLimitedServer(settings.maxConnections, listener),
    // The router decodes paths, and takes whole URLs: what is not written exactly like a page is none.
    rewriteUrl: (request) => (isPage(pathOf(request)) ? (request.url ?? nowhere) : nowhere),
    clientErrorHandler: refuseConnection,
    forceCloseConnections: true,
    schemaController: withoutSchemas,
    return503OnClosing: false,
  });
  app.addHook('onRequest', (_request, reply, done) => {
    void reply.headers({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
    });
    done();
  });
  app.addHook('onRequest', (request, reply, done) => {
    const status = refusedHost(settings, request.raw);
    if (status === null) done();
    else sendProblem(reply, status);
  });
  app.addHook('onRequest', ({ originalUrl, raw }, reply, done) => {
    const isMissing =
      settings.own?.isMeant(pathOf({ url: originalUrl })) === true && raw.headers[settings.own.header] === undefined;
    if (isMissing || (settings.checksHost && isAskedElsewhere(raw))) sendProblem(reply, 403);
    else done();
  });
  app.addHook('onRequest', ({ method, originalUrl }, reply, done) => {
    // Before anything is read of its body.
    if (method === 'GET' || method === 'HEAD') done();
    else if (!isPage(pathOf({ url: originalUrl }))) sendProblem(reply, 404);
    else sendProblem(reply.header('allow', 'GET, HEAD'), 405);
  });
  app.setNotFoundHandler((_request, reply) => sendProblem(reply, 404));
  app.setErrorHandler((error, request, reply) => {
    log.error('an admin page failed', {
      path: pathOf(request),
      error: error instanceof Error ? error.message : 'unknown',
    });
    sendProblem(reply, 500);
  });
  for (const [path, create] of Object.entries(pages)) {
    app.get(path, async ({ originalUrl, raw }, reply) => {
      const { status, type, body, headers = {} } = await create(queryOf(originalUrl), raw.headers.accept);
      return send(reply.headers(headers), status, type, body);
    });
  }
  for (const [path, ask] of Object.entries(probes)) forwardProbe(app, path, ask);
  return { listen: () => listen(app, place), close: () => app.close() };
}

/** http-proxy wants to know where its requests go; ours go where the probe knows. */
const constantUpstream = 'http://upstream.invalid';

/**
 * Has http-proxy forward a path through `ask`, in the place of a client of its own. It gets nothing of the request: a
 * probe asks for a path of the config. It is loaded where there are probes.
 */
function forwardProbe(app: FastifyInstance, path: string, ask: () => Promise<Page>): void {
  const request: ProbeRequester = (_options, done) => {
    ask().then(
      ({ status, type, body }) =>
        done(null, { statusCode: status, headers: { 'content-type': type }, body: Buffer.from(body) }),
      (error: unknown) => done(error),
    );
  };
  void app.register(import('@fastify/http-proxy'), {
    upstream: constantUpstream,
    routes: [path],
    httpMethods: ['GET'],
    proxyPayloads: false,
    undici: { request } as object,
    // By itself it would ask again after a 503.
    replyOptions: { method: 'GET', queryString: () => '', rewriteRequestHeaders: () => ({}), retryDelay: () => null },
  });
}

/** What http-proxy takes as its client, though its types do not say so: an object with this as `request`. */
type ProbeRequester = (
  options: unknown,
  done: (
    error: unknown,
    response?: { readonly statusCode: number; readonly headers: Record<string, string>; readonly body: Buffer },
  ) => void,
) => void;

/** Counts every limit itself: the defaults of Node and Fastify decide nothing. */
function createLimitedServer(maxConnections: number, serve: RequestListener): Server {
  const server = createServer({
    maxHeaderSize: maxHeaderBytes,
    // Node would refuse these by itself, however many come.
    requireHostHeader: false,
    headersTimeout: headersTimeoutMs,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: requestTimeoutMs,
    connectionsCheckingInterval: checkIntervalMs,
  });
  serveInTurns(server, maxConnections, serve);
  server.timeout = idleTimeoutMs;
  return server;
}

/** Returns the status that a request is refused with for its `Host`, or `null`. */
function refusedHost({ checksHost, listen: { host } }: PageServerSettings, request: IncomingMessage): number | null {
  const hosts = hostCount(request);
  // Load balancers ask for health in HTTP/1.0 and name no host.
  if (hosts > 1 || (hosts === 0 && (checksHost || request.httpVersion !== '1.0'))) return 400;
  return !checksHost || isOwnHost(request.headers.host ?? '', host, request.socket.localAddress) ? null : 421;
}

/** Node keeps the first of several `Host` headers; which one was meant is anyone's guess (RFC 9112 §3.2). */
function hostCount(request: IncomingMessage): number {
  return request.rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length;
}

/**
 * Whether a page of another origin has a browser ask (Fetch Metadata). A link that somebody follows is no such request:
 * what it shows is seen by nobody but them.
 */
function isAskedElsewhere({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  if (site === undefined || site === 'same-origin' || site === 'none') return false;
  return headers['sec-fetch-mode'] !== 'navigate' || headers['sec-fetch-dest'] !== 'document';
}

function queryOf(url: string): URLSearchParams {
  const start = url.indexOf('?');
  return new URLSearchParams(start < 0 ? '' : url.slice(start + 1));
}

function pathOf({ url = '' }: Pick<FastifyRequest | IncomingMessage, 'url'>): string {
  return url.split('?', 1)[0] ?? '';
}

function sendProblem(reply: FastifyReply, status: number): FastifyReply {
  return send(
    reply,
    status,
    'application/problem+json',
    JSON.stringify({ type: 'about:blank', title: titles.get(status) ?? '', status }),
  );
}

/** Sends it as bytes: to JSON that comes as text Fastify adds a charset, and JSON has none (RFC 8259 §11). */
function send(reply: FastifyReply, status: number, type: string, body: string): FastifyReply {
  return reply.code(status).header('content-type', type).send(Buffer.from(body));
}

function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
}

async function listen(app: FastifyInstance, { host, port }: HostPort): Promise<AddressInfo> {
  await app.listen({ host, port });
  app.server.on('error', () => {
    // One connection could not be accepted, for want of file descriptors: the next one may be.
  });
  const address = app.server.address();
  if (address === null || typeof address === 'string') throw new Error('the listener has no address');
  return address;
}
