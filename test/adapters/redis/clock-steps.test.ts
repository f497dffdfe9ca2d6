/** A step of the clock of Redis is noticed by the first reservation behind it, before that counts. */
import t from 'tap';
import { markerMarginMs } from '../../../src/decision/idempotency/dispatch-check.js';
import type { ReservationScope } from '../../../src/decision/idempotency/scope.js';
import { slotOf } from '../../../src/adapters/redis/topology/discovery.js';
import { keysOf } from '../../../src/adapters/redis/reservation-store.js';
import { startCluster } from '../../support/redis-cluster.js';
import { startRedis, startReplica, type RedisServer } from '../../support/redis-server.js';
import { createSteppedClock } from '../../support/stepped-clock.js';
import { until } from '../../support/until.js';
import { freshAttempt, freshScope, reserveOf } from '../store-commands.js';
import { openStore, redisSettings, type OpenedStore } from './redis-store.js';

const hourMs = 3_600_000;
const markerTtlMs = 60_000;

/** What a reserve says, and whether a token issued a second before it passes. */
async function use({ store }: OpenedStore, scope: ReservationScope): Promise<string> {
  const askedS = Math.floor(Date.now() / 1000);
  const answer = await store.reserve(scope, reserveOf(freshAttempt(), {}, markerTtlMs));
  const answered = answer.ok ? answer.value.reserved.kind : answer.error.kind;
  const isRefused = (store.issuedBeforeFloorS() ?? 0) > askedS - 1;
  return isRefused ? `${answered}, and tokens of before are refused` : answered;
}

/** Until the floor of the first start is behind a token that is a second old. */
async function secondLater({ store }: OpenedStore): Promise<unknown> {
  const floorS = store.issuedBeforeFloorS() ?? 0;
  return until('a second that is later', () => Math.floor(Date.now() / 1000) > floorS + 1);
}

/** How often proxies asked what is remembered, where nothing else is asked. */
async function looks(server: RedisServer): Promise<number> {
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await server.client.info('commandstats'))?.[1]);
}

async function moreLooks(server: RedisServer, count: number): Promise<void> {
  const before = await looks(server);
  await until('more looks', async () => (await looks(server)) >= before + count, 20_000);
}

t.test(
  'a token whose marker ended with a step passes nowhere again: each proxy notices by its own reserve',
  async (t) => {
    const clock = createSteppedClock(t);
    const server = await startRedis(t, [], { env: clock.env });
    const proxies = [
      openStore(t, redisSettings(server.port)),
      openStore(t, redisSettings(server.port)),
      openStore(t, redisSettings(server.port)),
    ] as const;
    for (const proxy of proxies) {
      await proxy.up();
      await secondLater(proxy);
    }
    const scope = freshScope();
    t.equal(await use(proxies[0], scope), 'acquired');
    t.equal(await use(proxies[1], scope), 'token_replayed');
    clock.setAheadMs(hourMs);
    for (const [index, proxy] of proxies.entries()) {
      const token = { ...freshScope(), ...(index === 0 ? scope : {}) };
      t.match(await use(proxy, token), /, and tokens of before are refused$/, `proxy ${String(index)}`);
      t.equal(proxy.failovers(), 1);
      t.equal(proxy.store.state().failovers, 1, 'as metrics count it');
      t.match(
        proxy.log.lines.find((line) => line.startsWith('error')),
        /^error the clock of the store stepped.*"stepped_ms":3(?:600|599|601)\d\d\d\D/,
      );
    }
    t.notSame(await server.client.exists(keysOf('sallyport', scope)[1] ?? ''), 0);
    await moreLooks(server, 9);
    t.same(
      proxies.map(({ failovers }) => failovers()),
      [1, 1, 1],
      'once: the looks behind it see no other step',
    );
  },
);

for (const [name, stepMs, tells] of [
  ['forwards by more than the tolerance', 1_500, true],
  ['back by an hour', -hourMs, true],
  ['back by more than the tolerance', -1_500, true],
  ['forwards within the tolerance', 500, false],
  ['back within it', -500, false],
] as const) {
  t.test(`a step ${name}`, async (t) => {
    const clock = createSteppedClock(t);
    const server = await startRedis(t, [], { env: clock.env });
    const proxy = openStore(t, redisSettings(server.port));
    await proxy.up();
    await secondLater(proxy);
    t.equal(await use(proxy, freshScope()), 'acquired');
    clock.setAheadMs(stepMs);
    t.equal(await use(proxy, freshScope()), tells ? 'acquired, and tokens of before are refused' : 'acquired');
    t.equal(proxy.failovers(), tells ? 1 : 0);
    if (!tells) return;
    clock.setAheadMs(0);
    await use(proxy, freshScope());
    t.equal(proxy.failovers(), 2, 'and what puts it right is one, too');
  });
}

t.test('many reserves at once that wait for replicas, each on a connection of its own, see one step', async (t) => {
  const clock = createSteppedClock(t);
  const primary = await startRedis(t, [], { env: clock.env });
  await startReplica(t, primary.port);
  const proxy = openStore(t, redisSettings(primary.port, { replicas: 1 }));
  await proxy.up();
  await secondLater(proxy);
  const all = async (): Promise<readonly string[]> =>
    Promise.all(Array.from({ length: 40 }, async () => use(proxy, freshScope())));
  t.same(new Set(await all()), new Set(['acquired']));
  const under = all();
  clock.setAheadMs(hourMs);
  await under;
  t.same(new Set(await all()), new Set(['acquired, and tokens of before are refused']));
  t.equal(proxy.failovers(), 1);
  clock.setAheadMs(0);
  await all();
  await moreLooks(primary, 3);
  t.equal(proxy.failovers(), 2);
});

