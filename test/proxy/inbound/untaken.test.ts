/** Connections and streams that strangers keep by not taking, or not ending, what they were answered. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { ask, connectHttp2 } from '../../support/http2-client.js';
import { connectFrames, frame, frameTypes, headers, uint32, type FrameClient } from '../../support/http2-frames.js';
import { connectRaw } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { maxOpenRequests } from '../../../src/proxy/inbound/http2/stream-places.js';
import { frameMessage } from '../../../src/decision/grpc/messages.js';
import { startProxy, type Harness } from '../harness.js';

const fields = [':method', 'GET', ':scheme', 'http', ':path', '/orders', ':authority', 'a'];

/** The least that a listener holds. */
const limit = 1_025;

const start = (t: Scope, listen: Readonly<Record<string, unknown>> = {}): Promise<Harness> =>
  startProxy(t, { config: { listen: { http2: true, max_in_flight: 1, max_websockets: 1, ...listen } } });

/** Not all at once: the system's queue is shorter. */
async function openMany<T>(count: number, open: () => Promise<T>): Promise<readonly T[]> {
  const opened: T[] = [];
  while (opened.length < count) {
    const some = Math.min(50, count - opened.length);
    opened.push(...(await Promise.all(Array.from({ length: some }, open))));
  }
  return opened;
}

const countOf = (client: FrameClient, type: number): number =>
  client.frames.filter((frame) => frame.type === type).length;

t.setTimeout(180_000);

t.test('connections whose refusals nobody takes give way to new ones', async (t) => {
  const proxy = await start(t);
  const good = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`);
  const authorization = proxy.authorization().Authorization;
  t.equal((await ask(good, { ':path': '/orders', authorization })).status, 200);
  const clients = await openMany(limit - 1, async () => {
    const client = await connectFrames(t, proxy.port, [[4, 0]]);
    client.write(headers(1, fields));
    return client;
  });
  await until(
    'all are refused',
    () => clients.every((client) => client.socket.closed || countOf(client, frameTypes.headers) > 0),
    30_000,
  );
  for (let i = 0; i < 5; i += 1) {
    const connection = await connectRaw(proxy.port);
    t.teardown(connection.end);
    connection.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
    t.equal((await connection.readResponse())?.status, 200, 'a new one is served');
  }
  t.equal((await ask(good, { ':path': '/orders', authorization })).status, 200, 'a caller that was there stays');
  t.notOk(proxy.counted.connectionEndings.includes('refused'));
});

t.test('connections that linger after a refusal give way to new ones', async (t) => {
  const proxy = await start(t);
  const clients = await openMany(limit, async () => {
    const connection = await connectRaw(proxy.port);
    t.teardown(connection.end);
    return connection;
  });
  await until('all are there', () => proxy.server.counts().connections === limit);
  for (const client of clients) client.write('POST /orders HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n');
  await Promise.all(clients.map((client) => client.readResponse()));
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write('GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal((await connection.readResponse())?.status, 200);
  t.notOk(proxy.counted.connectionEndings.includes('refused'));
});

t.test('streams whose refusals nobody takes shut nobody out', async (t) => {
  const proxy = await start(t);
  const origin = `http://127.0.0.1:${proxy.port}`;
  const [known, stranger] = [await connectHttp2(t, origin), await connectHttp2(t, origin)];
  const known200 = { ':path': '/orders', authorization: proxy.authorization().Authorization };
  t.equal((await ask(known, known200)).status, 200);
  const clients = await openMany(11, () => connectFrames(t, proxy.port, [[4, 0]]));
  let next = 1;
  for (const client of clients) {
    for (let i = 0; i < 100; i += 1) client.write(headers(next + 2 * i, fields));
  }
  next += 200;
  await until('all were answered, in one way or another', () =>
    clients.every(
      (client) =>
        client.socket.closed || countOf(client, frameTypes.headers) + countOf(client, frameTypes.reset) >= 100,
    ),
  );
  // Strangers have 100 ms for a response, and a look in vain is followed by another after 100.
  await delay(250);
  for (let round = 0; round < 20; round += 1) {
    // Whatever was ended is asked for again.
    for (const client of clients) if (!client.socket.closed) client.write(headers(next, fields));
    next += 2;
    t.equal((await ask(known, known200)).status, 200, 'a caller that was there');
    t.equal((await ask(stranger, { ':path': '/healthz' })).status, 200, 'a stranger');
    const session = await connectHttp2(t, origin);
    t.equal((await ask(session, known200)).status, 200, 'a new one');
  }
  t.ok(proxy.server.counts().streams <= limit);
  t.match(
    proxy.logged.filter(({ message }) => message.startsWith('streams of HTTP/2')),
    [{ level: 'warn', fields: { gave_way: Number, refused: Number } }],
    'one line',
  );
  for (const client of clients) client.socket.destroy();
  await until('every place is given back', () => proxy.server.counts().streams === 0, 8_000);
});

