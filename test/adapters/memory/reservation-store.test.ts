import t from 'tap';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
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
