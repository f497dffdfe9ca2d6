/** Revocations on a Redis Cluster and behind Sentinels: from one client to another. */
import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { slotOf } from '../../../src/adapters/redis/topology/discovery.js';
import type { RedisSettings } from '../../../src/adapters/redis/client/settings.js';
import type { NewRevocation } from '../../../src/decision/revocation/record.js';
import { startCluster } from '../../support/redis-cluster.js';
import { startRedis } from '../../support/redis-server.js';
import { startSentinels } from '../../support/redis-sentinel.js';
import { until } from '../../support/until.js';
import { leastRights, openStore, redisSettings } from './redis-store.js';

const clusterRights = [...leastRights, '+cluster|slots', '+asking'];

function revocation(): NewRevocation {
  return {
    id: randomBytes(16).toString('base64url'),
    kind: 'subject',
    value: 'checkout',
    issuer: null,
    reason: 'a test',
    author: 'ann',
  };
}

/** One client revokes and takes back; the other hears of it and reads it. */
async function throughAnother(t: Test, settings: RedisSettings): Promise<void> {
  const [here, there] = [openStore(t, settings), openStore(t, settings)];
  await Promise.all([here.up(), there.up()]);
  let heard = 0;
  const news = there.store.revocations.follow(() => (heard += 1));
  t.teardown(() => news.close());
  await until('it listens', () => {
    news.refresh();
    return news.isOpen();
  });
  const before = heard;
  const made = revocation();
  t.match(await here.store.revocations.revoke(made, 60_000), { ok: true, value: { isAnnounced: true } });
  await until('the other hears of it', () => heard > before);
  const loaded = await there.store.revocations.load(null);
  t.same(loaded.ok && loaded.value?.revocations.map(({ id }) => id), [made.id]);
  t.match(await here.store.revocations.undo(made.id, { author: 'ann', reason: null }), {
    ok: true,
    value: { found: 'undone' },
  });
  t.match(await there.store.revocations.load(null), {
    ok: true,
    value: { revocations: [], undone: [{ id: made.id }] },
  });
}

t.test('a Cluster, with the rights that docs/storage.md lists', async (t) => {
  const cluster = await startCluster(t, 3, 0);
  for (const { client } of cluster.nodes) {
    await client.call('ACL', 'SETUSER', 'sallyport', 'on', 'nopass', ...clusterRights);
  }
  const nodes = cluster.nodes.map(({ port }) => ({ host: '127.0.0.1', port }));
  await throughAnother(t, redisSettings(0, { topology: { kind: 'cluster', nodes }, username: 'sallyport' }));
  const owner = cluster.at(await cluster.portOf(slotOf('revoked')));
  t.same(
    (await owner.client.keys('*')).filter((name) => !name.endsWith(':floor')),
    ['sallyport:{revoked}:list'],
    'on the slot of its hash tag',
  );
});

t.test('behind a Sentinel', async (t) => {
  const primary = await startRedis(t);
  const [sentinel] = await startSentinels(t, {
    name: 'main',
    primaryPort: primary.port,
    quorum: 1,
    replicas: 0,
    count: 1,
  });
  await throughAnother(
    t,
    redisSettings(0, {
      topology: { kind: 'sentinel', name: 'main', nodes: [{ host: '127.0.0.1', port: sentinel?.port ?? 0 }] },
    }),
  );
});
