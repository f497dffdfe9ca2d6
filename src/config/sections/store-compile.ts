import type { RedisTopology, RedisStoreSettings, StoreSettings } from '../types.js';
import { located } from './located.js';
import { readNodeAddress, readRedisUrl } from './redis-addresses.js';
import type { RedisFile, StoreFile } from './store-schema.js';

/** Where reservations are kept; `null` where nothing says so. */
export function compileStore(file: StoreFile | null, folder: string): StoreSettings | null {
  if (file === null) return null;
  return file.redis === null ? { kind: 'memory' } : compileRedis(file.redis, folder);
}

function compileRedis(file: RedisFile, folder: string): RedisStoreSettings {
  const tls = file.tls ?? (usesTls(file) ? { ca_file: null, server_name: null } : null);
  return {
    kind: 'redis',
    topology: topologyOf(file),
    username: file.username,
    passwordFile: located(folder, file.password_file),
    tls: tls === null ? null : { caFile: located(folder, tls.ca_file), serverName: tls.server_name },
    prefix: file.prefix,
    replicas: file.replicas,
    reserveTimeoutMs: file.reserve_timeout,
    settleTimeoutMs: file.settle_timeout,
    startsWithoutRevocations: file.start_without_revocations,
    keptPerCaller: file.kept_per_caller,
    durability: file.durability,
  };
}

/** Whether what is sent to Redis is encrypted. */
export function usesTls({ url, tls }: Pick<RedisFile, 'url' | 'tls'>): boolean {
  return url === null ? tls !== null : readRedisUrl(url)?.tls === true;
}

/** How Redis is found. The rules see to it that the file says one way. */
export function topologyOf({ url, sentinel, cluster }: RedisFile): RedisTopology {
  if (sentinel !== null) return { kind: 'sentinel', name: sentinel.name, nodes: placesOf(sentinel.nodes) };
  if (cluster !== null) return { kind: 'cluster', nodes: placesOf(cluster.nodes) };
  const { host, port, database } = readRedisUrl(url ?? '') ?? { host: '', port: 0, database: 0 };
  return { kind: 'single', host, port, database };
}

function placesOf(nodes: readonly string[]): readonly { readonly host: string; readonly port: number }[] {
  return nodes.flatMap((node) => readNodeAddress(node) ?? []);
}
