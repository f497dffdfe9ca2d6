import t from 'tap';
import { slotOf } from '../../../../src/adapters/redis/topology/discovery.js';
import { startCluster } from '../../../support/redis-cluster.js';
import { until } from '../../../support/until.js';
import { acquire, freshScope, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';
import { countForgotten, startWriteLoad } from '../write-load.js';

t.test(
  'a Cluster loses a primary under load: a replica is promoted, the store heals, and forgets nothing that was confirmed',
  async (t) => {
    const cluster = await startCluster(t, 3, 1);
    const { store, up, down, failovers, log } = openStore(
      t,
      redisSettings(0, {
        topology: { kind: 'cluster', nodes: cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })) },
        replicas: 1,
        reserveTimeoutMs: 2_000,
        settleTimeoutMs: 2_000,
      }),
    );
    await up();
    t.equal(failovers(), 0);
    const load = startWriteLoad(store, 1);
    await load.more(300);

    const before = await cluster.primaries();
    const victim = cluster.at(before[0] ?? 0);
    const killedAtS = Math.floor(Date.now() / 1000);
    await victim.kill();
    await down();
    await load.more(100);
    await until('a replica is promoted', async () => {
      const others = cluster.nodes.filter((node) => node !== victim);
      const roles = await Promise.all(others.map(async ({ client }) => (await client.role())[0]));
      return roles.filter((role) => role === 'master').length === 3;
    });
    await until('the promoted primary has been seen', () => failovers() === 1);
    t.ok((store.issuedBeforeFloorS() ?? 0) >= killedAtS);
    // It has no replica before the killed one comes back as such.
    await victim.restart();
    await up();
    await load.more(300);
    await load.stop();
    t.equal(failovers(), 1);
    t.equal(
      await countForgotten(store, load.confirmed),
      0,
      `of ${String(load.confirmed.length)} confirmed, ${String(load.failed())} were refused meanwhile`,
    );
    t.comment(log.lines.join('\n'));
  },
);

t.test('a primary that is away: its part is refused, the others go on, and it comes back', async (t) => {
  const cluster = await startCluster(t, 3, 0, ['--cluster-require-full-coverage', 'no']);
  const [victim, other] = cluster.nodes;
  if (victim === undefined || other === undefined) throw new Error('three nodes');
  const { store, up, failovers } = openStore(
    t,
    redisSettings(0, {
      topology: { kind: 'cluster', nodes: cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port })) },
    }),
  );
  await up();
  const inSlotsOf = async (port: number) => {
    for (;;) {
      const scope = freshScope();
      if ((await cluster.portOf(slotOf(scope.principal))) === port) return scope;
    }
  };
  const [gone, there] = [await inSlotsOf(victim.port), await inSlotsOf(other.port)];
  await acquire(store, gone, reserveOf('a'));
  await victim.kill();
  await until('its part is refused', async () => !(await store.reserve(gone, reserveOf('b'))).ok);
  await acquire(store, there, reserveOf('a'));
  t.match(store.state().problem, new RegExp(`127\\.0\\.0\\.1:${String(victim.port)}: `), 'which one is away is said');
  await victim.restart();
  await up();
  await until('its part is there again', async () => (await store.reserve(gone, reserveOf('b'))).ok);
  t.match(await store.reserve(gone, reserveOf('b')), { value: { reserved: { kind: 'in_progress' } } });
  t.equal(failovers(), 1);
});
