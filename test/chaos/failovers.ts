/**
 * What fail-overs of Redis cost: writes through two proxies all the while, most of them asked again 4 s later whatever
 * they were answered, and a receiver that counts how often each ran. Set against what the metrics say of it.
 */
import { randomUUID } from 'node:crypto';
import { Agent, request as send } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { startUpstreamServer } from '../support/upstream-server.js';
import type { Scope } from '../support/scope.js';
import { merge, startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';

/** A Redis that can be made to fail over. */
export interface Deployment {
  /** Of `store.redis`. */
  readonly store: ConfigTree;
  /** Has a primary replaced, and resolves when another one is. */
  readonly failOver: () => Promise<void>;
  /** Resolves when all servers are in their places again. */
  readonly healed: () => Promise<void>;
}

export interface FailoverCase {
  readonly topology: string;
  /** `store.redis.replicas`. */
  readonly replicas: number;
  readonly how: string;
  readonly deploy: (t: Scope) => Promise<Deployment>;
}

export interface FailoverCost {
  readonly failovers: number;
  readonly writes: number;
  /** Writes that the receiver ran more than once. */
  readonly ranTwice: number;
  /** What all proxies together said of it. */
  readonly duplicates: number;
  readonly lost: number;
  readonly offeredAgain: number;
  readonly noticed: number;
  /** Seconds from the first to the last 503 of each fail-over. */
  readonly secondsOf503: readonly number[];
  /**
   * Retries that were answered otherwise than their first attempt, by what they were told; those that ran anew after a
   * 503 do not count.
   */
  readonly oddRetries: ReadonlyMap<string, number>;
}

const callers = 12;
/** Of what is written, this part is asked again, so much later, milliseconds. */
const partAskedAgain = 0.6;
const askedAgainAfterMs = 4_000;
/** Pause of a caller between two writes, and what the receiver takes, milliseconds. */
const pauseMs = 20;
const receiverMs = 5;
/** Before the first fail-over, and after each, milliseconds. */
const quietMs = 3_000;
/** At the end: every retry is asked, and every settlement offered. */
const restMs = 9_000;

const subjects = Array.from({ length: callers }, (_, index) => `caller-${String(index)}`);

export async function measureFailovers(
  t: Scope,
  { replicas, deploy }: FailoverCase,
  failovers: number,
): Promise<FailoverCost> {
  const deployment = await deploy(t);
  const receiver = await startUpstreamServer(t);
  receiver.behave((req, res) => {
    req
      .resume()
      .on('end', () =>
        setTimeout(() => res.writeHead(201, { 'Content-Type': 'application/json' }).end('{"made":true}'), receiverMs),
      );
  });
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  const config: ConfigTree = {
    upstream: { response_timeout: '10s' },
    store: { redis: merge({ replicas }, deployment.store) },
    routes: [
      { name: 'create-order', path: '/orders', methods: ['POST'], subjects, permissions: [], idempotency: 'required' },
    ],
  };
  const proxies = [
    await startProxyProcess(t, { key, jwks, receiver, config }),
    await startProxyProcess(t, { key, jwks, receiver, config }),
  ];
  const load = startLoad(t, proxies);
  await delay(quietMs);
  const seconds: number[] = [];
  for (let done = 0; done < failovers; done += 1) {
    const fromMs = performance.now();
    await deployment.failOver();
    await deployment.healed();
    await delay(quietMs);
    seconds.push(load.secondsOf503(fromMs));
  }
  await delay(restMs);
  await load.stop();
  const runs = new Map<string, number>();
  for (const { complete, field } of receiver.requests) {
    const name = field('Idempotency-Key')[0] ?? '';
    if (complete) runs.set(name, (runs.get(name) ?? 0) + 1);
  }
  const sum = async (series: string): Promise<number> => {
    const values = await Promise.all(proxies.map(async (proxy) => proxy.metric(series)));
    return values.reduce((all, value) => all + value, 0);
  };
  return {
    failovers,
    writes: runs.size,
    ranTwice: [...runs.values()].filter((count) => count > 1).length,
    duplicates: await sum('sallyport_duplicate_dispatches_total'),
    lost: await sum('sallyport_lost_reservations_total'),
    offeredAgain: await sum('sallyport_settlements_offered_again_total'),
    noticed: await sum('sallyport_store_failovers_total'),
    secondsOf503: seconds,
    oddRetries: load.oddRetries,
  };
}

interface Load {
  /** From the first to the last 503 since then. */
  readonly secondsOf503: (sinceMs: number) => number;
  readonly oddRetries: ReadonlyMap<string, number>;
  readonly stop: () => Promise<void>;
}

function startLoad(t: Scope, proxies: readonly ProxyProcess[]): Load {
  const agent = new Agent({ keepAlive: true });
  t.teardown(() => agent.destroy());
  const refusedAtMs: number[] = [];
  const oddRetries = new Map<string, number>();
  const retries = new Set<Promise<void>>();
  let isOver = false;
  const working = subjects.map(async (sub, index) => work(sub, index));
  return {
    secondsOf503: (sinceMs) => {
      const times = refusedAtMs.filter((atMs) => atMs >= sinceMs);
      return times.length === 0 ? 0 : ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1000;
    },
    oddRetries,
    stop: async () => {
      isOver = true;
      await Promise.all(working);
      await Promise.all(retries);
    },
  };

  async function work(sub: string, index: number): Promise<void> {
    for (let next = index; !isOver; next += 1) {
      const key = randomUUID();
      const first = await write(sub, next, key);
      if (Math.random() < partAskedAgain) {
        const retry = askAgain(sub, next + 1, key, first);
        retries.add(retry);
        void retry.finally(() => retries.delete(retry));
      }
      await delay(pauseMs);
    }
  }

  async function askAgain(sub: string, to: number, key: string, first: string): Promise<void> {
    await delay(askedAgainAfterMs);
    const again = await write(sub, to, key);
    if (again === '201 replayed' || (first !== '201' && again === '201') || again.startsWith('503')) return;
    oddRetries.set(`${first}, then ${again}`, (oddRetries.get(`${first}, then ${again}`) ?? 0) + 1);
  }

  /** What it was told, in a word. */
  async function write(sub: string, to: number, key: string): Promise<string> {
    const proxy = proxies[to % proxies.length];
    if (proxy === undefined) throw new Error('no proxies');
    const headers = { ...proxy.authorization({ sub }), 'Idempotency-Key': key };
    return new Promise((resolve) => {
      const asked = send(
        { agent, host: '127.0.0.1', port: proxy.port, method: 'POST', path: '/orders', headers },
        (answer) => {
          if (answer.statusCode === 503) refusedAtMs.push(performance.now());
          const replayed = answer.headers['idempotent-replayed'] === 'true' ? ' replayed' : '';
          answer
            .resume()
            .on('end', () => resolve(`${String(answer.statusCode)}${replayed}`))
            .on('error', () => resolve('broken'));
        },
      );
      asked.on('error', () => resolve('broken'));
      asked.end('order');
    });
  }
}
