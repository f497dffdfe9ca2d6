/** What the parser takes that is not quite HTTP: as nginx and HAProxy do, and none of it goes on. */
import t from 'tap';
import { sendRaw } from '../../support/raw-client.js';
import { startProxy } from '../harness.js';
import { startRawUpstream } from '../upstream/raw-upstream.js';

const routes = [
  { name: 'orders', methods: ['GET', 'POST'], path: '/orders', access: 'public', idempotency: 'none' },
  { name: 'secret', methods: ['GET'], path: '/orders/secret', subjects: ['root'], permissions: [] },
];

const host = 'Host: a\r\nConnection: close\r\n';

/** Spellings of one request, and the line that goes on. */
const rows: readonly { readonly name: string; readonly bytes: string; readonly goesOn: RegExp }[] = [
  {
    name: 'two blanks before the target',
    bytes: `GET  /orders HTTP/1.1\r\n${host}\r\n`,
    goesOn: /^GET \/orders HTTP\/1\.1\r\n/,
  },
  {
    name: 'two blanks after it',
    bytes: `GET /orders  HTTP/1.1\r\n${host}\r\n`,
    goesOn: /^GET \/orders HTTP\/1\.1\r\n/,
  },
  {
    name: 'empty lines before it',
    bytes: `\r\n\r\n\r\nGET /orders HTTP/1.1\r\n${host}\r\n`,
    goesOn: /^GET \/orders HTTP\/1\.1\r\n/,
  },
  {
    name: 'a bare LF before it',
    bytes: `\nGET /orders HTTP/1.1\r\n${host}\r\n`,
    goesOn: /^GET \/orders HTTP\/1\.1\r\n/,
  },
  {
    name: 'zeros before a length',
    bytes: `POST /orders HTTP/1.1\r\n${host}Content-Length: 0003\r\n\r\nabc`,
    goesOn: /^POST \/orders HTTP\/1\.1\r\n[^]*\r\ncontent-length: 3\r\n[^]*\r\n\r\nabc$/i,
  },
];

t.test(
  'blanks in the request line, empty lines before it and zeros before a length are taken, and what goes on has none of them',
  async (t) => {
    for (const { name, bytes, goesOn } of rows) {
      const upstream = await startRawUpstream(t, (socket) =>
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'),
      );
      const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
      t.same(
        (await sendRaw(proxy.port, bytes, { untilClosed: true })).map(({ status }) => status),
        [200],
        name,
      );
      t.match(upstream.received().join(''), goesOn, name);
    }
  },
);

t.test('they are judged by the same target', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  for (const line of [
    'GET  /orders/secret HTTP/1.1',
    'GET /orders/secret  HTTP/1.1',
    '\r\nGET /orders/secret HTTP/1.1',
  ]) {
    const answers = await sendRaw(proxy.port, `${line}\r\n${host}\r\n`, { untilClosed: true });
    t.same(
      answers.map(({ status }) => status),
      [401],
      JSON.stringify(line),
    );
  }
  t.same(proxy.receiver.requests, []);
});

t.test('other blanks in the request line are refused', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  for (const line of [
    ' GET /orders HTTP/1.1',
    'GET\t/orders HTTP/1.1',
    'GET /orders\tHTTP/1.1',
    'GET /orders HTTP/1.1 ',
    'GET /or ders HTTP/1.1',
  ]) {
    const answers = await sendRaw(proxy.port, `${line}\r\n${host}\r\n`, { untilClosed: true });
    t.same(
      answers.map(({ status }) => status),
      [400],
      JSON.stringify(line),
    );
  }
  t.same(proxy.receiver.requests, []);
});

t.test('empty lines are bounded by the size of a head, and by its time', async (t) => {
  const proxy = await startProxy(t, { config: { routes, listen: { header_timeout: '1s' } } });
  const many = await sendRaw(proxy.port, '\r\n'.repeat(400_000), { untilClosed: true });
  t.same(
    many.map(({ status }) => status),
    [431],
  );
  const alone = await sendRaw(proxy.port, '\r\n\r\nGET', { untilClosed: true });
  t.same(
    alone.map(({ status }) => status),
    [408],
  );
});
