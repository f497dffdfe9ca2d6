/** Connections and streams that strangers keep by not taking, or not ending, what they were answered. */
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { ask, connectHttp2 } from '../../support/http2-client.js';
import { connectFrames, frameTypes, headers, type FrameClient } from '../../support/http2-frames.js';
import { connectRaw } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
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
