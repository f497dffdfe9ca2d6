import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { slotOf } from '../../../src/adapters/redis/topology/discovery.js';
import { recordIdOf, type ReservationScope } from '../../../src/decision/idempotency/scope.js';
import type { UnsettledList, UnsettledQuery } from '../../../src/ports/idempotency.js';
import type { RedisStore } from '../../../src/adapters/redis/reservation-store.js';
import { startCluster } from '../../support/redis-cluster.js';
import { startSentinels } from '../../support/redis-sentinel.js';
import { startRedis } from '../../support/redis-server.js';
import { acquire, freshAttempt, freshScope, markOf, reserveOf } from '../store-commands.js';
import { leastRights, openStore, redisSettings } from './redis-store.js';

t.jobs = 3;

const long = { leaseMs: 3_600_000, retentionMs: 3_600_000 };

function freshRecord(): ReservationScope {
  return { ...freshScope(), token: null };
}

function idOf(scope: ReservationScope): string {
  return recordIdOf(scope) ?? '';
}

async function listed(store: RedisStore, query: Partial<UnsettledQuery> = {}): Promise<UnsettledList> {
  const found = await store.unsettled.list({ inDoubtOnly: true, most: 1_000, onProgress: () => undefined, ...query });
  if (!found.ok) throw new Error(found.error.reason);
  return found.value;
}

function idsOf({ records }: UnsettledList): readonly string[] {
  return records.map(({ id }) => id);
}

/** A record in each state. */
async function oneOfEach(store: RedisStore) {
  const [pending, lapsed, marked, completed, withdrawn] = [
    freshRecord(),
    freshRecord(),
    freshRecord(),
    freshRecord(),
    freshRecord(),
  ];
  await acquire(store, lapsed, reserveOf('lapsed', { leaseMs: 1, retentionMs: 3_600_000, route: 'pay' }));
  // Of two that were begun in one millisecond either may come first.
  await delay(2);
  const fence = await acquire(store, marked, reserveOf('marked', { ...long, route: 'create-order' }));
  await store.mark(marked, markOf('marked', fence));
  await acquire(store, pending, reserveOf('pending', long));
  const done = await acquire(store, completed, reserveOf('completed', long));
  const response = { status: 200, headers: [], body: Buffer.from('kept') };
  await store.complete(completed, {
    attempt: 'completed',
    fence: done,
    fingerprint: 'f',
    state: 'completed',
    response,
    retentionMs: 3_600_000,
  });
  await store.release(withdrawn, { attempt: 'withdrawn' });
  return { pending: idOf(pending), lapsed: idOf(lapsed), marked: idOf(marked) };
}

t.test('what is not settled is found, the oldest first; what is settled is not', async (t) => {
  const redis = await startRedis(t);
  const { store, up } = openStore(t, redisSettings(redis.port));
  await up();
  const { pending, lapsed, marked } = await oneOfEach(store);
  const inDoubt = await listed(store);
  t.same(idsOf(inDoubt), [lapsed, marked]);
  t.same({ ...inDoubt, records: [] }, { records: [], isWhole: true, keys: 5, unreadable: 0 });
  t.match(
    inDoubt.records.map(({ shown }) => shown.record),
    [
      { state: 'pending', owner: 'lapsed', route: 'pay', takenOver: false, response: null },
      { state: 'unknown', owner: 'marked', route: 'create-order' },
    ],
  );
  t.same(idsOf(await listed(store, { inDoubtOnly: false })), [lapsed, marked, pending]);
  t.same(await listed(openStore(t, redisSettings(redis.port, { prefix: 'other' })).store), {
    records: [],
    isWhole: true,
    keys: 0,
    unreadable: 0,
  });
});

t.test('keys of others are passed over; records that cannot be read are counted', async (t) => {
  const redis = await startRedis(t);
  const { store, up } = openStore(t, redisSettings(redis.port));
  await up();
  const { marked, lapsed } = await oneOfEach(store);
  const key = (last: string): string => `sallyport:{${'p'.repeat(43)}}:i:${last.repeat(43)}`;
  await redis.client.set(key('a'), 'no hash');
  await redis.client.hset('sallyport:{x}:i:y', 's', 'unknown');
  await redis.client.hset(`sallyport:{${'p'.repeat(43)}}:t:${'t'.repeat(43)}`, 's', 'unknown');
  await redis.client.hset(`sallyport2:{${'p'.repeat(43)}}:i:${'o'.repeat(43)}`, 's', 'unknown');
  await redis.client.hset(key('b'), 's', 'unknown', 'v', '1');
  await redis.client.hset(
    key('c'),
    's',
    'unknown',
    'v',
    '2',
    'fp',
    'f',
    'o',
    'x',
    'f',
    '1',
    'c',
    '1',
    'l',
    '1',
    'to',
    '0',
  );
  const found = await listed(store);
  t.same(idsOf(found), [lapsed, marked]);
  t.equal(found.unreadable, 2);
});

t.test(
  'a record of a version that wrote no route is found all the same, and is taken over and settled as any other',
  async (t) => {
    const redis = await startRedis(t);
    const { store, up } = openStore(t, redisSettings(redis.port));
    await up();
    const scope = freshRecord();
    await acquire(store, scope, reserveOf('before', { leaseMs: 1, retentionMs: 3_600_000, takesOver: true }));
    await redis.client.hdel(`sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`, 'r');
    t.match((await listed(store)).records, [{ id: idOf(scope), shown: { record: { owner: 'before', route: null } } }]);
    const fence = await acquire(store, scope, reserveOf('after', { ...long, takesOver: true, route: 'pay' }));
    t.match((await listed(store, { inDoubtOnly: false })).records, [
      { shown: { record: { owner: 'after', route: 'pay', takenOver: true } } },
    ]);
    await store.mark(scope, markOf('after', fence));
    t.match(await store.resolve(scope, 'committed'), { ok: true, value: 'resolved' });
    t.same(idsOf(await listed(store, { inDoubtOnly: false })), []);
  },
);