t.test('a proxy that starts behind a step refuses the same tokens, whoever noticed it before', async (t) => {
  const clock = createSteppedClock(t);
  const server = await startRedis(t, [], { env: clock.env });
  const early = openStore(t, redisSettings(server.port));
  await early.up();
  await secondLater(early);
  clock.setAheadMs(hourMs);
  const nowS = Math.floor(Date.now() / 1000);
  // Whether the other one looks before or after this, that makes no difference.
  const late = openStore(t, redisSettings(server.port));
  await late.up();
  t.ok((late.store.issuedBeforeFloorS() ?? 0) >= nowS);
  t.equal(late.failovers(), 0);
  await moreLooks(server, 4);
  t.equal(early.failovers(), 1);
  const last = openStore(t, redisSettings(server.port));
  await last.up();
  t.ok((last.store.issuedBeforeFloorS() ?? 0) >= nowS);
});

t.test(
  'a step while no proxy runs cannot be told from a long time without one: both are taken for a step',
  async (t) => {
    const clock = createSteppedClock(t);
    const server = await startRedis(t, [], { env: clock.env });
    const first = openStore(t, redisSettings(server.port));
    await first.up();
    const floorS = first.store.issuedBeforeFloorS();
    await secondLater(first);
    await first.store.close();
    clock.setAheadMs(markerMarginMs - 10_000);
    const soon = openStore(t, redisSettings(server.port));
    await soon.up();
    t.equal(soon.store.issuedBeforeFloorS(), floorS, 'less than a marker outlives its token by');
    t.notOk(soon.log.lines.some((line) => line.includes('nobody has looked')));
    await soon.store.close();
    clock.setAheadMs(hourMs);
    const late = openStore(t, redisSettings(server.port));
    await late.up();
    t.ok((late.store.issuedBeforeFloorS() ?? 0) > (floorS ?? 0) + 1);
    t.equal(late.failovers(), 0);
    t.match(
      late.log.lines.find((line) => line.includes('nobody has looked')),
      /^info .*"seconds":35\d\d\D/,
    );
  },
);

t.test('it costs no command: a reserve is one script, as before', async (t) => {
  const server = await startRedis(t);
  const proxy = openStore(t, redisSettings(server.port));
  await proxy.up();
  await use(proxy, freshScope());
  await server.client.config('RESETSTAT');
  for (let count = 0; count < 200; count += 1) await use(proxy, freshScope());
  const stats = await server.client.info('commandstats');
  const scripts = await looks(server);
  t.ok(scripts >= 200 && scripts < 210, `${String(scripts)}: the reserves, and a few looks`);
  t.notMatch(stats, /cmdstat_eval:/);
  // One for each script: the question is the script's own, and has been.
  const times = Number(/cmdstat_time:calls=(\d+)/.exec(stats)?.[1]);
  t.ok(times >= 200 && times < 210, String(times));
});

t.test('a server that does not say what it remembers is compared with what reserves said before', async (t) => {
  const clock = createSteppedClock(t);
  const server = await startRedis(t, [], { env: clock.env });
  await server.client.hset('sallyport:{primary-0}:floor', { v: '2', newer: 'field' });
  const proxy = openStore(t, redisSettings(server.port));
  await proxy.up();
  await secondLater(proxy);
  t.equal(await use(proxy, freshScope()), 'acquired');
  clock.setAheadMs(hourMs);
  t.equal(await use(proxy, freshScope()), 'acquired, and tokens of before are refused');
  t.equal(proxy.failovers(), 1);
});

t.test('each primary of a Cluster has a clock of its own', async (t) => {
  const clocks = [createSteppedClock(t), createSteppedClock(t), createSteppedClock(t)] as const;
  clocks[1].setAheadMs(hourMs);
  clocks[2].setAheadMs(-hourMs);
  const cluster = await startCluster(t, 3, 0, [], (index) => clocks[index]?.env ?? {});
  const { port: seed } = cluster.nodes[0] ?? { port: 0 };
  const proxy = openStore(
    t,
    redisSettings(seed, { topology: { kind: 'cluster', nodes: [{ host: '127.0.0.1', port: seed }] } }),
  );
  await proxy.up();
  await secondLater(proxy);
  const scopes = new Map<number, ReservationScope>();
  while (scopes.size < 3) {
    const scope = freshScope();
    scopes.set(await cluster.portOf(slotOf(scope.principal)), scope);
  }
  const [calm, stepped] = [scopes.get(cluster.nodes[0]?.port ?? 0), scopes.get(cluster.nodes[2]?.port ?? 0)];
  for (const [port, scope] of scopes) t.equal(await use(proxy, scope), 'acquired', String(port));
  t.equal(proxy.failovers(), 0, 'that they differ is nothing');
  clocks[2].setAheadMs(hourMs);
  t.equal(
    await use(proxy, { ...freshScope(), principal: calm?.principal ?? '' }),
    'acquired',
    'another primary has not stepped',
  );
  t.equal(await use(proxy, stepped ?? freshScope()), 'acquired, and tokens of before are refused');
  t.equal(proxy.failovers(), 1);
  t.match(
    proxy.log.lines.find((line) => line.startsWith('error the clock')),
    new RegExp(`127.0.0.1:${String(cluster.nodes[2]?.port)}`),
  );
});
