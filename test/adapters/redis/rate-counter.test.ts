import { randomBytes } from 'node:crypto';
import t from 'tap';
import { createSharedRateCounter } from '../../../src/adapters/redis/rate-counter.js';
import { scripts } from '../../../src/adapters/redis/scripts/reservation.js';
import type { RunResult } from '../../../src/adapters/redis/topology/primary.js';
import type { ScriptCall } from '../../../src/adapters/redis/scripts/run-script.js';
import type { LimitKey } from '../../../src/decision/route/rate-limit.js';
import { startRedis } from '../../support/redis-server.js';
import { until } from '../../support/until.js';
import { leastRights, openStore, redisSettings } from './redis-store.js';

const redis = await startRedis(t);
await redis.client.connect().catch(() => undefined);
await redis.client.acl('SETUSER', 'sallyport', 'on', 'nopass', ...leastRights);
const hash = (): string => randomBytes(32).toString('base64url');
const freshKey = (): LimitKey => ({ principal: hash(), scope: hash() });

t.test('what is asked of Redis, and how its answer is read', async (t) => {
  const calls: (readonly [string, ScriptCall])[] = [];
  const failure = { kind: 'timeout', reason: 'late', mayHaveRun: true } as const;
  const unexpected = { kind: 'refused', reason: 'the store answered with something unexpected', mayHaveRun: true };
  const answered = (reply: unknown): RunResult => ({ ok: true, value: { reply, confirmedReplicas: null } });
  const answers: readonly (readonly [RunResult, object])[] = [
    [answered(Buffer.from('1500')), { ok: true, value: 1.5 }],
    [answered(Buffer.from('0')), { ok: true, value: 0 }],
    [answered('soon'), { ok: false, error: unexpected }],
    [
      { ok: false, error: { ...failure, cause: new Error('secret') } },
      { ok: false, error: failure },
    ],
  ];
  for (const [ran, expected] of answers) {
    const counter = createSharedRateCounter(
      {
        run: async (tag, call) => {
          calls.push([tag, call]);
          return ran;
        },
      },
      redisSettings(1, { prefix: 'x', reserveTimeoutMs: 77 }),
    );
    t.same(await counter.take({ principal: 'p', scope: 's' }, { perSecond: 3, burst: 5, shared: true }), expected);
  }
  t.same(calls[0], [
    'p',
    { script: scripts.limit, keys: ['x:{p}:l:s'], values: ['333333.333', '5'], replicas: 0, deadlineMs: 77 },
  ]);
});

t.test('a burst, then what fills, by the clock of Redis, with the rights that docs/storage.md lists', async (t) => {
  const { store, up } = openStore(t, redisSettings(redis.port, { username: 'sallyport' }));
  await up();
  for (const rate of [
    { perSecond: 0.5, burst: 1, shared: true },
    { perSecond: 0.01, burst: 20, shared: true },
    { perSecond: 0.03, burst: 7, shared: true },
  ]) {
    const key = freshKey();
    const waits: number[] = [];
    for (let i = 0; i <= rate.burst; i += 1) {
      const taken = await store.rates.take(key, rate);
      waits.push(taken.ok ? taken.value : NaN);
    }
    const last = waits.pop() ?? NaN;
    t.same(
      waits,
      waits.map(() => 0),
      `${String(rate.burst)} at once`,
    );
    t.ok(last > 0 && last <= 1_000 / rate.perSecond + 0.001, `${String(last)} ms, ${JSON.stringify(rate)}`);
  }
});

t.test('one request more for each interval, however often it is asked meanwhile', async (t) => {
  const { store, up } = openStore(t, redisSettings(redis.port));
  await up();
  const [key, rate, startedMs] = [freshKey(), { perSecond: 50, burst: 1, shared: true }, performance.now()];
  let passed = 0;
  for (let i = 0; passed < 20 && i < 100_000; i += 1) {
    const taken = await store.rates.take(key, rate);
    if (taken.ok && taken.value === 0) passed += 1;
  }
  t.ok(performance.now() - startedMs >= 19 * 20 - 5, 'no faster than the rate');
});

t.test('a key ends when its bucket is full', async (t) => {
  const { store, up } = openStore(t, redisSettings(redis.port));
  await up();
  const key = freshKey();
  const name = `sallyport:{${key.principal}}:l:${key.scope}`;
  await store.rates.take(key, { perSecond: 0.1, burst: 5, shared: true });
  const left = await redis.client.pttl(name);
  t.ok(left > 5_000 && left <= 10_000, `${String(left)} ms for one of ten seconds`);
  await store.rates.take(key, { perSecond: 100, burst: 5, shared: true });
  t.ok((await redis.client.pttl(name)) <= 60, 'limits that were changed count at once');
  await until('it to end', async () => (await redis.client.exists(name)) === 0);
});

t.test('what is none of ours, or away, is a failure and no wait', async (t) => {
  const { store, up, down } = openStore(t, redisSettings(redis.port, { reserveTimeoutMs: 500 }));
  await up();
  const key = freshKey();
  await redis.client.hset(`sallyport:{${key.principal}}:l:${key.scope}`, 'x', 'y');
  t.match(await store.rates.take(key, { perSecond: 1, burst: 1, shared: true }), {
    ok: false,
    error: { kind: 'refused' },
  });
  t.equal(store.state().up, true, 'which says nothing against the store');
  await redis.kill();
  await down();
  t.match(await store.rates.take(freshKey(), { perSecond: 1, burst: 1, shared: true }), {
    ok: false,
    error: { kind: 'unreachable' },
  });
});