t.test('of many keys few are looked at in one go, and the search ends at the most that was asked for', async (t) => {
  const redis = await startRedis(t);
  const { store, up } = openStore(t, redisSettings(redis.port));
  await up();
  const pipeline = redis.client.pipeline();
  for (let index = 0; index < 20_000; index += 1) pipeline.set(`somebody-else:${String(index)}`, 'x');
  await pipeline.exec();
  const ids = new Set<string>();
  for (let index = 0; index < 60; index += 1) {
    const scope = freshRecord();
    const attempt = freshAttempt();
    const fence = await acquire(store, scope, reserveOf(attempt, long));
    await store.mark(scope, markOf(attempt, fence));
    ids.add(idOf(scope));
  }
  const progress: number[] = [];
  const all = await listed(store, { onProgress: ({ keys }) => progress.push(keys) });
  t.same(new Set(idsOf(all)), ids);
  t.ok(progress.length > 10, 'a look at all keys in one go would hold up everybody');
  t.equal(progress.at(-1), 60);
  const some = await listed(store, { most: 7 });
  t.equal(some.records.length, 7);
  t.notOk(some.isWhole);
  t.ok((await listed(store, { most: 60 })).isWhole, 'no more than there are is all of them');
});

t.test('a user without the right to look through keys is told which one', async (t) => {
  const redis = await startRedis(t);
  const passwordFile = join(redis.dir, 'password');
  writeFileSync(passwordFile, 'secret');
  const allow = (...rights: readonly string[]): Promise<unknown> =>
    redis.client.call('acl', 'setuser', 'sallyport', 'reset', 'on', '>secret', ...leastRights, ...rights);
  await allow();
  const { store, up } = openStore(t, redisSettings(redis.port, { username: 'sallyport', passwordFile }));
  await up();
  const { marked, lapsed } = await oneOfEach(store);
  t.match(await store.unsettled.list({ inDoubtOnly: true, most: 1, onProgress: () => undefined }), {
    ok: false,
    error: { kind: 'refused', reason: /^NOPERM .*'scan'/, mayHaveRun: false },
  });
  await allow('+scan');
  t.same(idsOf(await listed(store)), [lapsed, marked], 'with it, that is all it takes');
});

t.test('a store that goes away is told', async (t) => {
  const redis = await startRedis(t);
  const { store, up } = openStore(t, redisSettings(redis.port));
  await up();
  await redis.kill();
  t.match(await store.unsettled.list({ inDoubtOnly: true, most: 1, onProgress: () => undefined }), {
    ok: false,
    error: { kind: 'unreachable' },
  });
});

t.test('behind Sentinels the primary that they name is looked through', async (t) => {
  const primary = await startRedis(t);
  const [sentinel] = await startSentinels(t, {
    name: 'orders',
    primaryPort: primary.port,
    quorum: 1,
    replicas: 0,
    count: 1,
  });
  const { store, up } = openStore(
    t,
    redisSettings(0, {
      topology: { kind: 'sentinel', name: 'orders', nodes: [{ host: '127.0.0.1', port: sentinel?.port ?? 0 }] },
    }),
  );
  await up();
  const { marked, lapsed } = await oneOfEach(store);
  t.same(idsOf(await listed(store)), [lapsed, marked]);
});

t.test('in a Cluster each primary is looked through, also while a slot is handed over', async (t) => {
  const cluster = await startCluster(t, 3, 0);
  const { port } = cluster.nodes[0] ?? { port: 0 };
  const { store, up } = openStore(
    t,
    redisSettings(port, { topology: { kind: 'cluster', nodes: [{ host: '127.0.0.1', port }] } }),
  );
  await up();
  const ids: string[] = [];
  for (let index = 0; index < 30; index += 1) {
    const scope = freshRecord();
    const attempt = freshAttempt();
    const fence = await acquire(store, scope, reserveOf(attempt, long));
    await store.mark(scope, markOf(attempt, fence));
    ids.push(idOf(scope));
  }
  const keysOn = await Promise.all(cluster.nodes.map(({ client }) => client.dbsize()));
  t.ok(
    keysOn.every((count) => count > 0),
    'they are on all of them',
  );
  t.same([...idsOf(await listed(store))].sort(), [...ids].sort());

  const scope = freshRecord();
  const slot = slotOf(scope.principal);
  const from = cluster.at(await cluster.portOf(slot));
  const to = cluster.nodes.find((node) => node !== from) ?? from;
  const [fromId, toId] = [
    String(await from.client.call('cluster', 'myid')),
    String(await to.client.call('cluster', 'myid')),
  ];
  await to.client.call('cluster', 'setslot', String(slot), 'importing', fromId);
  await from.client.call('cluster', 'setslot', String(slot), 'migrating', toId);
  await acquire(store, scope, reserveOf('a', { leaseMs: 1, retentionMs: 3_600_000 }));
  t.equal(await to.client.call('cluster', 'countkeysinslot', String(slot)), 1, 'it is where the slot goes to');
  const found = await listed(store);
  t.ok(idsOf(found).includes(idOf(scope)), 'and is found there');
  t.equal(found.unreadable, 0);
});
