import t from 'tap';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import { until } from '../../support/until.js';
import { acquire, freshScope, reserveOf } from '../store-world.js';
import { storeContract } from '../store-contract.js';

const clock = { now: () => Date.now(), monotonic: () => performance.now() };

t.test('the memory store keeps the contract', (t) => {
  const store = createMemoryStore(clock);
  t.teardown(() => store.close());
  storeContract(t, () => store);
  t.end();
});

t.test('a full store refuses what is new, still serves what it has, and takes more when something expires', async (t) => {
  let now = 1_800_000_000_000;
  const store = createMemoryStore({ ...clock, now: () => now }, { maxEntries: 2, maxBytes: 1_000 });
  t.teardown(() => store.close());
  const first = { ...freshScope(), token: null };
  const fence = await acquire(store, first, reserveOf('a', { leaseMs: 10, retentionMs: 10 }));
  await acquire(store, { ...freshScope(), token: null }, reserveOf('b', { leaseMs: 1_000, retentionMs: 1_000 }));
  t.match(await store.reserve({ ...freshScope(), token: null }, reserveOf('c')), { ok: false, error: { kind: 'full' } });
  t.match(await store.reserve(first, reserveOf('d')), { ok: true, value: { reserved: { kind: 'in_progress' } } });
  t.same(await store.complete(first, {
    attempt: 'a', fence, fingerprint: 'f', state: 'completed', response: { status: 200, fields: [], body: Buffer.alloc(2_000) }, retentionMs: 100,
  }), { ok: true, value: 'completed' });
  now += 2_000;
  await acquire(store, { ...freshScope(), token: null }, reserveOf('e'));
});

t.test('bytes of kept responses are bounded too', async (t) => {
  const store = createMemoryStore(clock, { maxEntries: 100, maxBytes: 1_000 });
  t.teardown(() => store.close());
  const scope = { ...freshScope(), token: null };
  const fence = await acquire(store, scope, reserveOf('a'));
  const response = { status: 200, fields: [], body: Buffer.alloc(1_000) };
  await store.complete(scope, { attempt: 'a', fence, fingerprint: 'f', state: 'completed', response, retentionMs: 60_000 });
  t.match(await store.reserve({ ...freshScope(), token: null }, reserveOf('b')), { ok: false, error: { kind: 'full' } });
});

t.test('records and markers count together, and what a full store knows it still settles', async (t) => {
  const store = createMemoryStore(clock, { maxEntries: 2, maxBytes: 1_000 });
  t.teardown(() => store.close());
  const scope = freshScope();
  const fence = await acquire(store, scope, reserveOf('a', {}, 60_000));
  const sameToken = { ...freshScope(), principal: scope.principal, token: scope.token };
  t.match(await store.reserve(sameToken, reserveOf('b', {}, 60_000)), { ok: false, error: { kind: 'full', mayHaveRun: false } });
  t.match(await store.reserve(scope, reserveOf('b')), { ok: true, value: { reserved: { kind: 'in_progress' } } });
  t.same(await store.mark(scope, { attempt: 'a', fence }), { ok: true, value: 'unknown' });
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
