/**
 * docs/storage.md "Fail-over": what a fail-over may have forgotten is refused by every proxy, also by one that starts
 * after it.
 */
import t from 'tap';
import { createRedisStore } from '../../../../src/adapters/redis/reservation-store.js';
import { slotOf, tagOf } from '../../../../src/adapters/redis/topology/discovery.js';
import { startRedis, startReplica } from '../../../support/redis-server.js';
import { startRelay } from '../../../support/tcp-relay.js';
import { until } from '../../../support/until.js';
import { acquire, collectingLog, freshScope, reserveOf } from '../../store-commands.js';
import { leastRights, openStore, redisSettings, wallClock } from '../redis-store.js';

const key = 'sallyport:{primary-0}:floor';

t.test(
  'the first start ever: what was before is not known, so tokens issued before are refused; later starts take its word',
  async (t) => {
    const server = await startRedis(t);
    const before = Math.floor(Date.now() / 1000);
    const first = openStore(t, redisSettings(server.port));
    await first.up();
    const floorS = first.store.issuedBeforeFloorS();
    t.ok(floorS !== null && floorS >= before, String(floorS));
    t.same(
      [first.failovers(), first.log.lines.filter((line) => !line.startsWith('info'))],
      [0, []],
      'that is no fail-over',
    );
    const held = await server.client.hgetall(key);
    t.same(Object.keys(held).sort(), ['at', 'e', 'id', 't', 'v']);
    t.ok((await server.client.pttl(key)) > 30 * 86_400_000);
    await until('a second that is later', () => Math.floor(Date.now() / 1000) > (floorS ?? 0) + 1);
    const second = openStore(t, redisSettings(server.port));
    await second.up();
    t.equal(second.store.issuedBeforeFloorS(), floorS, 'callers notice a restart of a proxy as little as ever');
    t.same({ ...(await server.client.hgetall(key)), t: '' }, { ...held, t: '' });
  },
);

t.test('a proxy that starts after a fail-over that nobody saw refuses tokens issued before', async (t) => {
  const primary = await startRedis(t);
  const replica = await startReplica(t, primary.port);
  const early = openStore(t, redisSettings(primary.port, { replicas: 1 }));
  await early.up();
  const floorS = early.store.issuedBeforeFloorS() ?? 0;
  await until('the replica to know', async () => (await replica.client.exists(key)) === 1);
  await early.store.close();
  await primary.kill();
  await replica.client.call('replicaof', 'no', 'one');
  await until('a second that is later', () => Math.floor(Date.now() / 1000) > floorS + 1);
  const late = openStore(t, redisSettings(replica.port));
  await late.up();
  t.ok((late.store.issuedBeforeFloorS() ?? 0) > floorS + 1);
  t.equal(late.failovers(), 0);
});

t.test('a fail-over that another proxy saw is known to one that starts after it', async (t) => {
  const primary = await startRedis(t);
  const replica = await startReplica(t, primary.port);
  const address = await startRelay(t, primary.port);
  const running = openStore(t, redisSettings(address.port));
  await running.up();
  const floorS = running.store.issuedBeforeFloorS() ?? 0;
  await until('a second that is later', () => Math.floor(Date.now() / 1000) > floorS + 1);
  await primary.kill();
  await replica.client.call('replicaof', 'no', 'one');
  address.leadTo(replica.port);
  await until('the fail-over is seen', () => running.failovers() === 1);
  await running.up();
  const sinceS = running.store.issuedBeforeFloorS() ?? 0;
  t.ok(sinceS > floorS);
  await until('a second that is later', () => Math.floor(Date.now() / 1000) > sinceS + 1);
  const late = openStore(t, redisSettings(address.port));
  await late.up();
  t.equal(late.store.issuedBeforeFloorS(), sinceS);
  t.equal(late.failovers(), 0);
});

t.test(
  'a store that is emptied while it is used is noticed by every proxy within a look, and counts as a fail-over',
  async (t) => {
    const server = await startRedis(t);
    const proxies = [openStore(t, redisSettings(server.port)), openStore(t, redisSettings(server.port))];
    for (const { up } of proxies) await up();
    const floorS = proxies[0]?.store.issuedBeforeFloorS() ?? 0;
    let told = 0;
    proxies[0]?.store.onFailover?.(() => (told += 1));
    await until('a second that is later', () => Math.floor(Date.now() / 1000) > floorS + 1);
    await server.client.flushall();
    for (const { failovers, store, log } of proxies) {
      await until('it is noticed', () => failovers() === 1);
      t.ok((store.issuedBeforeFloorS() ?? 0) > floorS);
      t.match(
        log.lines.find((line) => line.startsWith('error')),
        /^error the store was emptied.*127\.0\.0\.1/,
      );
      t.equal(store.state().failovers, 1);
    }
    t.equal(told, 1);
    await until(
      'three more looks',
      async () => {
        const info = await server.client.info('commandstats');
        return Number(/cmdstat_info:calls=(\d+)/.exec(info)?.[1]) > 12;
      },
      20_000,
    );
    t.same(
      proxies.map(({ failovers }) => failovers()),
      [1, 1],
      'once',
    );
  },
);

