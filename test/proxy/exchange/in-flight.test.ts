import type { ServerResponse } from 'node:http';
import t from 'tap';
import type { Scope } from '../../support/scope.js';
import { connectRaw, request, sendRaw, type RawConnection } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness } from '../harness.js';

const config = {
  listen: { max_in_flight: 4 },
  routes: [
    { name: 'get', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] },
    { name: 'post', methods: ['POST'], path: '/orders', subjects: ['checkout'], permissions: [], idempotency: 'none' },
    { name: 'open', methods: ['GET', 'POST'], path: '/open', access: 'public', idempotency: 'none' },
  ],
};

/** Opens connections with one request each, which the receiver does not answer until told. */
async function hold(
  proxy: Harness,
  t: Scope,
  count: number,
  head: string,
): Promise<{ connections: RawConnection[]; release: () => void }> {
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const before = proxy.receiver.requests.length;
  const connections = await Promise.all(Array.from({ length: count }, async () => connectRaw(proxy.port)));
  for (const connection of connections) {
    t.teardown(connection.end);
    connection.write(head);
  }
  await until('the receiver has them all', () => proxy.receiver.requests.length === before + count);
  return {
    connections,
    release: () => {
      proxy.receiver.behave(null);
      for (const res of held) res.end('late');
    },
  };
}

t.test('beyond max_in_flight callers are told so at once', async (t) => {
  const proxy = await startProxy(t, { config });
  const get = `GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`;
  const { connections, release } = await hold(proxy, t, 4, get);
  t.equal(proxy.server.counts().inFlight, 4);
  const response = await request(proxy.port, {
    path: '/orders',
    headers: { ...proxy.authorization(), 'X-Request-Id': 'one-more' },
  });
  t.equal(response.status, 503);
  t.equal(response.field('retry-after'), '1');
  t.equal(response.text, '{"type":"urn:sallyport:overloaded","title":"Too many requests are in flight","status":503}');
  t.match(await proxy.recordOf('one-more'), { decision: 'failed', reason: 'overloaded', upstream_ms: null });
  t.equal((await request(proxy.port, { path: '/orders' })).status, 401, 'without a credential nobody learns of it');
  release();
  for (const connection of connections) t.equal((await connection.readResponse())?.text, 'late');
  t.equal((await request(proxy.port, { path: '/orders', headers: proxy.authorization() })).status, 200);
  t.equal(proxy.server.counts().inFlight, 0);
});

t.test('public routes leave room for callers with a credential', async (t) => {
  const proxy = await startProxy(t, { config });
  const { release } = await hold(proxy, t, 3, 'GET /open HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal((await request(proxy.port, { path: '/open' })).status, 503, 'three of four are public');
  proxy.receiver.behave(null);
  t.equal((await request(proxy.port, { path: '/orders', headers: proxy.authorization() })).status, 200);
  release();
});

t.test('a caller without a credential holds no place, whatever it does', async (t) => {
  const proxy = await startProxy(t, { config });
  const heads = [
    'POST /orders HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n',
    'POST /orders HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n',
    'POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n',
    'GET /a//b HTTP/1.1\r\nHost: a\r\n\r\n',
  ];
  const lingering = await Promise.all(
    heads
      .flatMap((head) => [head, head, head])
      .map(async (head) => {
        const connection = await connectRaw(proxy.port);
        t.teardown(connection.end);
        connection.write(head);
        await connection.readResponse();
        return connection;
      }),
  );
  t.equal(proxy.server.counts().inFlight, 0);
  t.equal((await request(proxy.port, { path: '/orders', headers: proxy.authorization() })).status, 200);
  for (const connection of lingering) connection.end();
});

t.test(
  'a request that we refuse on its way gives its place back with the response, not when the caller has gone',
  async (t) => {
    const limits = { listen: { max_in_flight: 1, body_idle_timeout: '100ms' } };
    const proxy = await startProxy(t, { config: { ...config, ...limits } });
    const slow = await connectRaw(proxy.port);
    t.teardown(slow.end);
    slow.write(`POST /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 10\r\n\r\n`);
    const response = await slow.readResponse();
    t.equal(response?.status, 408);
    t.equal(slow.socket.readyState, 'open', 'the caller keeps its side open');
    t.equal(proxy.server.counts().inFlight, 0);
    t.equal((await request(proxy.port, { path: '/orders', headers: proxy.authorization() })).status, 200);
  },
);

t.test('a caller that does not read its response is given up', async (t) => {
  const proxy = await startProxy(t, {
    config: { ...config, listen: { max_in_flight: 1 }, upstream: { idle_timeout: '200ms' } },
  });
  proxy.receiver.behave((_req, res) => {
    res.on('error', () => undefined);
    res.end(Buffer.alloc(64 * 1024 * 1024));
  });
  const deaf = await connectRaw(proxy.port);
  t.teardown(deaf.end);
  deaf.socket.pause();
  deaf.write(`GET /orders HTTP/1.1\r\nHost: a\r\nX-Request-Id: deaf\r\n${proxy.bearer()}\r\n`);
  t.match(await proxy.recordOf('deaf'), { decision: 'forwarded', reason: 'caller_gone', status: 200 });
  t.equal(proxy.server.counts().inFlight, 0);
  await until('its connection is closed', () => proxy.server.counts().connections === 0);
  await until('the receiver was told', () => proxy.receiver.open() === 0);
});

t.test('so is one that does not read answers without a body', async (t) => {
  const routes = [{ name: 'open', methods: ['GET', 'HEAD'], path: '/open', access: 'public' }];
  for (const { method, status } of [
    { method: 'GET', status: 204 },
    { method: 'GET', status: 304 },
    { method: 'HEAD', status: 200 },
  ]) {
    const proxy = await startProxy(t, { config: { routes, upstream: { idle_timeout: '200ms' } } });
    proxy.receiver.behave((_req, res) => {
      res.writeHead(status, { 'X-Large': 'x'.repeat(60_000) }).end();
    });
    const deaf = await connectRaw(proxy.port);
    t.teardown(deaf.end);
    deaf.socket.pause();
    deaf.write(`${method} /open HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(1_000));
    await until(`${method} ${String(status)}: its connection is closed`, () => proxy.server.counts().connections === 0);
    t.equal(proxy.server.counts().inFlight, 0);
    t.match(proxy.records.at(-1), { decision: 'forwarded', reason: 'caller_gone', status });
    deaf.end();
  }
});

t.test('a caller that reads no response at all of what it pipelines is given up', async (t) => {
  const proxy = await startProxy(t, { config });
  const deaf = await connectRaw(proxy.port);
  t.teardown(deaf.end);
  deaf.socket.pause();
  const [first] = await sendRaw(proxy.port, 'GET /orders HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal(first?.status, 401);
  const burst = 'GET /orders HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(10);
  deaf.write(burst);
  await until('they were answered', () => proxy.records.length >= 11);
  t.equal(proxy.server.counts().inFlight, 0);
});
