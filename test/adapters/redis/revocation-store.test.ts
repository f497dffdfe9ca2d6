import { randomBytes } from 'node:crypto';
import t, { type Test } from 'tap';
import { circuitThreshold } from '../../../src/decision/limits/circuit-breaker.js';
import {
  maxRevocationMs,
  maxRevocationRecords,
  revocationBody,
  type NewRevocation,
} from '../../../src/decision/revocation/record.js';
import type { RevocationStore } from '../../../src/ports/revocations.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import { startRelay } from '../../support/tcp-relay.js';
import { until } from '../../support/until.js';
import { freshScope, reserveOf } from '../store-commands.js';
import { leastRights, openStore, redisSettings } from './redis-store.js';

const key = 'sallyport:{revoked}:list';
const newId = (): string => randomBytes(16).toString('base64url');

function revocation(change: Partial<NewRevocation> = {}): NewRevocation {
  return { id: newId(), kind: 'subject', value: 'checkout', issuer: null, reason: 'a leak', author: 'ann', ...change };
}

async function setup(t: Test): Promise<{ readonly redis: RedisServer; readonly store: RevocationStore }> {
  const redis = await startRedis(t);
  await redis.client.acl('SETUSER', 'sallyport', 'on', 'nopass', ...leastRights);
  const { store, up } = openStore(t, redisSettings(redis.port, { username: 'sallyport' }));
  await up();
  return { redis, store: store.revocations };
}

/** The list as it is now. */
async function listed(store: RevocationStore) {
  const loaded = await store.load(null);
  if (!loaded.ok || loaded.value === null) throw new Error(JSON.stringify(loaded));
  return loaded.value;
}

async function revoke(
  store: RevocationStore,
  change: Partial<NewRevocation> = {},
  holdsMs = 60_000,
): Promise<NewRevocation> {
  const made = revocation(change);
  const written = await store.revoke(made, holdsMs);
  if (!written.ok) throw new Error(JSON.stringify(written));
  return made;
}

t.test('a revocation is kept with author, reason and end, with the rights that docs/storage.md lists', async (t) => {
  const { redis, store } = await setup(t);
  t.same((await listed(store)).revocations, []);
  const made = revocation({ issuer: 'https://api.example.com', reason: 'a "leak" – ü\u{1f511}' });
  const written = await store.revoke(made, 5_000);
  t.match(written, { ok: true, value: { isAnnounced: true } });
  const list = await listed(store);
  t.match(list.revocations, [
    {
      ...made,
      ...(written.ok ? { createdAtMs: written.value.createdAtMs, endsAtMs: written.value.createdAtMs + 5_000 } : {}),
    },
  ]);
  t.same([list.undone, list.unreadable], [[], []]);
  t.ok(list.nowMs >= (list.revocations[0]?.createdAtMs ?? Infinity));
  t.same(await store.load(list.version), { ok: true, value: null }, 'nothing new');
  const left = await redis.client.pttl(key);
  t.ok(left > 0 && left <= 5_000, `${String(left)} ms`);
  t.same(
    (await redis.client.keys('*')).filter((name) => !name.endsWith(':floor')),
    [key],
    'one key, with an end',
  );
});

t.test('an undo is a record of its own, and lasts as long as what it ends', async (t) => {
  const { redis, store } = await setup(t);
  const [one, other] = [await revoke(store, {}, 120_000), await revoke(store, {}, 600_000)];
  t.match(await store.undo(one.id, { author: 'bob', reason: 'a mistake' }), {
    ok: true,
    value: { found: 'undone', isAnnounced: true },
  });
  const list = await listed(store);
  t.same(
    list.revocations.map(({ id }) => id),
    [other.id],
  );
  t.match(list.undone, [{ id: one.id, author: 'bob', reason: 'a mistake' }]);
  const lastsMs = (list.undone[0]?.endsAtMs ?? 0) - list.nowMs;
  t.ok(lastsMs > 60_000 && lastsMs <= 120_000, String(lastsMs));
  t.match(await store.undo(one.id, { author: 'bob', reason: null }), { ok: true, value: { found: 'already' } });
  const unknown = newId();
  t.match(await store.undo(unknown, { author: 'bob', reason: null }), { ok: true, value: { found: 'unknown' } });
  const after = await listed(store);
  t.equal(
    (after.undone.find(({ id }) => id === unknown)?.endsAtMs ?? 0) - after.nowMs > maxRevocationMs - 60_000,
    true,
    'nobody knows when it ends',
  );
  t.equal((after.undone.find(({ id }) => id === one.id)?.endsAtMs ?? 0) - after.nowMs <= 120_000, true);
  t.ok((await redis.client.pttl(key)) <= maxRevocationMs);
});

