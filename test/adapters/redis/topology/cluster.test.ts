import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  readClusterSlots,
  readRedirection,
  slotCount,
  slotOf,
  tagOf,
} from '../../../../src/adapters/redis/topology/discovery.js';
import { bulk, startFakeRedis } from '../../../support/fake-redis.js';
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

t.test('a range that holds no slot names no primary, and a slot that is named twice is no reply', (t) => {
  const asked = { host: 'seed', port: 7000 };
  for (const [first, last] of [
    [16384, 20000],
    [0, 16384],
    [5, 3],
    [-9, -1],
    [-1, 5],
    [0.5, 1],
    [0, NaN],
    [0, Infinity],
  ] as const) {
    const { primaries } = readClusterSlots(
      [
        [first, last, ['h', 1]],
        [7, 7, ['h', 2]],
      ],
      asked,
    );
    t.same(primaries, [{ address: { host: 'h', port: 2 }, slots: [[7, 7]] }], `${String(first)} to ${String(last)}`);
  }
  const slots = (count: number): unknown => Array.from({ length: count }, (_, slot) => [slot, slot, ['h', 1]]);
  t.equal(readClusterSlots(slots(slotCount), asked).primaries[0]?.slots.length, slotCount);
  const twice = [
    [0, 5, ['h', 1]],
    [5, 7, ['h', 2]],
  ];
  t.throws(() => readClusterSlots(twice, asked), /names a slot twice/);
  t.end();
});

t.test('a Cluster of more primaries than any has is not connected to, and as many nodes are remembered', (t) => {
  const asked = { host: 'seed', port: 7000 };
  const cluster = (primaries: number, replicas: number): unknown =>
    Array.from({ length: primaries }, (_, slot) => [
      slot,
      slot,
      ...Array.from({ length: 1 + replicas }, (_each, index) => [`h${String(slot)}`, index]),
    ]);
  const { primaries, members } = readClusterSlots(cluster(1_000, 9), asked);
  t.same([primaries.length, members.length], [1_000, 1_000]);
  t.throws(() => readClusterSlots(cluster(1_001, 0), asked), /more than 1000 primaries/);
  t.end();
});

t.test('every slot has a hash tag, and the search for one ends where there is no slot', (t) => {
  const without: number[] = [];
  for (const slot of [0, 7, 8_191, slotCount - 1]) if (slotOf(tagOf([[slot, slot]])) !== slot) without.push(slot);
  t.same(without, []);
  t.match(tagOf([[5, 3]]), /^primary-/);
  t.end();
});

t.test('a Cluster whose ranges hold no slot is out of reach, and nobody waits for it', async (t) => {
  let port = 0;
  const fake = await startFakeRedis(t, ([command]) =>
    command === 'cluster'
      ? `*1\r\n*3\r\n:16384\r\n:20000\r\n*2\r\n${bulk('127.0.0.1')}:${String(port)}\r\n`
      : bulk('redis_version:7.0.15\r\nrole:master\r\n'),
  );
  port = fake.port;
  const topology = { kind: 'cluster', nodes: [{ host: '127.0.0.1', port }] } as const;
  const { store, problem } = openStore(t, redisSettings(0, { topology }));
  await problem(/the Cluster serves no slots/);
  t.match(await store.reserve(freshScope(), reserveOf('a')), { ok: false, error: { kind: 'unreachable' } });
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
