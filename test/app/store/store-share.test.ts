/** One caller whose answers would fill the Redis that all callers share. */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { startRedis, type RedisServer } from '../../support/redis-server.js';
import type { RawResponse } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import type { ConfigTree } from '../../support/proxy-process.js';
import { startInProcessProxy, type InProcessProxy } from '../in-process-proxy.js';
import { redisStore } from './store-config.js';

t.setTimeout(120_000);

const routes = [
  {
    name: 'export',
    methods: ['POST'],
    path: '/exports',
    subjects: ['mallory', 'checkout'],
    permissions: [],
    idempotency: 'required',
  },
];

/** An answer of the largest size that is kept. */
const large = Buffer.alloc(256 * 1024, 'x');

async function start(
  t: Scope,
  answer: Buffer,
  memory: string,
  settings: ConfigTree = {},
): Promise<{ readonly redis: RedisServer; readonly proxy: InProcessProxy }> {
  const redis = await startRedis(t, ['--maxmemory', memory, '--appendonly', 'no', '--appendfsync', 'no']);
  const receiver = await startUpstreamServer(t);
  receiver.behave(
    (_request, response) => void response.writeHead(201, { 'Content-Length': answer.length }).end(answer),
  );
  const proxy = await startInProcessProxy(t, {
    receiver,
    config: { ...redisStore(redis, { durability: 'none', ...settings }), routes },
  });
  return { redis, proxy };
}

async function post(proxy: InProcessProxy, sub: string, key: string = randomUUID()): Promise<RawResponse> {
  return proxy.request({ method: 'POST', path: '/exports', body: 'x', headers: { 'Idempotency-Key': key } }, { sub });
}

t.test(
  'a caller that would fill it keeps a quarter: its writes run, their responses are not kept, and the writes of others are as ever',
  async (t) => {
    const { redis, proxy } = await start(t, large, '64mb');
    const keys = Array.from({ length: 300 }, () => randomUUID());
    const statuses = new Set<number>();
    for (const key of keys) statuses.add((await post(proxy, 'mallory', key)).status);
    t.same([...statuses], [201], 'all of them ran');
    t.equal(proxy.receiver.requests.length, keys.length);
    const { length } = proxy.receiver.requests;

    const [first = '', last = ''] = [keys[0], keys.at(-1)];
    const early = await post(proxy, 'mallory', first);
    t.match(
      [early.status, early.field('idempotent-replayed'), early.body.length],
      [201, 'true', large.length],
      'the first answers are kept',
    );
    const late = await post(proxy, 'mallory', last);
    t.equal(late.status, 409);
    t.match(late.text, /idempotency-result-not-replayable/, 'of the last one it is told that it was answered');
    t.equal(proxy.receiver.requests.length, length, 'nothing ran twice');

    const own = randomUUID();
    for (const key of [own, own, randomUUID()]) {
      t.equal((await post(proxy, 'checkout', key)).status, 201, 'somebody else');
    }
    t.equal((await post(proxy, 'checkout', own)).field('idempotent-replayed'), 'true', 'whose answers are kept');
    const used = Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1]);
    t.ok(used < 32 * 1024 * 1024, `${String(used)} bytes`);
    const over = await proxy.metric('sallyport_store_share_exceeded_total');
    t.ok(over > 200 && over < keys.length, String(over));
    for (const key of await redis.client.keys('*:k')) {
      t.ok((await redis.client.pttl(key)) > 24 * 3_600_000, 'what is counted has an end');
    }
  },
);

t.test('beyond twice its share no write of it begins, replays go on, and others are served', async (t) => {
  const { proxy } = await start(t, Buffer.from('made'), '0', { kept_per_caller: '64KiB' });
  const first = randomUUID();
  t.equal((await post(proxy, 'mallory', first)).status, 201);
  let refused: RawResponse | null = null;
  for (let sent = 0; sent < 200 && refused === null; sent += 1) {
    const answer = await post(proxy, 'mallory');
    if (answer.status !== 201) refused = answer;
  }
  t.equal(refused?.status, 429);
  t.equal(refused?.field('retry-after'), '60');
  t.match(refused?.text, /urn:sallyport:too-many-kept/);
  const ran = proxy.receiver.requests.length;
  t.ok(ran > (64 * 1024) / 1_500 && ran <= (2 * 64 * 1024) / 1_300 + 1, String(ran));
  t.equal((await post(proxy, 'mallory')).status, 429);
  t.equal((await post(proxy, 'mallory', first)).field('idempotent-replayed'), 'true');
  t.equal(proxy.receiver.requests.length, ran);
  t.equal((await post(proxy, 'checkout')).status, 201);
  t.ok((await proxy.metric('sallyport_denials_total{reason="too_many_kept"}')) >= 2);
});

t.test('a caller whose writes end in doubt, one and all, is told so beyond twice its share', async (t) => {
  const { proxy } = await start(t, large, '64mb', { kept_per_caller: '64KiB' });
  proxy.receiver.behave((request) => void request.socket.destroy());
  // Each of them counts 1,300 bytes.
  const most = 2 * Math.ceil((64 * 1024) / 1_300) + 2;
  const statuses: number[] = [];
  while (statuses.length <= most && statuses.at(-1) !== 429) statuses.push((await post(proxy, 'mallory')).status);
  t.same([...new Set(statuses)], [502, 429]);
  proxy.receiver.behave(null);
  t.equal((await post(proxy, 'mallory')).status, 429);
  t.equal((await post(proxy, 'checkout')).status, 200);
});