t.test('what is over leaves by itself: with the next write, and with the key', async (t) => {
  const { redis, store } = await setup(t);
  const short = await revoke(store, {}, 50);
  const long = await revoke(store, {}, 60_000);
  await until('the short one is over', async () => {
    const list = await listed(store);
    return list.revocations.some(({ id, endsAtMs }) => id === short.id && endsAtMs <= list.nowMs);
  });
  await revoke(store, {}, 60_000);
  t.equal(await redis.client.hexists(key, `e:${short.id}`), 0);
  t.equal(await redis.client.hexists(key, `e:${long.id}`), 1);
  await redis.client.del(key);
  await revoke(store, {}, 50);
  await until('the key is gone', async () => (await redis.client.exists(key)) === 0);
});

t.test('a list without an end gets one, and none of its records goes before its own', async (t) => {
  const { redis, store } = await setup(t);
  await revoke(store, {}, 600_000);
  await redis.client.persist(key);
  await revoke(store, {}, 5_000);
  const left = await redis.client.pttl(key);
  t.ok(left > 500_000 && left <= 600_000, `${String(left)} ms`);
});

t.test('records have a bound; an undo of one that is there finds room', async (t) => {
  const { redis, store } = await setup(t);
  const made = await revoke(store);
  const now = Date.now();
  const text = `1 ${String(now)} ${String(now + 600_000)} ${revocationBody(made)}`;
  const pipeline = redis.client.pipeline();
  for (let count = 1; count < maxRevocationRecords; count += 1) pipeline.hset(key, `e:${newId()}`, text);
  await pipeline.exec();
  t.equal((await listed(store)).revocations.length, maxRevocationRecords);
  t.match(await store.revoke(revocation(), 1_000), {
    ok: false,
    error: { kind: 'full', reason: /holds 5000 revocations/, mayHaveRun: false },
  });
  t.match(await store.undo(newId(), { author: 'ann', reason: null }), { ok: false, error: { kind: 'full' } });
  t.match(await store.undo(made.id, { author: 'ann', reason: null }), { ok: true, value: { found: 'undone' } });
  await redis.client.hset(
    key,
    Object.fromEntries(Array.from({ length: maxRevocationRecords + 10 }, () => [newId(), 'x'])),
  );
  t.match(await store.load(null), { ok: false, error: { kind: 'refused', reason: /more than 10000 records/ } });
});

t.test('damaged and hostile records take nothing from the others', async (t) => {
  const { redis, store } = await setup(t);
  const good = await revoke(store);
  const bad: Readonly<Record<string, string | Buffer>> = {
    [`e:${newId()}`]: '',
    [`e:${newId()}`]: '1 x',
    [`e:${newId()}`]: Buffer.from([0xff, 0xfe, 0x31, 0x20]),
    [`e:${newId()}`]: `2 5 10 ${revocationBody(good)}`,
    'e:short': `1 5 ${'9'.repeat(15)} ${revocationBody(good)}`,
    [`x:${newId()}`]: 'x',
    '': 'x',
    ['y'.repeat(100_000)]: 'x',
    [`u:${good.id}`]: '1 5 99999999999999 {"author":5}',
    [`e:${newId()}`]: 'z'.repeat(1_000_000),
    [`e:${newId()}`]: `1 5 99999999999999 ${'{"a":'.repeat(500)}`,
  };
  await redis.client.hset(key, bad);
  const list = await listed(store);
  t.same(
    list.revocations.map(({ id }) => id),
    [good.id],
  );
  t.same(list.undone, []);
  t.equal(list.unreadable.length, Object.keys(bad).length);
  t.ok(list.unreadable.every((name) => name.length <= 64));
  await revoke(store);
  t.equal((await listed(store)).revocations.length, 2, 'and nothing from those to come');
  t.match(
    await store.undo(good.id, { author: 'ann', reason: null }),
    { ok: true, value: { found: 'undone' } },
    'a damaged undo is written anew',
  );
  t.match((await listed(store)).undone, [{ id: good.id }]);
  for (const version of ['*', '', 'v'.repeat(100)]) {
    await redis.client.hset(key, 'rev', version);
    t.equal((await listed(store)).revocations.length, 1, `a version ${version.slice(0, 3)} hides nothing`);
  }
});

