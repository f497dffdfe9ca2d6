import t from 'tap';
import { overtakingReleaseMs } from '../../../src/decision/idempotency/record.js';
import { createMemoryStore, memoryStoreLimits } from '../../../src/adapters/memory/reservation-store.js';
import { until } from '../../support/until.js';
import { acquire, freshScope, markOf, reserveOf } from '../store-commands.js';
import { storeContract } from '../store-contract.js';

const clock = { now: () => Date.now(), monotonic: () => performance.now() };

t.test('the memory store keeps the contract', (t) => {
  const store = createMemoryStore(clock);
  t.teardown(() => store.close());
  storeContract(t, () => store);
  t.end();
});

t.test(
  'a full store refuses what is new, still serves what it has, and takes more when something expires',
  async (t) => {
    let now = 1_800_000_000_000;
    const store = createMemoryStore({ ...clock, now: () => now }, { maxEntries: 2, maxBytes: 1_000 });
    t.teardown(() => store.close());
    const first = { ...freshScope(), token: null };
    const fence = await acquire(store, first, reserveOf('a', { leaseMs: 10, retentionMs: 10 }));
    await acquire(store, { ...freshScope(), token: null }, reserveOf('b', { leaseMs: 1_000, retentionMs: 1_000 }));
    t.match(await store.reserve({ ...freshScope(), token: null }, reserveOf('c')), {
      ok: false,
      error: { kind: 'full' },
    });
    t.match(await store.reserve(first, reserveOf('d')), { ok: true, value: { reserved: { kind: 'in_progress' } } });
    t.same(
      await store.complete(first, {
        attempt: 'a',
        fence,
        fingerprint: 'f',
        state: 'completed',
        response: { status: 200, headers: [], body: Buffer.alloc(2_000) },
        retentionMs: 100,
      }),
      { ok: true, value: 'completed' },
    );
    now += 2_000;
    await acquire(store, { ...freshScope(), token: null }, reserveOf('e'));
  },
);

t.test('bytes of kept responses are bounded too', async (t) => {
  const store = createMemoryStore(clock, { maxEntries: 100, maxBytes: 1_000 });
  t.teardown(() => store.close());
  const scope = { ...freshScope(), token: null };
  const fence = await acquire(store, scope, reserveOf('a'));
  const response = { status: 200, headers: [], body: Buffer.alloc(1_000) };
  await store.complete(scope, {
    attempt: 'a',
    fence,
    fingerprint: 'f',
    state: 'completed',
    response,
    retentionMs: 60_000,
  });
  t.match(await store.reserve({ ...freshScope(), token: null }, reserveOf('b')), {
    ok: false,
    error: { kind: 'full' },
  });
});

t.test('records and markers count together, and what a full store knows it still settles', async (t) => {
  const store = createMemoryStore(clock, { maxEntries: 2, maxBytes: 1_000 });
  t.teardown(() => store.close());
  const scope = freshScope();
  const fence = await acquire(store, scope, reserveOf('a', {}, 60_000));
  const sameToken = { ...freshScope(), principal: scope.principal, token: scope.token };
  t.match(await store.reserve(sameToken, reserveOf('b', {}, 60_000)), {
    ok: false,
    error: { kind: 'full', mayHaveRun: false },
  });
  t.match(await store.reserve(scope, reserveOf('b')), { ok: true, value: { reserved: { kind: 'in_progress' } } });
  t.same(await store.mark(scope, markOf('a', fence)), { ok: true, value: 'unknown' });
  t.same(await store.resolve(scope, 'not-applied'), { ok: true, value: 'resolved' });
  await acquire(store, { ...scope, token: null }, reserveOf('b'));
});

t.test('what has expired leaves by itself, and nothing else does', async (t) => {
  let now = 1_800_000_000_000;
  const store = createMemoryStore({ ...clock, now: () => now }, { maxEntries: 3, maxBytes: 1_000 }, 1);
  t.teardown(() => store.close());
  const [short, long] = [freshScope(), { ...freshScope(), token: null }];
  await acquire(store, short, reserveOf('a', { leaseMs: 10, retentionMs: 10 }, 20));
  await acquire(store, long, reserveOf('a', { leaseMs: 100, retentionMs: 100 }));
  now += 20;
  await until('there is room for two', async () => (await store.reserve(freshScope(), reserveOf('b', {}, 60_000))).ok);
  t.match(await store.reserve(long, reserveOf('c')), { ok: true, value: { reserved: { kind: 'in_progress' } } });
  t.match(await store.reserve(freshScope(), reserveOf('d')), { ok: false, error: { kind: 'full' } });
  t.match(store.state(), { kind: 'memory', up: true, problem: null, connectedReplicas: null, failovers: 0 });
  t.equal(store.issuedBeforeFloorS(), null);
});

