import t from 'tap';
import { connectRaw, request, sendRaw } from '../../support/raw-client.js';
import { startProxy } from '../harness.js';
import { startRawUpstream, okResponse } from '../upstream/raw-upstream.js';

const routes = [
  {
    name: 'post',
    methods: ['POST'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: [],
    max_body: '1MiB',
    idempotency: 'none',
  },
];
const head = (bearer: string): string =>
  `POST /orders HTTP/1.1\r\nHost: a\r\n${bearer}Transfer-Encoding: chunked\r\n\r\n`;

t.test('a body in chunks of one byte reaches the upstream in larger ones', async (t) => {
  const bytes = 50_000;
  const upstream = await startRawUpstream(t, (socket) => {
    const wait = setInterval(() => {
      if (!upstream.received()[0]?.endsWith('0\r\n\r\n')) return;
      clearInterval(wait);
      socket.write(okResponse('ok'));
    }, 5);
    socket.on('close', () => {
      clearInterval(wait);
    });
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  const [response] = await sendRaw(proxy.port, `${head(proxy.bearer())}${'1\r\nx\r\n'.repeat(bytes)}0\r\n\r\n`);
  t.equal(response?.status, 200);
  const received = upstream.received()[0] ?? '';
  const body = received.slice(received.indexOf('\r\n\r\n'));
  t.equal(body.match(/x/g)?.length, bytes);
  const chunks = body.match(/[0-9a-f]+\r\n/g)?.length ?? 0;
  t.ok(chunks < bytes / 50, `${String(chunks)} chunks`);
});

t.test('chunk extensions have an end', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const [small] = await sendRaw(proxy.port, `${head(proxy.bearer())}3;a=b\r\nabc\r\n0;c\r\n\r\n`);
  t.equal(small?.status, 200);
  t.equal(proxy.receiver.requests[0]?.body.toString(), 'abc');
  const [large] = await sendRaw(proxy.port, `${head(proxy.bearer())}3;${'a'.repeat(40_000)}\r\nabc\r\n0\r\n\r\n`, {
    untilClosed: true,
  });
  t.equal(large?.status, 400);
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(head(proxy.bearer()));
  for (let i = 0; i < 200 && !connection.isClosed(); i++) connection.write(`1;${'e'.repeat(200)}\r\nx\r\n`);
  connection.write('0\r\n\r\n');
  const many = await connection.readResponse();
  t.ok(many?.status === 400 || many?.status === 200, 'answered in any case');
  t.equal(
    (await request(proxy.port, { method: 'POST', path: '/orders', headers: proxy.authorization(), body: 'x' })).status,
    200,
    'and others are served',
  );
});

t.test('trailers are limited as heads are', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const [response] = await sendRaw(
    proxy.port,
    `${head(proxy.bearer())}3\r\nabc\r\n0\r\nX: ${'y'.repeat(40_000)}\r\n\r\n`,
    { untilClosed: true },
  );
  t.equal(response?.status, 431);
  t.notOk(
    proxy.receiver.requests.some(({ complete }) => complete),
    'a broken body never ends like a whole one',
  );
});
