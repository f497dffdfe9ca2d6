/**
 * A proxy whose receiver, keys and Redis are behind relays that misbehave, on a machine whose clock and names do too.
 */
import { startJwksServer, type JwksServer } from '../support/jwks-server.js';
import { rsaKey } from '../support/keys.js';
import { createFaultyHost, type FaultyHost } from '../support/faulty-host.js';
import { startUpstreamServer, type UpstreamServer } from '../support/upstream-server.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { startRelay, type TcpRelay } from '../support/tcp-relay.js';
import { merge, startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';

export interface Setup {
  readonly proxy: ProxyProcess;
  readonly receiver: UpstreamServer;
  readonly jwks: JwksServer;
  readonly redis: RedisServer;
  readonly relays: { readonly receiver: TcpRelay; readonly keys: TcpRelay; readonly redis: TcpRelay };
  readonly machine: FaultyHost;
  /** Puts a config in force with this laid over it. */
  readonly reload: (overrides: ConfigTree) => void;
}

const allowed: ConfigTree = { subjects: ['checkout'], permissions: [] };

export const outageRoutes: readonly ConfigTree[] = [
  { name: 'read', methods: ['GET'], path: '/orders', ...allowed },
  { name: 'write', methods: ['POST'], path: '/orders', ...allowed, idempotency: 'required' },
  { name: 'public', methods: ['GET'], path: '/healthz', access: 'public' },
];

export async function startSetup(t: Scope): Promise<Setup> {
  const receiver = await startUpstreamServer(t);
  const jwks = await startJwksServer(t);
  const redis = await startRedis(t);
  await redis.client.connect().catch(() => undefined);
  const relays = {
    receiver: await startRelay(t, receiver.port),
    keys: await startRelay(t, jwks.port),
    redis: await startRelay(t, redis.port),
  };
  const machine = createFaultyHost(t);
  const config: ConfigTree = {
    upstream: {
      url: `http://receiver.test:${relays.receiver.port}`,
      connect_timeout: '1s',
      response_timeout: '1s',
      idle_timeout: '1s',
    },
    issuers: {
      core: {
        jwks_url: `http://keys.test:${relays.keys.port}/jwks.json`,
        allow_http: true,
        jwks: { min_age: '100ms', max_age: '300ms', cooldown: '200ms', timeout: '700ms', max_bytes: '64KiB' },
      },
    },
    store: {
      redis: { url: `redis://redis.test:${relays.redis.port}`, reserve_timeout: '700ms', settle_timeout: '700ms' },
    },
    routes: outageRoutes,
  };
  const proxy = await startProxyProcess(t, { key: rsaKey(), receiver, jwks, config, env: machine.env });
  return {
    proxy,
    receiver,
    jwks,
    redis,
    relays,
    machine,
    reload: (overrides) => {
      proxy.rewrite(merge(config, overrides));
    },
  };
}
