import t from 'tap';
import { bulk, startFakeRedis } from '../../../support/fake-redis.js';
import { startRedis, startReplica } from '../../../support/redis-server.js';
import { until } from '../../../support/until.js';
import { acquire, freshScope, reserveOf } from '../../store-commands.js';
import { openStore, redisSettings } from '../redis-store.js';

// Most of the time is waited for.
t.jobs = 4;

const unfit = { ok: false, error: { kind: 'unfit', mayHaveRun: false } };

const lasting: readonly { name: string; settings: readonly string[]; problem: RegExp }[] = [
  {
    name: 'that evicts',
    settings: ['--maxmemory-policy', 'volatile-lru'],
    problem: /maxmemory-policy is volatile-lru.*; set maxmemory-policy noeviction/,
  },
  {
    name: 'that forgets at a restart',
    settings: ['--appendonly', 'no'],
    problem: /no append-only file and no replica.*; set appendonly yes/,
  },
  {
    name: 'of a Cluster',
    settings: ['--cluster-enabled', 'yes'],
    problem: /part of a Redis Cluster; name its nodes in store\.redis\.cluster/,
  },
];

for (const { name, settings, problem } of lasting) {
  t.test(`a server ${name}: the verdict says so and how to mend it, and nothing is reserved`, async (t) => {
    const server = await startRedis(t, settings);
    const { store, log, problem: says } = openStore(t, redisSettings(server.port));
    await says(problem);
    t.match(store.verdict(), { fit: false, problem });
    t.match(await store.reserve(freshScope(), reserveOf('a')), unfit);
    t.same(log.lines.filter((line) => line.startsWith('error')).length, 1);
  });
}

t.test('durability: none has to be written down, and then a server that forgets is used', async (t) => {
  const server = await startRedis(t, ['--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru']);
  const { store, up } = openStore(t, redisSettings(server.port, { durability: 'none' }));
  await up();
  await acquire(store, freshScope(), reserveOf('a'));
  t.same(store.verdict(), { fit: true, problem: null });
});

t.test(
  'a setting changed under way is noticed, and settled writes are still taken; mended, the store heals by itself',
  async (t) => {
    const server = await startRedis(t);
    const { store, problem, up } = openStore(t, redisSettings(server.port));
    await up();
    const [completed, released] = [freshScope(), freshScope()];
    const fence = await acquire(store, completed, reserveOf('a'));
    await acquire(store, released, reserveOf('a'));
    await server.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await problem(/allkeys-lru/);
    t.match(await store.reserve(freshScope(), reserveOf('a')), unfit);
    const response = { status: 200, headers: [], body: Buffer.from('kept') };
    t.same(
      await store.complete(completed, {
        attempt: 'a',
        fence,
        fingerprint: 'f',
        state: 'completed',
        response,
        retentionMs: 60_000,
      }),
      { ok: true, value: 'completed' },
    );
    t.same(await store.release(released, { attempt: 'a' }), { ok: true, value: 'released' });
    await server.client.config('SET', 'maxmemory-policy', 'noeviction');
    await up();
    t.match(await store.reserve(completed, reserveOf('b')), { value: { reserved: { kind: 'replayed' } } });
  },
);

t.test('a replica is no place to write, which may pass: promoted, it is used', async (t) => {
  const primary = await startRedis(t);
  const replica = await startReplica(t, primary.port);
  const { store, problem, up } = openStore(t, redisSettings(replica.port));
  await problem(/a slave, not a primary; point store\.redis at the primary/);
  t.same(store.verdict(), { fit: true, problem: null }, 'a role is no setting that ends a start');
  t.match(await store.reserve(freshScope(), reserveOf('a')), unfit);
  t.match(await store.release(freshScope(), { attempt: 'a' }), unfit);
  const told = new Set<string | null>();
  const untilMs = performance.now() + 1_500;
  await until('it was connected to anew, twice', () => {
    told.add(store.state().problem);
    return performance.now() > untilMs;
  });
  t.match([...told].join('\n'), /^[^\n]*a slave, not a primary[^\n]*$/, 'between two looks as well');
  await replica.client.call('replicaof', 'no', 'one');
  await up();
  await acquire(store, freshScope(), reserveOf('a'));
});

t.test('a primary that is demoted under our feet refuses, and is asked again who it is', async (t) => {
  const other = await startRedis(t);
  const server = await startRedis(t);
  const { store, up, problem } = openStore(t, redisSettings(server.port));
  await up();
  await acquire(store, freshScope(), reserveOf('a'));
  await server.client.call('replicaof', '127.0.0.1', String(other.port));
  t.match(await store.reserve(freshScope(), reserveOf('a')), { ok: false, error: { mayHaveRun: false } });
  await problem(/not a primary/);
});

t.test('fewer replicas than asked for: refused at once; the replica comes, and the store is up', async (t) => {
  const primary = await startRedis(t);
  const { store, problem, up } = openStore(t, redisSettings(primary.port, { replicas: 1 }));
  await problem(/replicas connected: 0; store\.redis\.replicas asks for 1; connect more replicas/);
  t.same(store.verdict(), { fit: true, problem: null }, 'a replica may be late');
  t.match(await store.reserve(freshScope(), reserveOf('a')), unfit);
  await startReplica(t, primary.port);
  await up();
  t.equal(store.state().connectedReplicas, 1);
  t.match(await store.reserve(freshScope(), reserveOf('a')), { ok: true, value: { confirmedReplicas: 1 } });
});

const answers: readonly { name: string; info: string; problem: RegExp }[] = [
  {
    name: 'too old',
    info: 'redis_version:6.0.16\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1',
    problem: /version 6\.0; use Redis 6\.2 or newer, or Valkey/,
  },
  {
    name: 'that hides its settings',
    info: 'redis_version:7.2.0\r\nrole:master',
    problem: /INFO does not tell maxmemory_policy.*durability: unverified.*aof_enabled/,
  },
  { name: 'that tells nothing', info: '', problem: /does not say its version; allow INFO to the Redis user/ },
];

for (const { name, info, problem } of answers) {
  t.test(`a server ${name} is unfit for good`, async (t) => {
    const fake = await startFakeRedis(t, ([command]) => (command === 'info' ? bulk(info) : '-ERR unknown\r\n'));
    const { store, problem: says } = openStore(t, redisSettings(fake.port));
    await says(problem);
    t.match(store.verdict(), { fit: false, problem });
  });
}

t.test('durability: unverified takes a provider at its word', async (t) => {
  const fake = await startFakeRedis(t, ([command]) =>
    command === 'info' ? bulk('redis_version:7.2.0\r\nrole:master') : '-ERR unknown\r\n',
  );
  const { store, up } = openStore(t, redisSettings(fake.port, { durability: 'unverified' }));
  await up();
  t.same(store.verdict(), { fit: true, problem: null });
});

t.test('a server that is loading its data is waited for', async (t) => {
  let loading = true;
  const info = 'redis_version:7.2.0\r\nrole:master\r\nmaxmemory_policy:noeviction\r\naof_enabled:1';
  const fake = await startFakeRedis(t, ([command]) =>
    command === 'info' ? bulk(`${info}\r\nloading:${loading ? '1' : '0'}`) : '-ERR unknown\r\n',
  );
  const { problem, up } = openStore(t, redisSettings(fake.port));
  await problem(/loading its data/);
  loading = false;
  await up();
});
