import { randomBytes } from 'node:crypto';
import t from 'tap';
import type { RedisStore } from '../../../src/adapters/redis/reservation-store.js';
import { createStoreShare } from '../../../src/adapters/redis/store-share.js';
import { accept } from '../../../src/lib/result.js';
import { bytesOfRecord } from '../../../src/decision/limits/store-share.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { leastRights, openStore, redisSettings } from './redis-store.js';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const mebi = 1024 * 1024;

/** Large enough to be waited for. */
const answer = { bytes: 100_000, retentionMs: dayMs };

/** Opens a store that is there, for what callers keep in it. */
async function openShare(
  t: Scope,
  redis: Pick<RedisServer, 'port'>,
  settings?: Parameters<typeof redisSettings>[1],
): Promise<RedisStore['share']> {
  const { store, up } = openStore(t, redisSettings(redis.port, settings));
  await up();
  return store.share;
}

const caller = (): string => randomBytes(32).toString('base64url');

t.test('answers are kept until the share is used up, for each caller by itself', async (t) => {
  const redis = await startRedis(t);
  const share = await openShare(t, redis, { keptPerCaller: mebi });
  const [one, other] = [caller(), caller()];
  const { all, least } = bytesOfRecord(answer);
  const fit = Math.floor(mebi / all);
  for (let kept = 0; kept < fit; kept += 1) t.equal(await share.keeps(one, answer), true, String(kept));
  t.equal(await share.isUsedUp(one), false);
  for (let over = 0; over < 5; over += 1) t.equal(await share.keeps(one, answer), false);
  t.equal(await share.keeps(other, answer), true);
  const key = `sallyport:{${one}}:k`;
  t.equal(Number(await redis.client.hget(key, 't')), fit * all + 5 * least, 'records count without their answers, too');
  t.ok((await redis.client.pttl(key)) > dayMs);
  t.equal(await share.isUsedUp(one), false);
  await redis.client.hset(key, 't', String(2 * mebi));
  t.equal(await share.keeps(one, answer), false);
  t.equal(await share.isUsedUp(one), true);
  t.equal(await share.isUsedUp(other), false);
});

t.test('what has ended makes room again, however long nobody asked', async (t) => {
  const redis = await startRedis(t);
  const share = await openShare(t, redis, { keptPerCaller: mebi });
  for (const agoHours of [1, 26, 800, 5_000]) {
    const one = caller();
    const key = `sallyport:{${one}}:k`;
    const hour = Math.floor(Date.now() / hourMs);
    const ended = `h${String((hour - Math.min(agoHours, 900) + 1) % 1024)}`;
    await redis.client.hset(key, { n: String(hour - agoHours), t: String(2 * mebi), [ended]: String(2 * mebi) });
    t.equal(await share.keeps(one, answer), true, `${String(agoHours)} h`);
    t.equal(Number(await redis.client.hget(key, 't')), bytesOfRecord(answer).all);
    t.equal(Number(await redis.client.hget(key, 'n')), hour);
  }
  const still = caller();
  const hour = Math.floor(Date.now() / hourMs);
  await redis.client.hset(`sallyport:{${still}}:k`, {
    n: String(hour - 3),
    t: String(2 * mebi),
    [`h${String((hour + 1) % 1024)}`]: String(2 * mebi),
  });
  t.equal(await share.keeps(still, answer), false, 'what has not ended takes room');
});

t.test('the longest retention fits the ring, and it takes no more fields than that has', async (t) => {
  const redis = await startRedis(t);
  const share = await openShare(t, redis, { keptPerCaller: 1024 * mebi });
  const one = caller();
  t.equal(await share.keeps(one, { bytes: 100_000, retentionMs: 31 * dayMs }), true);
  t.equal(await share.keeps(one, { bytes: 100_000, retentionMs: hourMs }), true);
  t.ok((await redis.client.pttl(`sallyport:{${one}}:k`)) > 31 * dayMs, 'the longest decides when it ends');
  t.equal(await redis.client.hlen(`sallyport:{${one}}:k`), 4);
});

