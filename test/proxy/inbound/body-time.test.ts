import { createServer } from 'node:net';
import t from 'tap';
import { listen } from '../../support/listening.js';
import { connectRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';
import { startReservingProxy } from '../idempotency/reserving-proxy.js';

const post = (bearer: string, framing: string, body: string, id: string): string =>
  `POST /orders HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n${bearer}${framing}\r\n\r\n${body}`;

t.test('a caller that stops sending its body is answered 408', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { body_idle_timeout: '200ms' } } });
  const cases = [
    { name: 'a length', framing: 'Content-Length: 10', body: '01234' },
    { name: 'chunks', framing: 'Transfer-Encoding: chunked', body: '5\r\n01234\r\n' },
    { name: 'half a chunk', framing: 'Transfer-Encoding: chunked', body: '5\r\n01' },
    { name: 'nothing at all', framing: 'Content-Length: 10', body: '' },
  ];
  for (const [index, { name, framing, body }] of cases.entries()) {
    const connection = await connectRaw(proxy.port);
    t.teardown(connection.end);
    connection.write(post(proxy.bearer(), framing, body, `idle-${String(index)}`));
    const response = await connection.readResponse();
    t.equal(response?.status, 408, name);
    t.equal(response?.field('proxy-status'), 'sallyport; error=http_request_error');
    await connection.closed;
    t.match(await proxy.recordOf(`idle-${String(index)}`), { decision: 'denied', reason: 'body_timeout', status: 408 });
  }
  await until('the receiver saw every one end', () => proxy.receiver.requests.every(({ aborted }) => aborted));
  t.ok(proxy.receiver.requests.every(({ complete }) => !complete));
  t.equal(proxy.server.counts().inFlight, 0);
});

t.test('a body that keeps moving may take longer than its idle time-out', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { body_idle_timeout: '1s' } } });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(post(proxy.bearer(), 'Content-Length: 12', '', 'slow'));
  for (let i = 0; i < 12; i++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    connection.write('x');
  }
  t.equal((await connection.readResponse())?.status, 200);
});

t.test('a body of which hardly anything comes, now and then, is answered 408 where it takes long', async (t) => {
  const route = { methods: ['POST'], subjects: ['checkout'], permissions: [] };
  const routes = [
    { ...route, name: 'streamed', path: '/orders', idempotency: 'none' },
    { ...route, name: 'reserved', path: '/reserved', idempotency: 'required' },
  ];
  for (const { minRate, status } of [
    { minRate: 10_000, status: 408 },
    { minRate: 0, status: 200 },
  ]) {
    for (const path of ['/orders', '/reserved']) {
      const proxy = await startReservingProxy(t, {
        config: { listen: { body_idle_timeout: '300ms', body_min_rate: minRate }, routes },
      });
      const connection = await connectRaw(proxy.port);
      t.teardown(connection.end);
      connection.write(
        post(proxy.bearer(), 'Idempotency-Key: k\r\nContent-Length: 30', '', 'dripping').replace('/orders', path),
      );
      for (let i = 0; i < 30 && !connection.isClosed(); i++) {
        connection.write('x');
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
      t.equal((await connection.readResponse())?.status, status, `${path}, ${String(minRate)}`);
      t.match(await proxy.recordOf('dripping'), { reason: status === 408 ? 'body_timeout' : null });
    }
  }
});

t.test('what the upstream takes its time for is not held against the caller', async (t) => {
  const bytes = 32 * 1024 * 1024;
  const server = createServer((socket) => {
    let received = 0;
    socket
      .on('error', () => undefined)
      .on('data', (chunk) => {
        received += chunk.length;
        if (received > bytes) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
      })
      .pause();
    setTimeout(() => socket.resume(), 2_000);
  });
  const { port } = await listen(t, server);
  const proxy = await startProxy(t, {
    upstreamUrl: `http://127.0.0.1:${String(port)}`,
    config: {
      listen: { body_idle_timeout: '500ms', body_min_rate: 1_000_000_000 },
      routes: [
        {
          name: 'big',
          methods: ['POST'],
          path: '/orders',
          subjects: ['checkout'],
          permissions: [],
          max_body: '1GiB',
          idempotency: 'none',
        },
      ],
    },
  });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(post(proxy.bearer(), `Content-Length: ${String(bytes)}`, '', 'waiting'));
  connection.write(Buffer.alloc(bytes));
  t.equal((await connection.readResponse())?.status, 200);
});

t.test('an upstream that takes nothing of a body for idle_timeout is answered for with 504', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.pause();
  });
  const { port } = await listen(t, server);
  const proxy = await startProxy(t, {
    upstreamUrl: `http://127.0.0.1:${String(port)}`,
    config: {
      upstream: { idle_timeout: '300ms' },
      routes: [
        {
          name: 'big',
          methods: ['POST'],
          path: '/orders',
          subjects: ['checkout'],
          permissions: [],
          max_body: '1GiB',
          idempotency: 'none',
        },
      ],
    },
  });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(post(proxy.bearer(), 'Content-Length: 500000000', '', 'stalled'));
  connection.write(Buffer.alloc(32 * 1024 * 1024));
  const response = await connection.readResponse();
  t.equal(response?.status, 504);
  t.match(await proxy.recordOf('stalled'), { decision: 'failed', reason: 'upstream_timeout', status: 504 });
});

t.test('the last bytes of a body that nobody takes do not wait for ever either', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.pause();
  });
  const { port } = await listen(t, server);
  const proxy = await startProxy(t, {
    upstreamUrl: `http://127.0.0.1:${String(port)}`,
    config: {
      upstream: { idle_timeout: '300ms', response_timeout: '300ms' },
      routes: [
        {
          name: 'big',
          methods: ['POST'],
          path: '/orders',
          subjects: ['checkout'],
          permissions: [],
          max_body: '1GiB',
          idempotency: 'none',
        },
      ],
    },
  });
  // Somewhere between these sizes the system's buffers are full, and the rest stays with us.
  for (const megabytes of [2, 3, 4, 6]) {
    const connection = await connectRaw(proxy.port);
    connection.write(
      post(proxy.bearer(), `Content-Length: ${String(megabytes * 1024 * 1024)}`, '', `tail-${String(megabytes)}`),
    );
    connection.write(Buffer.alloc(megabytes * 1024 * 1024));
    t.equal((await connection.readResponse())?.status, 504, `${String(megabytes)} MiB`);
    connection.end();
  }
});
