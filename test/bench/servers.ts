/**
 * Processes to measure against:
 *
 *   node servers.js receiver | bare
 *   node servers.js http-proxy UPSTREAM
 *   node servers.js http2-hello | http2-to-http1 UPSTREAM | http2-to-http2 UPSTREAM
 *
 * They print their port.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isHttp2Role, ordersBody, serveHttp2 } from './http2/servers.js';

/** Of what is asked for by size. */
const filler = Buffer.alloc(1024 ** 2, 'x');

const [role = '', ...args] = process.argv.slice(2);

if (role === 'receiver' || role === 'bare') serve();
else if (role === 'http-proxy') await proxy(args[0] ?? '');
else if (isHttp2Role(role)) serveHttp2(role, args[0]);

/** `node:http` and one constant answer, at the end of a body where there is one; `/bytes/N` answers with N bytes. */
function serve(): void {
  const server = createServer({ keepAliveTimeout: 600_000 }, (req, res) => {
    if (req.method === 'POST') req.resume().on('end', () => answer(req, res));
    else answer(req, res);
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${String((server.address() as AddressInfo).port)}\n`);
  });
}

function answer({ url = '' }: IncomingMessage, res: ServerResponse): void {
  if (url.startsWith('/bytes/')) {
    const bytes = Number(url.slice('/bytes/'.length));
    res.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes });
    res.end(filler.subarray(0, bytes));
    return;
  }
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(ordersBody) });
  res.end(ordersBody);
}

/** `@fastify/http-proxy` as it comes; the others do without its memory. */
async function proxy(upstream: string): Promise<void> {
  const [{ default: httpProxy }, { default: Fastify }] = await Promise.all([
    import('@fastify/http-proxy'),
    import('fastify'),
  ]);
  const app = Fastify({ keepAliveTimeout: 600_000 });
  await app.register(httpProxy, { upstream });
  await app.listen({ host: '127.0.0.1', port: 0 });
  process.stdout.write(`${String((app.server.address() as AddressInfo).port)}\n`);
}
