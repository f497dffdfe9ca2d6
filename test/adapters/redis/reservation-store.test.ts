import t from 'tap';
import { startRedis } from '../../support/redis-server.js';
import { storeContract } from '../store-contract.js';
import { acquire, freshScope, reserveOf } from '../store-world.js';
import { openStore, redisSettings } from './redis-world.js';

t.test('the Redis store', async (t) => {
  const server = await startRedis(t);
  const { store, up } = openStore(t, redisSettings(server.port));
  await up();

  t.test('keeps the contract', (t) => {
    storeContract(t, () => store);
    t.end();
  });

  t.test('a record of another version is answered as unsupported and never overwritten', async (t) => {
    const scope = freshScope();
    const key = `sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`;
    await server.client.hset(key, { v: '2', s: 'pending', future: 'field' });
    const before = await server.client.hgetall(key);
    t.match(await store.reserve(scope, reserveOf('a', {}, 1_000)), { value: { reserved: { kind: 'unsupported' } } });
    t.same(await store.complete(scope, {
      attempt: 'a', fence: 1, fingerprint: 'f', state: 'completed', response: { status: 200, fields: [], body: Buffer.alloc(0) }, retentionMs: 1_000,
    }), { ok: true, value: 'unsupported' });
    t.same(await store.release(scope, { attempt: 'a' }), { ok: true, value: 'unsupported' });
    t.same(await store.mark(scope, { attempt: 'a', fence: 1 }), { ok: true, value: 'unsupported' });
    t.same(await store.resolve(scope, 'committed'), { ok: true, value: 'unsupported' });
    t.same(await server.client.hgetall(key), before);
    t.equal(await server.client.exists(`sallyport:{${scope.principal}}:t:${scope.token ?? ''}`), 0, 'the token is not used up');
  });

  t.test('no key is without an end (REPLAY property 9)', async (t) => {
    const scope = freshScope();
    const fence = await acquire(store, scope, reserveOf('a', {}, 5_000));
    await store.mark(scope, { attempt: 'a', fence });
    for (const key of await server.client.keys('*')) {
      if (key.includes('{')) t.ok(await server.client.pttl(key) > 0 || await server.client.hexists(key, 'future') === 1, key);
    }
  });

  t.test('a flushed script cache costs one more round trip, not an error', async () => {
    await server.client.script('FLUSH');
    await acquire(store, freshScope(), reserveOf('a'));
  });

  t.test('a key of another type under our name is refused, not overwritten', async (t) => {
    const scope = freshScope();
    await server.client.set(`sallyport:{${scope.principal}}:i:${scope.operation ?? ''}`, 'foreign');
    t.match(await store.reserve(scope, reserveOf('a')), { ok: false, error: { kind: 'refused' } });
  });
});
