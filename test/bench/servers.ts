/**
 * Processes to measure against, and the load where `wrk` is missing:
 *
 *   node servers.js receiver | bare
 *   node servers.js http-proxy UPSTREAM
 *   node servers.js load URL SECONDS CONNECTIONS AUTHORIZATION
 *
 * Servers print their port, the load prints its result as JSON.
 */
import { createServer, request, Agent } from 'node:http';
import type { AddressInfo } from 'node:net';
import httpProxy from '@fastify/http-proxy';
import Fastify from 'fastify';

const body = JSON.stringify({ orders: [{ id: 1, state: 'shipped' }, { id: 2, state: 'open' }] });

/** What one run of load gave. */
export interface LoadResult {
  readonly requests: number;
  readonly failed: number;
  readonly seconds: number;
  readonly medianMs: number;
  readonly slowMs: number;
}

const [role = '', ...args] = process.argv.slice(2);

if (role === 'receiver' || role === 'bare') serve();
else if (role === 'http-proxy') await proxy(args[0] ?? '');
else if (role === 'load') process.stdout.write(JSON.stringify(await load(args[0] ?? '', Number(args[1]), Number(args[2]), args[3] ?? '')));

/** `node:http` and one constant answer. */
function serve(): void {
  const server = createServer({ keepAliveTimeout: 600_000 }, (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    res.end(body);
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${String((server.address() as AddressInfo).port)}\n`);
  });
}

/** `@fastify/http-proxy` as it comes. */
async function proxy(upstream: string): Promise<void> {
  const app = Fastify({ keepAliveTimeout: 600_000 });
  await app.register(httpProxy, { upstream });
  await app.listen({ host: '127.0.0.1', port: 0 });
  process.stdout.write(`${String((app.server.address() as AddressInfo).port)}\n`);
}

async function load(url: string, seconds: number, connections: number, authorization: string): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const startedMs = performance.now();
  const latencies: number[] = [];
  let failed = 0;
  const ask = async (): Promise<void> => new Promise((resolve) => {
    const askedMs = performance.now();
    const sent = request(url, { agent, headers: { authorization } }, (res) => {
      res.on('end', () => {
        latencies.push(performance.now() - askedMs);
        if (res.statusCode !== 200) failed += 1;
        resolve();
      });
      res.resume();
    });
    sent.on('error', () => {
      failed += 1;
      resolve();
    });
    sent.end();
  });
  const worker = async (): Promise<void> => {
    while (performance.now() - startedMs < seconds * 1000) await ask();
  };
  await Promise.all(Array.from({ length: connections }, worker));
  agent.destroy();
  latencies.sort((a, b) => a - b);
  const quantile = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? 0;
  return { requests: latencies.length, failed, seconds: (performance.now() - startedMs) / 1000, medianMs: quantile(0.5), slowMs: quantile(0.99) };
}
