import { Agent, request, type RequestOptions } from 'node:http';
import type { LoadResult } from './load.js';
import { quantile } from './statistics.js';

/** One request of a load. */
export interface Asking {
  readonly url: string;
  readonly options: RequestOptions;
  readonly body: string | Buffer;
}

export interface ClosedLoop {
  readonly connections: number;
  /** The next request, or `null` when it is over. It is told how many there were, and since when, in milliseconds. */
  readonly next: (sent: number, elapsedMs: number) => Asking | null;
}

/** Keeps one request under way on each connection until it is over. */
export async function runClosedLoop({ connections, next }: ClosedLoop): Promise<LoadResult> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const latencies: number[] = [];
  let [sent, refused, broken] = [0, 0, 0];

  async function ask({ url, options, body }: Asking): Promise<void> {
    const askedMs = performance.now();
    await new Promise<void>((resolve) => {
      const req = request(url, { ...options, agent }, (res) => {
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
  const worker = async (): Promise<void> => {
    for (let asking = next(sent, 0); asking !== null; asking = next(sent, performance.now() - startedMs)) {
      sent += 1;
      await ask(asking);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  const seconds = (performance.now() - startedMs) / 1000;
  agent.destroy();
  return { requests: latencies.length, refused, broken, seconds, medianMs: quantile(latencies, 0.5), slowMs: quantile(latencies, 0.99) };
}
