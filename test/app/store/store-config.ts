/** What configs of proxies with reservations have in common. */
import type { RedisServer } from '../../support/redis-server.js';
import type { ConfigTree } from '../../support/proxy-process.js';

/** A route that reserves its writes, one that does not, and single-use tokens. */
export const reservingRoutes: readonly object[] = [
  {
    name: 'create-order',
    methods: ['POST'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: ['orders:write'],
    idempotency: 'required',
  },
  {
    name: 'plain',
    methods: ['POST'],
    path: '/plain',
    subjects: ['checkout'],
    permissions: ['orders:write'],
    idempotency: 'none',
  },
  {
    name: 'once',
    methods: ['POST'],
    path: '/once',
    subjects: ['checkout'],
    permissions: ['orders:write'],
    idempotency: 'none',
    single_use: true,
  },
];

/**
 * Redis as the store. The deadlines are wide: machines that run tests are slow at times; a stop has to outlast them.
 */
export function redisStore({ port }: Pick<RedisServer, 'port'>, settings: ConfigTree = {}): ConfigTree {
  return {
    shutdown: { delay: '0s', grace: '20s' },
    store: {
      redis: { url: `redis://127.0.0.1:${String(port)}`, reserve_timeout: '10s', settle_timeout: '10s', ...settings },
    },
  };
}