t.test(
  'the hour in which it ends may be one that has ended meanwhile: what is counted there is counted once',
  async (t) => {
    const redis = await startRedis(t);
    const share = await openShare(t, redis, { keptPerCaller: 1024 * mebi });
    const kept = { bytes: 100_000, retentionMs: 31 * dayMs };
    for (const silentHours of [270, 300, 1_500]) {
      let [key, ends, isTurn] = ['', '', true];
      // Once more where Redis was in the next hour already when it read its clock.
      while (isTurn) {
        const one = caller();
        key = `sallyport:{${one}}:k`;
        const hour = Math.floor(Date.now() / hourMs);
        ends = `h${String((hour + 31 * 24 + 1) % 1024)}`;
        await redis.client.hset(key, { n: String(hour - silentHours), t: '7', [ends]: '7' });
        t.equal(await share.keeps(one, kept), true);
        const counted = async () => {
          const n = Number(await redis.client.hget(key, 'n'));
          return n >= hour ? n : null;
        };
        isTurn = (await until('it is counted', counted)) !== hour;
      }
      const { n, t: total, ...ring } = await redis.client.hgetall(key);
      t.ok(n);
      const sum = Object.values(ring).reduce((bytes, text) => bytes + Number(text), 0);
      t.equal(Number(total), sum, `${String(silentHours)} h: the hours add up to all`);
      t.equal(Number(ring[ends]), bytesOfRecord(kept).all + (silentHours < 279 ? 7 : 0));
    }
  },
);

t.test(
  'of 10,000 callers over their share the one that was asked for longest ago gives way to a new one',
  async (t) => {
    const asked: string[] = [];
    const servers: Parameters<typeof createStoreShare>[0] = {
      run: (tag) => {
        asked.push(tag);
        return Promise.resolve(accept({ reply: ['0', '1000'], confirmedReplicas: null }));
      },
      memoryOf: () => null,
    };
    const share = createStoreShare(servers, redisSettings(1, { keptPerCaller: 10 }));
    for (let one = 0; one < 10_000; one += 1) await share.keeps(`c${String(one)}`, answer);
    await share.keeps('c0', answer);
    await share.keeps('new', answer);
    asked.length = 0;
    t.equal(await share.isUsedUp('new'), true, 'it is known');
    t.equal(await share.isUsedUp('c0'), true);
    t.equal(await share.isUsedUp('c1'), false, 'which is not asked for any more');
    t.same(asked, ['new', 'c0']);
  },
);

t.test('a quarter of what the server may hold, unless said; without a limit nothing is counted', async (t) => {
  const redis = await startRedis(t);
  const share = await openShare(t, redis);
  const one = caller();
  t.equal(await share.keeps(one, { bytes: 100 * mebi, retentionMs: dayMs }), true);
  t.equal(await redis.client.dbsize(), 1, 'that it is known');
  await redis.client.config('SET', 'maxmemory', '64mb');
  await until('it is seen', async () => !(await share.keeps(one, { bytes: 17 * mebi, retentionMs: dayMs })));
  t.equal(await share.keeps(one, answer), true, 'what fits is kept');
});

t.test('what cannot be counted is kept: it guards the memory, and not the writes', async (t) => {
  const redis = await startRedis(t);
  const share = await openShare(t, redis, { keptPerCaller: mebi });
  const one = caller();
  await redis.client.set(`sallyport:{${one}}:k`, 'of another program');
  t.equal(await share.keeps(one, answer), true);
  await redis.kill();
  t.equal(await share.keeps(caller(), answer), true);
  t.equal(await share.isUsedUp(one), false);
});

t.test('the rights of docs/storage.md are enough', async (t) => {
  const redis = await startRedis(t);
  await redis.client.call(
    'ACL',
    'SETUSER',
    'default',
    'resetkeys',
    'resetchannels',
    '-@all',
    ...leastRights,
    '+acl',
    '+config',
  );
  const share = await openShare(t, redis, { keptPerCaller: mebi });
  t.equal(await share.keeps(caller(), { bytes: 2 * mebi, retentionMs: dayMs }), false);
});
