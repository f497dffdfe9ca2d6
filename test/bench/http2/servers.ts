/** What Node.js does over HTTP/2 without any work of ours: a server that answers by itself, and naive proxies. */
import { Agent, request as requestHttp1 } from 'node:http';
import {
  connect,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';

/** An answer in JSON, and one message of gRPC: its flag, its length and its bytes. */
export const ordersBody = JSON.stringify({
  orders: [
    { id: 1, state: 'shipped' },
    { id: 2, state: 'open' },
  ],
});
export const grpcMessage = Buffer.concat([Buffer.from([0, 0, 0, 0, 32]), Buffer.alloc(32, 'x')]);

/** Fields that HTTP/2 has no place for, of an answer of HTTP/1.1. */
const connectionFields: ReadonlySet<string> = new Set(['connection', 'keep-alive', 'transfer-encoding']);

export type Http2Role = 'http2-hello' | 'http2-to-http1' | 'http2-to-http2';

export function isHttp2Role(role: string): role is Http2Role {
  return role === 'http2-hello' || role === 'http2-to-http1' || role === 'http2-to-http2';
}

/** Serves over HTTP/2 in clear text, and prints the port. */
export function serveHttp2(role: Http2Role, upstream = ''): void {
  const server = createServer();
  if (role === 'http2-hello') server.on('stream', answer);
  else if (role === 'http2-to-http1') forwardToHttp1(server, upstream);
  else forwardToHttp2(server, upstream);
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${String((server.address() as AddressInfo).port)}\n`);
  });
}

/** A message of gRPC with its status behind it, or JSON. */
function answer(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
  stream.on('error', ignore);
  if (headers['content-type'] !== 'application/grpc') {
    stream.resume();
    stream.respond({
      ':status': 200,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(ordersBody),
    });
    stream.end(ordersBody);
    return;
  }
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.resume().on('end', () => {
    if (stream.destroyed) return;
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.end(grpcMessage);
  });
}

/** One connection to the upstream; each stream is one of that, piped both ways, its trailers carried on. */
function forwardToHttp2(server: Http2Server, upstream: string): void {
  const session = connect(upstream);
  server.on('stream', (stream, headers) => {
    const sent = session.request(headers);
    let trailers: OutgoingHttpHeaders = {};
    stream.on('error', ignore);
    sent.on('error', ignore);
    sent.on('response', (fields) => {
      if (stream.destroyed) return;
      stream.on('wantTrailers', () => stream.destroyed || stream.sendTrailers(trailers));
      stream.respond(fields, { waitForTrailers: true });
      sent.pipe(stream);
    });
    sent.on('trailers', (fields: OutgoingHttpHeaders) => (trailers = fields));
    stream.pipe(sent);
  });
}

/** As many connections to the upstream as it takes, each kept. */
function forwardToHttp1(server: Http2Server, upstream: string): void {
  const agent = new Agent({ keepAlive: true });
  server.on('stream', (stream, headers) => {
    const fields = Object.entries(headers).filter(([name]) => !name.startsWith(':'));
    const sent = requestHttp1(`${upstream}${headers[':path'] ?? '/'}`, {
      agent,
      method: headers[':method'],
      headers: { ...Object.fromEntries(fields), host: headers[':authority'] },
    });
    stream.on('error', ignore);
    sent.on('error', () => stream.close());
    sent.on('response', (response) => {
      if (stream.destroyed) {
        response.destroy();
        return;
      }
      const passed = Object.entries(response.headers).filter(([name]) => !connectionFields.has(name));
      stream.respond({ ...Object.fromEntries(passed), ':status': response.statusCode });
      response.pipe(stream);
    });
    stream.pipe(sent);
  });
}

const ignore = (): void => undefined;
