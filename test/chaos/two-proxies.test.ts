/** docs/guarantees.md "Promises": two proxies that share one Redis server. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { until } from '../support/until.js';
import { createSteppedClock } from '../support/stepped-clock.js';
import { seriesValue, usualWorkers } from '../support/proxy-process.js';
import { beginWrite, problemOrStatus, shareRedis, singlePasses, write } from './shared-redis.js';

// Many processes have to be started, each of them with as many workers.
t.setTimeout(60_000 * usualWorkers);

const shared = await shareRedis(t);
const [left, right] = [await shared.startProxy(), await shared.startProxy()];
const answers: ServerResponse[] = [];

t.beforeEach(() => {
  answers.length = 0;
  shared.receiver.behave((req, res) => {
    req.resume().on('end', () => answers.push(res));
  });
  shared.receiver.requests.length = 0;
});

t.test(
  '200 identical requests at once over two proxies: one execution, every response 409 or the result',
  async (t) => {
    const claims = { jti: 'shared' };
    const all = Promise.all(
      Array.from({ length: 200 }, async (_, i) => write(i % 2 === 0 ? left : right, { key: 'burst', claims })),
    );
    await until('one to run', () => answers.length === 1);
    answers[0]?.writeHead(201).end('made');
    const answered = (await all).map(problemOrStatus);
    t.equal(shared.executions().length, 1);
    t.same(
      [...new Set(answered)].filter((word) => word !== '201' && word !== 'idempotency-in-progress'),
      [],
    );
    t.ok(answered.includes('201'));
    for (const proxy of [left, right]) t.equal((await write(proxy, { key: 'burst' })).text, 'made');
  },
);

t.test('of a hundred requests with one single-use token over two proxies one passes', async (t) => {
  const claims = { jti: 'once' };
  shared.receiver.behave(null);
  for (const proxy of [left, right]) await singlePasses(proxy);
  shared.receiver.requests.length = 0;
  const answered = await Promise.all(
    Array.from({ length: 100 }, async (_, i) => write(i % 2 === 0 ? left : right, { path: '/single', claims })),
  );
  t.equal(answered.filter(({ status }) => status === 200).length, 1);
  t.equal(answered.filter(({ status }) => status === 401).length, 99);
  t.equal(shared.executions().length, 1);
});

t.test('a caller that left one proxy gets the result from the other', async (t) => {
  const connection = await beginWrite(t, left, { key: 'left' });
  await until('the receiver to have it', () => answers.length === 1);
  connection.end();
  t.equal(problemOrStatus(await write(right, { key: 'left' })), 'idempotency-in-progress');
  answers[0]?.end('done');
  await until('the result', async () => (await write(right, { key: 'left' })).text === 'done');
  t.equal(shared.executions().length, 1);
});

t.test('level 2: a write in doubt at one proxy is run by the other, with a higher fence', async (t) => {
  await beginWrite(t, left, { key: 'doubt', path: '/deduplicates' });
  await until('the receiver to have it', () => answers.length === 1);
  answers[0]?.socket?.destroy();
  await until('the doubt', async () => (await shared.states()).includes('unknown'));
  shared.receiver.behave(null);
  t.equal((await write(right, { key: 'doubt', path: '/deduplicates' })).status, 200);
  const [first, second] = shared.receiver.requests;
  t.same(second?.field('Idempotency-Record'), first?.field('Idempotency-Record'));
  t.ok(Number(second?.field('Idempotency-Fence')[0]) > Number(first?.field('Idempotency-Fence')[0]));
});

t.test(
  'Redis killed while the upstream works: the real answer now, the result for a retry when it is back',
  async (t) => {
    const connection = await beginWrite(t, left, { key: 'redis' });
    await until('the receiver to have it', () => answers.length === 1);
    await shared.redis.kill();
    answers[0]?.writeHead(201).end('real');
    t.equal((await connection.readResponse())?.text, 'real');
    t.equal(
      problemOrStatus(await write(right, { key: 'other' })),
      'store-unavailable',
      'nothing is sent without a reservation',
    );
    t.equal(problemOrStatus(await write(right, { key: 'redis' })), 'store-unavailable');
    shared.receiver.behave(null);
    t.equal((await write(right, { path: '/plain' })).status, 200, 'other routes serve on');
    await shared.redis.restart();
    await until('the result', async () => {
      const retry = await write(right, { key: 'redis' });
      return retry.text === 'real' && retry.field('Idempotent-Replayed') === 'true';
    });
    t.equal(shared.executions().filter((received) => received.target === '/orders').length, 1);
  },
);

t.test('no key without an end, and no secret in all that Redis holds', async (t) => {
  const { client } = shared.redis;
  // Each process of each proxy connects again for itself.
  for (const proxy of [left, right]) {
    await until('Redis to be back', async () => {
      const { store } = JSON.parse((await proxy.admin('/status')).text) as { readonly store: { readonly up: boolean } };
      return store.up;
    });
  }
  // What the receiver answered before told of the request, as it may.
  await client.flushall();
  shared.receiver.behave((req, res) => {
    req.resume().on('end', () => res.writeHead(200, { 'Set-Cookie': 'cookie-secret-99' }).end('kept answer'));
  });
  await write(left, { key: 'key-secret-99', body: 'body-secret-99', claims: { jti: 'jti-secret-99' } });
  await write(left, { key: 'k', path: '/single', claims: { jti: 'jti-secret-99' } });
  let dump = '';
  for (const key of await client.keys('*')) {
    t.ok((await client.pttl(key)) > 0, 'it leaves by itself');
    const kind = await client.type(key);
    dump += `${key} ${kind === 'hash' ? JSON.stringify(await client.hgetall(key)) : ((await client.get(key)) ?? '')}\n`;
  }
  t.match(dump, /kept answer/);
  const secrets = ['key-secret-99', 'body-secret-99', 'jti-secret-99', 'cookie-secret-99', 'Bearer', 'eyJ', 'checkout'];
  for (const secret of secrets) t.notOk(dump.includes(secret), secret);
  left.markSecret('key-secret-99');
  left.markSecret('jti-secret-99');
  t.same(await left.exposures(), []);
  t.same(await right.exposures(), []);
});

t.test(
  'a token that was used passes at neither proxy when the clock of Redis steps past its marker, nor at one that starts then',
  async (t) => {
    const clock = createSteppedClock(t);
    const shared = await shareRedis(t, { redisEnv: clock.env });
    const [left, right] = [await shared.startProxy(), await shared.startProxy()];
    for (const proxy of [left, right]) await singlePasses(proxy);
    const iat = Math.floor(Date.now() / 1000);
    const used = [1, 2, 3].map((number) => ({
      path: '/single',
      claims: { jti: `used-${String(number)}`, iat, exp: iat + 600 },
    }));
    const sentBefore = shared.executions().length;
    for (const input of used) t.equal((await write(left, input)).status, 200);
    clock.setAheadMs(24 * 3_600_000);
    for (const input of used) for (const proxy of [left, right]) t.equal((await write(proxy, input)).status, 401);
    const late = await shared.startProxy();
    for (const input of used) t.equal((await write(late, input)).status, 401);
    t.equal(shared.executions().length - sentBefore, used.length, 'each ran once');
    for (const proxy of [left, right]) {
      const lines = proxy.logs().filter(({ msg }) => String(msg).startsWith('the clock of the store stepped'));
      t.equal(lines.length, usualWorkers, 'each process says so once');
      t.equal(new Set(lines.map((line) => line['worker'])).size, usualWorkers);
      t.equal(seriesValue((await proxy.admin('/metrics')).text, 'sallyport_store_failovers_total'), 1);
    }
    for (const proxy of [left, right, late]) await singlePasses(proxy);
  },
);
