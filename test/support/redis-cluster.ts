/** A Redis Cluster of real `redis-server` processes on loopback. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { freePort } from './listening.js';
import { redisCli } from './redis-cli.js';
import { startRedis, type RedisServer, type RedisServerOptions } from './redis-server.js';
import type { Scope } from './scope.js';
import { until } from './until.js';

export interface RedisCluster {
  readonly nodes: readonly RedisServer[];
  /** Primaries of now, by port. */
  readonly primaries: () => Promise<readonly number[]>;
  readonly at: (port: number) => RedisServer;
  /** Port of the primary that serves the slot, in the eyes of the last node. */
  readonly portOf: (slot: number) => Promise<number>;
}

/** Starts so many primaries, each with so many replicas, and waits until all of them know each other. */
export async function startCluster(
  t: Scope,
  primaries: number,
  replicas: number,
  settings: readonly string[] = [],
  envOf: (index: number) => RedisServerOptions['env'] = () => ({}),
): Promise<RedisCluster> {
  const nodes = await Promise.all(
    Array.from({ length: primaries * (1 + replicas) }, async (_, index) => {
      const bus = await freePort();
      const member = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000', '--cluster-port', String(bus)];
      return startRedis(t, [...member, '--appendfsync', 'everysec', ...settings], { env: envOf(index) ?? {} });
    }),
  );
  const addresses = nodes.map(({ port }) => `127.0.0.1:${String(port)}`);
  await promisify(execFile)(redisCli, [
    '--cluster',
    'create',
    ...addresses,
    '--cluster-replicas',
    String(replicas),
    '--cluster-yes',
  ]);
  await until('all nodes agree', async () => {
    const infos = await Promise.all(nodes.map(async ({ client }) => String(await client.call('cluster', 'info'))));
    return infos.every(
      (info) => info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${String(nodes.length)}`),
    );
  });
  return {
    nodes,
    at: (port) => {
      const node = nodes.find((candidate) => candidate.port === port);
      if (node === undefined) throw new Error(`no node on ${String(port)}`);
      return node;
    },
    portOf: async (slot) => {
      const ranges = (await nodes.at(-1)?.client.call('cluster', 'slots')) as [number, number, [string, number]][];
      const range = ranges.find(([first, last]) => first <= slot && slot <= last);
      if (range === undefined) throw new Error(`nobody serves slot ${String(slot)}`);
      return range[2][1];
    },
    primaries: async () => {
      const roles = await Promise.all(
        nodes.map(async ({ client, port }) => ((await client.role())[0] === 'master' ? port : null)),
      );
      return roles.filter((port) => port !== null);
    },
  };
}