t.test('a step of the clock of Redis counts as a fail-over', async (t) => {
  const server = await startRedis(t);
  let oursMs = 0;
  const log = collectingLog();
  const clock = { now: () => Date.now(), monotonic: () => performance.now() + oursMs };
  let failovers = 0;
  const store = createRedisStore(redisSettings(server.port), {
    clock,
    log,
    maxTokenLifetimeMs: () => 7_200_000,
    onFailover: () => (failovers += 1),
  });
  t.teardown(() => store.close());
  await until('the store is up', () => store.state().up);
  const floorS = store.issuedBeforeFloorS() ?? 0;
  await until('a second that is later', () => Math.floor(Date.now() / 1000) > floorS + 1);
  t.equal(failovers, 0);
  // To step our own is to step the other.
  oursMs += 60_000;
  await until('it is noticed', () => failovers === 1);
  t.match(
    log.lines.find((line) => line.startsWith('error')),
    /^error the clock of the store stepped.*"stepped_ms":-(?:59|60)\d\d\d\D/,
  );
  t.ok((store.issuedBeforeFloorS() ?? 0) > floorS);
});

t.test('what an operator’s command sees is not written down', async (t) => {
  const server = await startRedis(t);
  const store = createRedisStore(redisSettings(server.port), {
    clock: wallClock,
    log: collectingLog(),
    maxTokenLifetimeMs: () => 0,
    onFailover: () => undefined,
    looksOn: true,
  });
  t.teardown(() => store.close());
  await until('the store is up', () => store.state().up);
  t.equal(await server.client.dbsize(), 0);
});

t.test('a server that does not say which fail-overs it had may have had one', async (t) => {
  const server = await startRedis(t);
  await server.client.hset(key, { v: '2', newer: 'field' });
  const before = Math.floor(Date.now() / 1000);
  const { store, log, up, failovers } = openStore(t, redisSettings(server.port));
  await up();
  t.ok((store.issuedBeforeFloorS() ?? 0) >= before);
  t.equal(failovers(), 0);
  t.match(
    log.lines.find((line) => line.startsWith('warn')),
    /does not say which fail-overs it had.*127\.0\.0\.1/,
  );
  await acquire(store, freshScope(), reserveOf('a'));
  t.same(await server.client.hgetall(key), { v: '2', newer: 'field' }, 'it is of a newer version, and left as it is');
});

t.test(
  'a server that says so no more is told of: where it is emptied now, that is noticed only once it does again',
  async (t) => {
    const server = await startRedis(t);
    const { log, up, failovers } = openStore(t, redisSettings(server.port));
    await up();
    await server.client.multi().del(key).set(key, 'another program').exec();
    const line = await until(
      'it is told',
      () => log.lines.find((told) => told.includes('says no more which fail-overs')) ?? null,
    );
    t.match(line, /^warn .*127\.0\.0\.1.*WRONGTYPE/);
    t.equal(failovers(), 0);
    await server.client.del(key);
    await until('it is noticed', () => failovers() === 1);
  },
);

t.test('the rights of docs/storage.md are enough for it', async (t) => {
  const server = await startRedis(t);
  await server.client.acl('SETUSER', 'default', 'reset', 'on', 'nopass', ...leastRights);
  const { up, log } = openStore(t, redisSettings(server.port));
  await up();
  t.equal(await server.client.exists(key), 1);
  t.notOk(log.lines.some((line) => line.startsWith('warn')));
});

t.test('a right that is missing leaves no key without an end', async (t) => {
  const server = await startRedis(t);
  for (const right of ['+pexpire', '+hset', '+pttl', '+hmget']) {
    await server.client.acl(
      'SETUSER',
      'limited',
      'reset',
      'on',
      'nopass',
      ...leastRights.filter((given) => given !== right),
    );
    const { log, up, store } = openStore(t, redisSettings(server.port, { username: 'limited' }));
    await up();
    await until('it is told', () => log.lines.some((line) => line.includes('does not say which fail-overs')));
    t.equal(await server.client.dbsize(), 0, right);
    await store.close();
  }
});

t.test('each primary of a Cluster is remembered by a key of its own slots', (t) => {
  t.equal(tagOf([]), 'primary-0');
  for (const ranges of [
    [[0, 5_460]],
    [[5_461, 10_922]],
    [[10_923, 16_383]],
    [[7, 7]],
    [
      [0, 3],
      [16_000, 16_383],
    ],
  ] as const) {
    const slot = slotOf(tagOf(ranges));
    t.ok(
      ranges.some(([first, last]) => first <= slot && slot <= last),
      JSON.stringify(ranges),
    );
  }
  t.end();
});
