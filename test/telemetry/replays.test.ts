/** A replay is linked to the request whose response it shows: over real sockets, with each store. */
import { randomUUID } from 'node:crypto';
import t from 'tap';
import { startInProcessProxy, type InProcessProxy } from '../app/in-process-proxy.js';
import { startCollector, type CollectedSpan } from '../support/otlp-collector.js';
import type { RawResponse } from '../support/raw-client.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';
import type { ConfigTree } from '../support/proxy-process.js';

const server = 2;
const write = {
  name: 'create-order',
  methods: ['POST'],
  path: '/orders',
  subjects: ['checkout'],
  permissions: ['orders:write'],
  idempotency: 'required',
};

function configOf(store: ConfigTree, collector: string, ratio = 1): ConfigTree {
  return { store, routes: [write], telemetry: { otlp: { endpoint: collector }, traces: { ratio } } };
}

function inRedis({ port }: RedisServer): ConfigTree {
  return { redis: { url: `redis://127.0.0.1:${String(port)}` } };
}

async function place(proxy: InProcessProxy, key: string): Promise<RawResponse> {
  const headers = { 'Idempotency-Key': key, Cookie: 'hush-cookie' };
  return proxy.request({ method: 'POST', path: '/orders?hush-query', headers, body: 'hush-body' });
}

function served(spans: readonly CollectedSpan[]): readonly CollectedSpan[] {
  return spans.filter(({ kind }) => kind === server);
}

for (const kind of ['memory', 'redis']) {
  t.test(`a replay links to the request that got the response, with a store of ${kind}`, async (t) => {
    const collector = await startCollector(t);
    const store = kind === 'memory' ? { memory: {} } : inRedis(await startRedis(t));
    const proxy = await startInProcessProxy(t, { config: configOf(store, collector.url) });
    const key = randomUUID();
    const answers = [await place(proxy, key), await place(proxy, key), await place(proxy, randomUUID())];
    t.same(
      answers.map(({ status }) => status),
      [200, 200, 200],
    );
    await proxy.app.stop();
    const spans = collector.spans();
    const [first, replay, other] = served(spans);
    t.match(replay?.attributes, { 'sallyport.decision': 'replayed' });
    t.same(replay?.links, [{ traceId: first?.traceId, spanId: first?.spanId }]);
    t.not(replay?.traceId, first?.traceId, 'a trace of its own');
    t.same([first?.links, other?.links], [[], []]);
    const parts = spans.filter(({ parentSpanId }) => parentSpanId === first?.spanId);
    t.same(
      parts.map(({ name, attributes }) => [name, attributes['sallyport.result']]),
      [
        ['reserve', 'acquired'],
        ['POST /orders', undefined],
        ['settle', 'complete'],
      ],
    );
  });
}

t.test('what Redis keeps of a trace is its ids, and nothing where the first request was not traced', async (t) => {
  const collector = await startCollector(t);
  const redis = await startRedis(t);
  await redis.client.connect();
  const store = inRedis(redis);
  const traced = await startInProcessProxy(t, { config: configOf(store, collector.url) });
  const untraced = await startInProcessProxy(t, {
    jwks: traced.jwks,
    receiver: traced.receiver,
    config: configOf(store, collector.url, 0),
  });
  const keyOf = async (proxy: InProcessProxy): Promise<string> => {
    const before = new Set(await redis.client.keys('sallyport:*:i:*'));
    const key = randomUUID();
    t.equal((await place(proxy, key)).status, 200);
    const [name = ''] = (await redis.client.keys('sallyport:*:i:*')).filter((each) => !before.has(each));
    t.notMatch(await redis.client.hget(name, 't'), /hush/);
    t.equal(await redis.client.hexists(name, 't'), proxy === traced ? 1 : 0);
    if (proxy === traced) t.match(await redis.client.hget(name, 't'), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    t.equal((await place(traced, key)).status, 200, 'shown again by the one that traces');
    return name;
  };
  await keyOf(untraced);
  await keyOf(traced);
  await traced.app.stop();
  await untraced.app.stop();
  t.same(
    served(collector.spans()).map(({ attributes, links }) => [attributes['sallyport.decision'], links.length]),
    [
      ['replayed', 0],
      ['forwarded', 0],
      ['replayed', 1],
    ],
  );
});

t.test('a record whose traceparent is none of ours is shown, without a link', async (t) => {
  const collector = await startCollector(t);
  const redis = await startRedis(t);
  await redis.client.connect();
  const proxy = await startInProcessProxy(t, { config: configOf(inRedis(redis), collector.url) });
  const rows = ['', 'hush', `00-${'0'.repeat(32)}-${'1'.repeat(16)}-01`, `00-${'a'.repeat(32)}-${'b'.repeat(4096)}-01`];
  for (const text of rows) {
    const before = new Set(await redis.client.keys('sallyport:*:i:*'));
    const key = randomUUID();
    await place(proxy, key);
    const [name = ''] = (await redis.client.keys('sallyport:*:i:*')).filter((each) => !before.has(each));
    await redis.client.hset(name, 't', text);
    t.equal((await place(proxy, key)).status, 200);
  }
  await proxy.app.stop();
  t.equal(served(collector.spans()).length, 2 * rows.length);
  t.ok(served(collector.spans()).every(({ links }) => links.length === 0));
  t.notMatch(collector.exports.map(({ bytes }) => bytes.toString('latin1')).join(), /hush/);
});
