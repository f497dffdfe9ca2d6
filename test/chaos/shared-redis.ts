/**
 * Proxies as processes of their own on one Redis server and one receiver: what a crash leaves is there for the next
 * one.
 */
import { randomUUID } from 'node:crypto';
import { startJwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import {
  connectRaw,
  request,
  requestBytes,
  type RawConnection,
  type RawResponse,
  type RequestInput,
} from '../support/raw-client.js';
import { startUpstreamServer, type ReceivedRequest, type UpstreamServer } from '../support/upstream-server.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { startRelay, type TcpRelay } from '../support/tcp-relay.js';
import { until } from '../support/until.js';
import { merge, startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';

const approved: ConfigTree = { methods: ['POST'], subjects: ['checkout'], permissions: ['orders:write'] };

const base: ConfigTree = {
  upstream: { connect_timeout: '200ms', response_timeout: '10s' },
  shutdown: { delay: '0s', grace: '20s' },
  routes: [
    { name: 'create-order', path: '/orders', ...approved, idempotency: 'required' },
    { name: 'single', path: '/single', ...approved, idempotency: 'none', single_use: true },
    {
      name: 'deduplicates',
      path: '/deduplicates',
      ...approved,
      idempotency: { mode: 'required', receiver: 'deduplicates' },
    },
    { name: 'plain', path: '/plain', ...approved, idempotency: 'none' },
  ],
};

export interface SharedRedis {
  readonly redis: RedisServer;
  readonly receiver: UpstreamServer;
  /** Starts a proxy, straight on Redis or through a relay that may misbehave. */
  readonly startProxy: (through?: TcpRelay) => Promise<ProxyProcess>;
  readonly startRelay: () => Promise<TcpRelay>;
  /** Resolves when the lease of every record that is pending is over, by the clock of Redis. */
  readonly leasesOver: () => Promise<void>;
  /** States of all records, sorted. */
  readonly states: () => Promise<string[]>;
  /** Requests that reached the receiver whole. */
  readonly executions: () => ReceivedRequest[];
}

export interface SharedRedisOptions {
  /** Laid over the config of every proxy. */
  readonly config?: ConfigTree;
  /**
   * Of `store.redis`. The deadlines are wide unless given: a test that holds something back must not be overtaken by
   * them.
   */
  readonly store?: ConfigTree;
  /** Arguments of `redis-server`. */
  readonly redis?: readonly string[];
  readonly redisEnv?: Readonly<Record<string, string>>;
}

export async function shareRedis(t: Scope, options: SharedRedisOptions = {}): Promise<SharedRedis> {
  const redis = await startRedis(t, options.redis, { env: options.redisEnv ?? {} });
  await redis.client.connect().catch(() => undefined);
  const receiver = await startUpstreamServer(t);
  const key = rsaKey();
  const jwks = await startJwksServer(t, { keys: [key] });
  return {
    redis,
    receiver,
    startProxy: async (through) => {
      const port = through?.port ?? redis.port;
      const store = {
        redis: { url: `redis://127.0.0.1:${port}`, reserve_timeout: '8s', settle_timeout: '8s', ...options.store },
      };
      return startProxyProcess(t, { key, jwks, receiver, config: merge(merge(base, { store }), options.config ?? {}) });
    },
    startRelay: async () => startRelay(t, redis.port),
    leasesOver: async () => {
      await until('every lease to be over', async () => {
        const [seconds] = await redis.client.time();
        const ends = await Promise.all(
          (await redis.client.keys('sallyport:*:i:*')).map(async (name) => redis.client.hget(name, 'l')),
        );
        return ends.every((end) => Number(end) < (Number(seconds) - 1) * 1000);
      });
    },
    states: async () => {
      const keys = await redis.client.keys('sallyport:*:i:*');
      const states = await Promise.all(keys.map(async (name) => redis.client.hget(name, 's')));
      return states.map((state) => state ?? 'gone').sort();
    },
    executions: () => receiver.requests.filter(({ complete }) => complete),
  };
}

export interface ChaosWrite {
  readonly key?: string;
  readonly path?: string;
  readonly body?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** A write as the raw client takes it. */
export function writeTo(
  proxy: ProxyProcess,
  { key = randomUUID(), path = '/orders', body = 'body', claims }: ChaosWrite = {},
): RequestInput {
  return { method: 'POST', path, headers: { ...proxy.authorization(claims), 'Idempotency-Key': key }, body };
}

/** Sends a write and waits for its answer. */
export async function write(proxy: ProxyProcess, input?: ChaosWrite): Promise<RawResponse> {
  return request(proxy.port, writeTo(proxy, input), { limitMs: 40_000 });
}

/**
 * Waits until tokens that are issued now pass once: those of before the first start of all may have been used, for all
 * that is known.
 */
export async function singlePasses(proxy: ProxyProcess): Promise<void> {
  await until(
    'a single-use token to pass',
    async () => (await write(proxy, { path: '/single', claims: { jti: randomUUID() } })).status === 200,
  );
}

/** Sends a write and does not wait. */
export async function beginWrite(t: Scope, proxy: ProxyProcess, input?: ChaosWrite): Promise<RawConnection> {
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(requestBytes(proxy.port, writeTo(proxy, input)));
  return connection;
}

/** Ends a process as a crash does. */
export async function kill(proxy: ProxyProcess): Promise<void> {
  proxy.process.signal('SIGKILL');
  await proxy.process.exited;
}

/** Last part of the `type` of a problem document, or the status where it is none. */
export function problemOrStatus(answer: RawResponse): string {
  try {
    const { type } = JSON.parse(answer.text) as { type?: string };
    return type?.replace('urn:sallyport:', '') ?? String(answer.status);
  } catch {
    return String(answer.status);
  }
}