type Store = ReturnType<typeof createMemoryStore>;

const longMs = 10 * overtakingReleaseMs;

/** What takes room in a store, each for as long as it is asked to or as it does. */
const kinds: readonly {
  readonly name: string;
  readonly keep: (store: Store, lifeMs: number) => Promise<unknown>;
  readonly livesMs: number;
}[] = [
  {
    name: 'a record',
    livesMs: 20,
    keep: (store, lifeMs) =>
      acquire(
        store,
        { ...freshScope(), token: null },
        reserveOf('a', { leaseMs: lifeMs / 2, retentionMs: lifeMs / 2 }),
      ),
  },
  {
    name: 'a marker',
    livesMs: 20,
    keep: (store, lifeMs) =>
      acquire(store, { ...freshScope(), operation: null }, { attempt: 'a', key: null, markerTtlMs: lifeMs }),
  },
  {
    name: 'a withdrawal',
    livesMs: overtakingReleaseMs,
    keep: (store) => store.release({ ...freshScope(), token: null }, { attempt: 'a' }),
  },
  {
    name: 'a key that was freed',
    livesMs: overtakingReleaseMs,
    keep: async (store) => {
      const scope = { ...freshScope(), token: null };
      await acquire(store, scope, reserveOf('a', { leaseMs: longMs, retentionMs: longMs }));
      return store.release(scope, { attempt: 'a' });
    },
  },
];

const asksForRoom = async (store: Store): Promise<boolean> =>
  (await store.reserve({ ...freshScope(), token: null }, reserveOf('new', { leaseMs: longMs, retentionMs: longMs })))
    .ok;

t.test('a full store has room again at the very moment that something expires, whatever it is', async (t) => {
  for (const { name, keep, livesMs } of kinds) {
    let now = 1_800_000_000_000;
    const store = createMemoryStore({ ...clock, now: () => now }, { maxEntries: 1, maxBytes: 1_000 }, 1_000_000);
    await keep(store, livesMs);
    now += livesMs - 1;
    t.equal(await asksForRoom(store), false, `${name}, before`);
    now += 1;
    t.equal(await asksForRoom(store), true, name);
    await store.close();
  }
});

t.test('and again when the next one does', async (t) => {
  for (const { name, keep, livesMs } of kinds) {
    let now = 1_800_000_000_000;
    const store = createMemoryStore({ ...clock, now: () => now }, { maxEntries: 2, maxBytes: 1_000 }, 1_000_000);
    const record = kinds[0];
    if (record === undefined) throw new Error('no kinds');
    await record.keep(store, 10);
    await keep(store, livesMs);
    now += 10;
    t.equal(await asksForRoom(store), true, `${name}, beside what expired`);
    t.equal(await asksForRoom(store), false, `${name}, with another in its place`);
    now += livesMs - 10;
    t.equal(await asksForRoom(store), true, name);
    t.equal(await asksForRoom(store), false, `${name}, with one more`);
    await store.close();
  }
});

t.test('what a response takes is its body and its fields', async (t) => {
  for (const { body, headers, isFull } of [
    { body: 999, headers: [], isFull: false },
    { body: 1_000, headers: [], isFull: true },
    { body: 991, headers: ['Server', 'ab'], isFull: false },
    { body: 992, headers: ['Server', 'ab'], isFull: true },
  ]) {
    const store = createMemoryStore(clock, { maxEntries: 100, maxBytes: 1_000 }, 1_000_000);
    const scope = { ...freshScope(), token: null };
    const fence = await acquire(store, scope, reserveOf('a'));
    const response = { status: 200, headers, body: Buffer.alloc(body) };
    await store.complete(scope, {
      attempt: 'a',
      fence,
      fingerprint: 'f',
      state: 'completed',
      response,
      retentionMs: 60_000,
    });
    t.equal(await asksForRoom(store), !isFull, `${String(body)} bytes and ${headers.join()}`);
    await store.close();
  }
  t.same(memoryStoreLimits, { maxEntries: 100_000, maxBytes: 67_108_864 });
});

t.test('a store keeps no process alive, and looks at nothing once it is closed', async (t) => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  let [looks, others] = [0, 0];
  const store = createMemoryStore({ ...clock, now: () => (looks += 1) }, memoryStoreLimits, 1);
  const other = createMemoryStore({ ...clock, now: () => (others += 1) }, memoryStoreLimits, 1);
  t.teardown(() => other.close());
  t.equal(timers(), before);
  await until('it looks', () => looks > 2);
  await store.close();
  const seen = looks;
  await until('another one looks on', () => others > 20);
  t.equal(looks, seen);
});
