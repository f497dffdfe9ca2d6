/** The section that says where reservations are kept. */
import type { z } from 'zod';
import { nodeAddress, redisUrl } from './redis-addresses.js';
import { duration, filePath, flag, host, integer, line, list, map, size, text, visibleText, word } from './scalars.js';

const tlsSchema = map({
  ca_file: filePath()
    .nullable()
    .prefault(null)
    .describe('Authorities in PEM that vouch for Redis, instead of the system’s. Read again when it changes.'),
  server_name: host()
    .nullable()
    .prefault(null)
    .describe('Name its certificate has to bear, where that is not the host connected to.'),
});

const nodes = list(nodeAddress(), 1, 'addresses such as redis-0:6379');

const sentinelSchema = map({
  name: line(128).describe('Name of the group of servers, as the Sentinels know it.'),
  nodes: nodes.describe('Addresses of Sentinels: HOST:PORT. One that answers is enough.'),
});

const clusterSchema = map({
  nodes: nodes.describe('Addresses of servers of the Cluster: HOST:PORT. One that answers is enough.'),
});

const redisSchema = map({
  url: redisUrl()
    .nullable()
    .prefault(null)
    .describe(
      'One server: `redis://HOST:PORT` or, with TLS, `rediss://HOST:PORT`, with `/N` for the database. Port 6379 unless given.',
    ),
  sentinel: sentinelSchema.nullable().prefault(null).describe('Instead of `url`: the primary that Sentinels name.'),
  cluster: clusterSchema.nullable().prefault(null).describe('Instead of `url`: a Redis Cluster.'),
  username: visibleText(128)
    .nullable()
    .prefault(null)
    .describe('User of the server’s access list; without one, the default user.'),
  password_file: filePath().nullable().prefault(null).describe('File with the password. Read again at each connect.'),
  tls: tlsSchema
    .nullable()
    .prefault(null)
    .describe('TLS towards Redis. With `url`, `rediss://` asks for it; otherwise `{}` does.'),
  prefix: text(/^[A-Za-z0-9._-]+$/, '1 to 64 letters, digits and `._-`', 64)
    .prefault('sallyport')
    .describe('First part of every key. Proxies that share reservations share it.'),
  replicas: integer(0, 10)
    .prefault(0)
    .describe(
      'Replicas that have to confirm a reservation before the write is sent on, and what `sallyport revoke` writes.',
    ),
  reserve_timeout: duration('10ms', '10s')
    .prefault('250ms')
    .describe('Longest wait for a reservation, replicas included; then 503.'),
  settle_timeout: duration('10ms', '60s')
    .prefault('1s')
    .describe(
      'Longest wait for a result to be kept before the caller is answered; then it is tried again. At most half of `shutdown.grace`.',
    ),
  start_without_revocations: flag()
    .prefault(false)
    .describe(
      'Set to true to serve protected routes while what `sallyport revoke` wrote was never read since the start: a caller that is revoked there is ' +
        'let in until Redis is back. Otherwise they answer 503, and `/readyz` too.',
    ),
  kept_per_caller: size('64KiB', '1024GiB')
    .nullable()
    .prefault(null)
    .describe(
      'Memory that the kept results of one caller may take. Beyond it its writes run and are kept without their answers; beyond twice of it new ones ' +
        'are refused with 429. null: a quarter of the server’s `maxmemory`; no limit where it has none.',
    ),
  durability: word('verified', 'unverified', 'none')
    .prefault('verified')
    .describe(
      '`verified`: settings that can forget are refused. `unverified`: those that Redis does not tell are taken to be fit. `none`: any are.',
    ),
});

export const storeSchema = map({
  redis: redisSchema
    .nullable()
    .prefault(null)
    .describe(
      'Redis 6.2 or newer, or Valkey: shared by all proxies in front of a service. It ' +
        'needs `maxmemory-policy noeviction`, and `appendonly yes` or a replica; see [storage.md](storage.md#what-the-server-has-to-be).',
    ),
  memory: map({})
    .nullable()
    .prefault(null)
    .describe('Instead of `redis`: this process alone, forgotten at its end. For development.'),
});

export type StoreFile = z.output<typeof storeSchema>;
export type RedisFile = z.output<typeof redisSchema>;