t.test('another program under our key: refused, and left alone', async (t) => {
  const { redis, store } = await setup(t);
  await redis.client.set(key, 'theirs');
  for (const answer of [
    await store.load(null),
    await store.revoke(revocation(), 1_000),
    await store.undo(newId(), { author: 'ann', reason: null }),
  ]) {
    t.match(answer, { ok: false, error: { kind: 'refused', reason: /WRONGTYPE/, mayHaveRun: false } });
  }
  t.equal(await redis.client.get(key), 'theirs');
});

t.test('too long to be kept', async (t) => {
  const { store } = await setup(t);
  t.match(await store.revoke(revocation({ reason: 'x'.repeat(9_000) }), 1_000), {
    ok: false,
    error: { kind: 'refused', reason: /too long/ },
  });
});

t.test('news of each change comes at once; the connection is made again', async (t) => {
  const { redis, store } = await setup(t);
  let heard = 0;
  const news = store.follow(() => (heard += 1));
  t.teardown(() => news.close());
  await until('it listens', () => news.isOpen());
  const { id } = await (async () => {
    const before = heard;
    const made = await revoke(store);
    await until('the revocation is heard of', () => heard > before);
    return made;
  })();
  const before = heard;
  await store.undo(id, { author: 'ann', reason: null });
  await until('the undo is heard of', () => heard > before);
  await redis.client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  const lost = heard;
  await until('it listens again, and says that it may have missed something', () => news.isOpen() && heard > lost);
  t.same(await store.announce(), { ok: true, value: true });
  news.close();
  t.equal(news.isOpen(), false);
  news.refresh();
  t.equal(news.isOpen(), false, 'closed is closed');
});

t.test('without the right to the channel everything is kept, and nobody is told', async (t) => {
  const { redis, store } = await setup(t);
  await redis.client.acl('SETUSER', 'sallyport', 'resetchannels');
  const news = store.follow(() => undefined);
  t.teardown(() => news.close());
  t.match(await store.revoke(revocation(), 1_000), { ok: true, value: { isAnnounced: false } });
  t.same(await store.announce(), { ok: true, value: false });
  t.equal(news.isOpen(), false);
  t.equal((await listed(store)).revocations.length, 1);
});

t.test('a right that is missing leaves no list without an end', async (t) => {
  const { redis, store } = await setup(t);
  for (const right of ['+pexpire', '+hset', '+hgetall', '+hlen', '+pttl']) {
    await redis.client.acl('SETUSER', 'sallyport', `-${right.slice(1)}`);
    t.match(
      await store.revoke(revocation(), 60_000),
      { ok: false, error: { kind: 'refused', reason: /NOPERM|permission|can't run/i } },
      right,
    );
    t.same(
      (await redis.client.keys('*')).filter((name) => !name.endsWith(':floor')),
      [],
      right,
    );
    await redis.client.acl('SETUSER', 'sallyport', right);
  }
  await revoke(store);
});

t.test('a store that is too slow for reservations is read all the same', async (t) => {
  const redis = await startRedis(t);
  const relay = await startRelay(t, redis.port);
  const { store, up } = openStore(t, redisSettings(relay.port, { reserveTimeoutMs: 50 }));
  await up();
  relay.lag(200);
  const reserved = await Promise.all(
    Array.from({ length: 2 * circuitThreshold }, async () => store.reserve(freshScope(), reserveOf('a'))),
  );
  t.ok(reserved.every(({ ok }) => !ok));
  t.match(await store.reserve(freshScope(), reserveOf('b')), { ok: false, error: { reason: /one call every/ } });
  t.match(await store.revocations.load(null), { ok: true });
});

t.test('a store that is away or gives other answers', async (t) => {
  const { redis, store } = await setup(t);
  await redis.kill();
  t.match(await store.load(null), { ok: false, error: { kind: 'unreachable' } });
  t.match(await store.revoke(revocation(), 1_000), { ok: false, error: { kind: 'unreachable' } });
  t.match(await store.announce(), { ok: false });
});
