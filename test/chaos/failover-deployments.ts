/** Ways to set up Redis and to have it fail over. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startCommand } from '../cli/started-command.js';
import { startCluster } from '../support/redis-cluster.js';
import { startSentinels } from '../support/redis-sentinel.js';
import { startRedis, startReplica, type RedisServer } from '../support/redis-server.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';
import { baseConfig, merge, type ConfigTree } from '../support/proxy-process.js';
import type { Deployment, FailoverCase } from './failovers.js';

const name = 'orders';
/** Milliseconds for all that waits for servers to find each other. */
const patienceMs = 120_000;
/** Milliseconds for which writes are held back before a fail-over. */
const heldMs = '6000';

/**
 * Writes are held until it is a replica: let go before, it would take and confirm some that the promoted one never
 * sees.
 */
async function demoted(old: RedisServer): Promise<void> {
  await until('the old primary is a replica', async () => (await old.client.role())[0] === 'slave', patienceMs);
  await old.client.call('client', 'unpause');
}

/** `sallyport store failover --yes`, as an operator runs it. */
async function commanded(t: Scope, store: ConfigTree): Promise<void> {
  const file = join(tempDir(t), 'sallyport.yaml');
  writeFileSync(file, baseConfig({ store: { redis: merge({ replicas: 1 }, store) } }));
  const command = startCommand(t, ['store', 'failover', '--config', file, '--yes', '--json']);
  const { code } = await command.exited;
  if (code !== 0) throw new Error(`it ended with ${String(code)}:\n${command.stdout()}${command.stderr()}`);
}

type SentinelWay = 'planned' | 'killed' | 'paused' | 'command';

export async function deploySentinel(t: Scope, copies: number, way: SentinelWay): Promise<Deployment> {
  const first = await startRedis(t);
  const servers = [first];
  for (let copy = 0; copy < copies; copy += 1) servers.push(await startReplica(t, first.port));
  const sentinels = await startSentinels(t, { name, primaryPort: first.port, quorum: 2, replicas: copies, count: 3 });
  let primary = first;
  let killed: RedisServer | null = null;

  const promoted = async (): Promise<RedisServer> =>
    until(
      'a replica is promoted',
      async () => {
        for (const server of servers) {
          if (server !== primary && (await server.client.role())[0] === 'master') return server;
        }
        return null;
      },
      patienceMs,
    );

  /** The server that all Sentinels take for a primary that is up, with all its replicas. */
  const agreedOn = async (): Promise<RedisServer | undefined> => {
    const infos = await Promise.all(sentinels.map(async ({ client }) => client.info('sentinel')));
    return servers.find(({ port }) => {
      const wanted = `status=ok,address=127.0.0.1:${String(port)},slaves=${String(copies)},`;
      return infos.every((info) => info.includes(wanted));
    });
  };

  const store: ConfigTree = { sentinel: { name, nodes: sentinels.map(({ port }) => `127.0.0.1:${String(port)}`) } };
  return {
    store,
    failOver: async () => {
      if (way === 'killed') {
        killed = primary;
        await primary.kill();
      } else if (way === 'command') {
        await commanded(t, store);
      } else {
        if (way === 'paused') await primary.client.call('client', 'pause', heldMs, 'write');
        await until(
          'a Sentinel begins',
          async () => {
            try {
              return (await sentinels[0]?.client.call('sentinel', 'failover', name)) === 'OK';
            } catch {
              return false;
            }
          },
          patienceMs,
        );
      }
      await promoted();
      if (way === 'paused') await demoted(primary);
      // Back before that, the one that was killed may be taken for the primary still, and the promoted one follows it.
      if (way === 'killed') {
        const isReplaced = async (): Promise<boolean> => {
          const named = await agreedOn();
          return named !== undefined && named !== killed;
        };
        await until('Sentinels name another', isReplaced, patienceMs);
      }
    },
    healed: async () => {
      await killed?.restart();
      killed = null;
      // Where a primary answers late, since the machine is busy, Sentinels replace it unasked.
      primary = await until(
        'all servers are in their places',
        async () => {
          const roles = await Promise.all(servers.map(async ({ client }) => await client.info('replication')));
          const areInPlace =
            roles.filter((info) => info.includes('role:master')).length === 1 &&
            roles.filter((info) => info.includes('master_link_status:up')).length === copies;
          return areInPlace ? await agreedOn() : undefined;
        },
        patienceMs,
      );
    },
  };
}

