/**
 * Load where `wrk` is missing, as a process of its own:
 *
 *   node plain-load.js PLAN URL SECONDS CONNECTIONS
 *
 * With 0 seconds it uses each path and token once. Prints its result as JSON.
 */
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import type { LoadResult } from './load.js';
import type { RequestPlan } from './request-plan.js';

const [planFile = '', url = '', seconds = '1', connections = '1'] = process.argv.slice(2);
const { method, paths, tokens, bodyBytes } = JSON.parse(readFileSync(planFile, 'utf8')) as RequestPlan;
const body = Buffer.alloc(bodyBytes, 'x');
const agent = new Agent({ keepAlive: true, maxSockets: Number(connections) });
const latencies: number[] = [];
let [sent, refused, broken] = [0, 0, 0];

async function ask(): Promise<void> {
  const askedMs = performance.now();
  const token = tokens[sent % Math.max(1, tokens.length)];
  const path = paths[sent % paths.length] ?? '/';
  sent += 1;
  const headers = {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(bodyBytes === 0 ? {} : { 'content-type': 'application/octet-stream', 'content-length': bodyBytes }),
  };
  await new Promise<void>((resolve) => {
    const req = request(`${url}${path}`, { method, agent, headers }, (res) => {
      res.resume().on('end', () => {
        latencies.push(performance.now() - askedMs);
        if ((res.statusCode ?? 0) >= 400) refused += 1;
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
const once = Math.max(paths.length, tokens.length);
const isOver = (): boolean => (Number(seconds) === 0 ? sent >= once : performance.now() - startedMs >= Number(seconds) * 1000);
const worker = async (): Promise<void> => {
  while (!isOver()) await ask();
};
await Promise.all(Array.from({ length: Number(connections) }, worker));
const tookS = (performance.now() - startedMs) / 1000;
agent.destroy();
latencies.sort((a, b) => a - b);
const quantile = (share: number): number => latencies[Math.floor(latencies.length * share)] ?? 0;
const result: LoadResult = { requests: latencies.length, refused, broken, seconds: tookS, medianMs: quantile(0.5), slowMs: quantile(0.99) };
process.stdout.write(JSON.stringify(result));
