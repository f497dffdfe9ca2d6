/**
 * Load of writes, each with a key of its own, as a process of its own:
 *
 *   node write-load.js URL SECONDS CONNECTIONS AUTHORIZATION
 *
 * Prints its result as JSON.
 */
import { randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { LoadResult } from './load.js';

const [url = '', seconds = '1', connections = '1', authorization = ''] = process.argv.slice(2);
const body = JSON.stringify({ items: [{ sku: 'A-1', quantity: 2 }], note: 'x'.repeat(100) });
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections) });
const latencies: number[] = [];
let [refused, broken] = [0, 0];
// Keys are cheap to make, so that the load is not what is measured.
const run = randomBytes(12).toString('hex');
let sent = 0;

async function write(): Promise<void> {
  const askedMs = performance.now();
  sent += 1;
  const headers = { authorization, 'content-type': 'application/json', 'content-length': body.length, 'idempotency-key': `${run}-${sent}` };
  await new Promise<void>((resolve) => {
    const req = request(url, { method: 'POST', agent, headers }, (res) => {
      res.resume().on('end', () => {
        latencies.push(performance.now() - askedMs);
        if (res.statusCode !== 200) refused += 1;
        resolve();
      });
    });
    req.on('error', () => {
      broken += 1;
      resolve();
    });
    req.end(body);
  });
}

const startedMs = performance.now();
const writer = async (): Promise<void> => {
  while (performance.now() - startedMs < Number(seconds) * 1000) await write();
};
await Promise.all(Array.from({ length: Number(connections) }, writer));
const tookS = (performance.now() - startedMs) / 1000;
agent.destroy();
latencies.sort((a, b) => a - b);
const quantile = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? 0;
const result: LoadResult = { requests: latencies.length, refused, broken, seconds: tookS, medianMs: quantile(0.5), slowMs: quantile(0.99) };
process.stdout.write(JSON.stringify(result));