type ClusterWay = 'FAILOVER' | 'TAKEOVER' | 'killed' | 'paused';

async function deployCluster(t: Scope, way: ClusterWay): Promise<Deployment> {
  const cluster = await startCluster(t, 3, 1);
  let turn = 0;
  let killed: RedisServer | null = null;

  /** Who copies whom: the ports of the replicas by those of their primaries. */
  const copies = async (): Promise<ReadonlyMap<number, RedisServer>> => {
    const found = new Map<number, RedisServer>();
    for (const node of cluster.nodes) {
      const [role, , port] = await node.client.role();
      if (role === 'slave') found.set(Number(port), node);
    }
    return found;
  };

  return {
    store: { cluster: { nodes: cluster.nodes.map(({ port }) => `127.0.0.1:${String(port)}`) } },
    failOver: async () => {
      const pairs = [...(await copies())].sort(([one], [other]) => one - other);
      const [port, replica] = pairs[turn % pairs.length] ?? [];
      turn += 1;
      if (port === undefined || replica === undefined) throw new Error('no replicas');
      const primary = cluster.at(port);
      if (way === 'killed') {
        killed = primary;
        await primary.kill();
      } else {
        if (way === 'paused') await primary.client.call('client', 'pause', heldMs, 'write');
        await replica.client.call('cluster', 'failover', ...(way === 'FAILOVER' ? [] : ['takeover']));
      }
      await until('the replica is promoted', async () => (await replica.client.role())[0] === 'master', patienceMs);
      if (way === 'paused') await demoted(primary);
    },
    healed: async () => {
      await killed?.restart();
      killed = null;
      await until(
        'all servers are in their places',
        async () => {
          const infos = await Promise.all(cluster.nodes.map(async ({ client }) => client.info('replication')));
          const states = await Promise.all(
            cluster.nodes.map(async ({ client }) => String(await client.call('cluster', 'info'))),
          );
          return (
            infos.filter((info) => info.includes('role:master')).length === 3 &&
            states.every((state) => state.includes('cluster_state:ok')) &&
            infos.filter((info) => info.includes('master_link_status:up')).length === 3
          );
        },
        patienceMs,
      );
    },
  };
}

const sentinelWays: readonly (readonly [SentinelWay, string])[] = [
  ['planned', '`SENTINEL FAILOVER`'],
  ['killed', 'primary killed'],
  ['paused', '`CLIENT PAUSE 6000 WRITE`, then `SENTINEL FAILOVER`'],
  ['command', '`sallyport store failover --yes`'],
];
const clusterWays: readonly (readonly [ClusterWay, string])[] = [
  ['FAILOVER', '`CLUSTER FAILOVER`'],
  ['TAKEOVER', '`CLUSTER FAILOVER TAKEOVER`'],
  ['killed', 'primary killed'],
  ['paused', '`CLIENT PAUSE 6000 WRITE`, then `CLUSTER FAILOVER TAKEOVER`'],
];

export const failoverCases: readonly FailoverCase[] = [
  ...[1, 2].flatMap((copies) =>
    sentinelWays.map(([way, how]): FailoverCase => ({
      topology: `Sentinel, ${String(copies)} ${copies === 1 ? 'replica' : 'replicas'}`,
      replicas: 1,
      how,
      deploy: (t) => deploySentinel(t, copies, way),
    })),
  ),
  {
    topology: 'Sentinel, 2 replicas',
    replicas: 2,
    how: '`SENTINEL FAILOVER`',
    deploy: (t) => deploySentinel(t, 2, 'planned'),
  },
  ...clusterWays.map(([way, how]): FailoverCase => ({
    topology: 'Cluster, 3 × 1 replica',
    replicas: 1,
    how,
    deploy: (t) => deployCluster(t, way),
  })),
];
