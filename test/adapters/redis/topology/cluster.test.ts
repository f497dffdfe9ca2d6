import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readClusterSlots, slotOf, readRedirection } from '../../../../src/adapters/redis/topology/discovery.js';
import { startCluster } from '../../../support/redis-cluster.js';
import { startRedis } from '../../../support/redis-server.js';
import { acquire, freshScope, markOf, reserveOf } from '../../store-commands.js';
import { leastRights, openStore, redisSettings } from '../redis-store.js';

t.jobs = 3;

t.test('slots are those of the Redis Cluster specification', (t) => {
  for (const [tag, slot] of [
    ['', 0],
    ['123456789', 0x31c3],
    ['foo', 12182],
    ['user1000', 3443],
    ['a', 15495],
  ] as const) {
    t.equal(slotOf(tag), slot, tag);
  }
  t.end();
});

t.test('CLUSTER SLOTS is read as servers of all versions write it', (t) => {
  const asked = { host: 'seed', port: 7000 };
  t.same(
    readClusterSlots(
      [
        [0, 100, ['10.0.0.1', 6379, 'id', []], ['10.0.0.2', 6379, 'id']],
        [101, 200, ['', 6380, 'id']],
        [201, 300, [null, 6380, 'id'], ['10.0.0.2', 6379]],
        [301, 16383, ['10.0.0.1', 6379, 'id']],
      ],
      asked,
    ),
    {
      primaries: [
        {
          address: { host: '10.0.0.1', port: 6379 },
          slots: [
            [0, 100],
            [301, 16383],
          ],
        },
        {
          address: { host: 'seed', port: 6380 },
          slots: [
            [101, 200],
            [201, 300],
          ],
        },
      ],
      members: [
        { host: '10.0.0.1', port: 6379 },
        { host: '10.0.0.2', port: 6379 },
        { host: 'seed', port: 6380 },
      ],
    },
  );
  for (const reply of [null, 'OK', [], [null], [['a', 'b', ['h', 1]]], [[0, 1, ['h', 'p']]], [[0, 1, null]]]) {
    t.same(readClusterSlots(reply, asked).primaries, [], JSON.stringify(reply));
  }
  t.end();
});

t.test('redirections are read, and nothing else is taken for one', (t) => {
  const asked = { host: 'asked', port: 1 };
  const error = (message: string, name = 'ReplyError'): Error => Object.assign(new Error(message), { name });
  for (const { cause, expected } of [
    {
      cause: error('MOVED 3999 10.0.0.7:6381'),
      expected: { kind: 'moved', address: { host: '10.0.0.7', port: 6381 } },
    },
    { cause: error('ASK 3999 10.0.0.7:6381'), expected: { kind: 'ask', address: { host: '10.0.0.7', port: 6381 } } },
    { cause: error('MOVED 3999 :6381'), expected: { kind: 'moved', address: { host: 'asked', port: 6381 } } },
    { cause: error('MOVED 3999 ?:6381'), expected: { kind: 'moved', address: { host: 'asked', port: 6381 } } },
    {
      cause: error('MOVED 3999 2001:db8::1:6381'),
      expected: { kind: 'moved', address: { host: '2001:db8::1', port: 6381 } },
    },
    { cause: error('MOVED'), expected: null },
    { cause: error('MOVED 3999 10.0.0.7:'), expected: null },
    { cause: error('MOVED 3999 10.0.0.7:6381', 'Error'), expected: null },
    { cause: error('OOM command'), expected: null },
    { cause: undefined, expected: null },
  ]) {
    t.same(readRedirection(cause, asked), expected, String(cause));
  }
  t.end();
});

t.test('a Cluster', async (t) => {
  const cluster = await startCluster(t, 3, 0);
  const [seed, second, third] = cluster.nodes;
  if (seed === undefined || second === undefined || third === undefined) throw new Error('three nodes');
  const { store, up, failovers } = openStore(
    t,
    redisSettings(0, {
      topology: { kind: 'cluster', nodes: [seed, second].map(({ port }) => ({ host: '127.0.0.1', port })) },
    }),
  );
  await up();

  t.test('each record lives on the primary of its slot', async (t) => {
    t.same(store.verdict(), { fit: true, problem: null });
    for (let count = 0; count < 30; count += 1) await acquire(store, freshScope(), reserveOf('a', {}, 60_000));
    for (const { client } of cluster.nodes) t.ok((await client.dbsize()) > 0, 'all primaries take part');
    t.equal(failovers(), 0, 'a first sight of several primaries is no fail-over');
  });

  t.test('a user with the rights that docs/storage.md lists for a Cluster finds its way', async (t) => {
    for (const { client } of cluster.nodes) {
      await client.call(
        'acl',
        'setuser',
        'sallyport',
        'reset',
        'on',
        '>secret',
        ...leastRights,
        '+cluster|slots',
        '+asking',
      );
    }
    const passwordFile = join(seed.dir, 'password');
    writeFileSync(passwordFile, 'secret');
    const least = openStore(
      t,
      redisSettings(0, {
        topology: { kind: 'cluster', nodes: [{ host: '127.0.0.1', port: seed.port }] },
        username: 'sallyport',
        passwordFile,
      }),
    );
    await least.up();
    for (let count = 0; count < 10; count += 1) await acquire(least.store, freshScope(), reserveOf('a', {}, 60_000));
  });

  t.test('a record follows its slot when that is handed over', async (t) => {
    const scope = { ...freshScope(), token: null };
    const slot = slotOf(scope.principal);
    const from = cluster.at(await cluster.portOf(slot));
    const to = from === third ? seed : third;
    const ids = {
      from: String(await from.client.call('cluster', 'myid')),
      to: String(await to.client.call('cluster', 'myid')),
    };
    await to.client.call('cluster', 'setslot', String(slot), 'importing', ids.from);
    await from.client.call('cluster', 'setslot', String(slot), 'migrating', ids.to);
    const fence = await acquire(store, scope, reserveOf('a'));
    t.equal(
      await from.client.call('cluster', 'countkeysinslot', String(slot)),
      0,
      'a new key of a slot that is handed over',
    );
    t.equal(await to.client.call('cluster', 'countkeysinslot', String(slot)), 1, 'is asked for where it goes to');
    t.match(
      await store.reserve(
        { ...scope, operation: freshScope().operation, token: freshScope().token },
        reserveOf('b', {}, 60_000),
      ),
      { ok: false, error: { kind: 'refused', reason: /^TRYAGAIN/, mayHaveRun: false } },
      'record and token at once have to wait',
    );

    for (const node of [to, from, ...cluster.nodes]) {
      await node.client.call('cluster', 'setslot', String(slot), 'node', ids.to);
    }
    t.same(
      await store.mark(scope, markOf('a', fence)),
      { ok: true, value: 'unknown' },
      'a slot that has moved is found',
    );
    t.equal(failovers(), 0, 'and nothing was forgotten');
  });
});

t.test('a server that is no Cluster is said to be none', async (t) => {
  const server = await startRedis(t);
  const { store, problem } = openStore(
    t,
    redisSettings(0, { topology: { kind: 'cluster', nodes: [{ host: '127.0.0.1', port: server.port }] } }),
  );
  await problem(/cluster support disabled/);
  t.match(await store.reserve(freshScope(), reserveOf('a')), {
    ok: false,
    error: { kind: 'unreachable', mayHaveRun: false },
  });
});