t.test('streams of callers that take nothing shut no new caller out', async (t) => {
  const proxy = await start(t);
  const origin = `http://127.0.0.1:${proxy.port}`;
  const authorization = proxy.authorization().Authorization;
  const clients: FrameClient[] = [];
  for (let i = 0; i < 8; i += 1) {
    const client = await connectFrames(t, proxy.port, [[4, 0]]);
    client.write(headers(1, [...fields, 'authorization', authorization]));
    await client.next('a head', ({ type }) => type === frameTypes.headers);
    client.write(frame(frameTypes.windowUpdate, 0, 1, uint32(65_536)));
    await until('it was let through', () => proxy.records.filter(({ status }) => status === 200).length === i + 1);
    clients.push(client);
  }
  for (let round = 0, next = 3; round < 3; round += 1, next += 200) {
    for (const client of clients) {
      for (let i = 0; i < 100; i += 1) client.write(headers(next + 2 * i, [...fields, 'authorization', 'Bearer bad']));
    }
    await until('all were answered, in one way or another', () =>
      clients.every(
        (client) =>
          client.socket.closed ||
          countOf(client, frameTypes.headers) + countOf(client, frameTypes.reset) >= 100 * (round + 1),
      ),
    );
    for (let i = 0; i < 5; i += 1) {
      const session = await connectHttp2(t, origin);
      t.equal((await ask(session, { ':path': '/orders', authorization })).status, 200, 'a new caller');
    }
  }
});

t.test(
  'a response that fills a window to the last byte, and whose end nobody takes, is ended in its time',
  async (t) => {
    const proxy = await startProxy(t, { config: { listen: { http2: true }, upstream: { idle_timeout: '1s' } } });
    proxy.receiver.behave((_request, response) => response.end('something'));
    const client = await connectFrames(t, proxy.port, [[4, 'something'.length]]);
    const asks = [...fields, 'te', 'trailers', 'authorization', proxy.authorization().Authorization];
    for (let i = 0; i < 20; i += 1) client.write(headers(1 + 2 * i, asks));
    await until('all have begun', () => countOf(client, frameTypes.data) === 20);
    t.equal(proxy.server.counts().inFlight, 20);
    await until('each is ended', () => countOf(client, frameTypes.reset) === 20, 10_000);
    await until('every place is given back', () => proxy.server.counts().inFlight === 0);
    t.same(
      proxy.records.map(({ reason }) => reason),
      Array<string>(20).fill('caller_gone'),
    );
  },
);

t.test('trailers that wait for a window are not cut off where the rest of the request is missing', async (t) => {
  const route = { name: 'orders', path: '/orders', subjects: ['checkout'], permissions: [] };
  const proxy = await startProxy(t, {
    config: {
      listen: { http2: true },
      routes: [{ ...route, methods: ['POST'], idempotency: { mode: 'none', because: 'nothing is written' } }],
    },
  });
  proxy.receiver.behave((_request, response) => {
    response.writeHead(200, { trailer: 'grpc-status' }).write('something');
    response.addTrailers({ 'grpc-status': '0' });
    response.end();
  });
  const client = await connectFrames(t, proxy.port, [[4, 'something'.length]]);
  const asks = [':method', 'POST', ...fields.slice(2), 'te', 'trailers'];
  client.write(headers(1, [...asks, 'authorization', proxy.authorization().Authorization], false));
  // Nothing is sent on before there are 64 KiB of a body.
  for (let i = 0; i < 6; i += 1) client.write(frame(frameTypes.data, 0, 1, Buffer.alloc(10_000)));
  await client.next('more room', ({ type, stream }) => type === frameTypes.windowUpdate && stream === 1);
  for (let i = 0; i < 2; i += 1) client.write(frame(frameTypes.data, 0, 1, Buffer.alloc(10_000)));
  await client.next('the body', ({ type }) => type === frameTypes.data);
  // The rest of a request has a second; the look at it is taken once in a second.
  await delay(3_000);
  t.equal(countOf(client, frameTypes.reset), 0);
  client.write(frame(frameTypes.windowUpdate, 0, 1, uint32(10)));
  await until('the trailers come', () => countOf(client, frameTypes.headers) === 2);
  await until('then no more is wanted', () => countOf(client, frameTypes.reset) === 1, 8_000);
  t.match(proxy.records, [{ status: 200, reason: null }]);
});

t.test('health checks whose message does not come shut nobody out', async (t) => {
  const proxy = await start(t, { grpc_health: 'answer' });
  const call = [':method', 'POST', ':scheme', 'http', ':path', '/grpc.health.v1.Health/Check', ':authority', 'a'];
  const asks = [...call, 'content-type', 'application/grpc', 'te', 'trailers'];
  const clients = await openMany(8, () => connectFrames(t, proxy.port));
  const authorization = proxy.authorization().Authorization;
  // Fewer than strangers may have.
  for (const client of clients) for (let i = 0; i < 90; i += 1) client.write(headers(1 + 2 * i, asks, false));
  const refused = (): number => clients.reduce((sum, client) => sum + countOf(client, frameTypes.headers), 0);
  await until('those beyond are refused', () => refused() === 720 - maxOpenRequests(limit), 10_000);
  const drip = setInterval(() => {
    for (const client of clients) {
      for (let i = 0; i < 90; i += 1) client.write(frame(frameTypes.data, 0, 1 + 2 * i, Buffer.alloc(1)));
    }
  }, 2_000);
  t.teardown(() => {
    clearInterval(drip);
  });
  const session = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`);
  t.equal((await ask(session, { ':path': '/orders', authorization })).status, 200, 'a new caller');
  const probe = await connectFrames(t, proxy.port, [], '127.0.0.2');
  probe.write(headers(1, asks, false));
  probe.write(frame(frameTypes.data, 1, 1, Buffer.from(frameMessage(new Uint8Array()))));
  const { payload } = await probe.next('an answer', ({ type, stream }) => type === frameTypes.data && stream === 1);
  t.same(payload, Buffer.from(frameMessage(new Uint8Array([8, 1]))), 'a probe from elsewhere');
  await until('each has its time, however it drips', () => proxy.server.counts().streams === 0, 12_000);
});
