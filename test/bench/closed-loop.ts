import { Agent, request, type RequestOptions } from 'node:http';
import { setTimeout } from 'node:timers/promises';
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
  /**
   * Each request has its time, so many a second; those that are late are sent at once. As soon as a connection is free
   * unless given.
   */
  readonly perSecond?: number;
  /** The next request, or `null` when it is over. It is told how many there were, and since when, in milliseconds. */
  readonly next: (sent: number, elapsedMs: number) => Asking | null;
}

/** Keeps one request under way on each connection, or as many as the rate asks for, until it is over. */
export async function runClosedLoop({ connections, perSecond, next }: ClosedLoop): Promise<LoadResult> {
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
      const earlyMs = perSecond === undefined ? 0 : startedMs + (sent * 1000) / perSecond - performance.now();
      if (earlyMs >= 1) await setTimeout(earlyMs);
      await ask(asking);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  const seconds = (performance.now() - startedMs) / 1000;
  agent.destroy();
  return {
    requests: latencies.length,
    refused,
    broken,
    seconds,
    medianMs: quantile(latencies, 0.5),
    slowMs: quantile(latencies, 0.99),
  };
}
