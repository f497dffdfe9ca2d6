import type { ServerResponse } from 'node:http';
import t from 'tap';
import { connectRaw, sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';

const routes = [
  { name: 'get', methods: ['GET'], path: '/orders/{id}', subjects: ['checkout'], permissions: [] },
  {
    name: 'post',
    methods: ['POST'],
    path: '/orders/{id}',
    subjects: ['checkout'],
    permissions: [],
    idempotency: 'none',
  },
  { name: 'open', methods: ['GET'], path: '/open/{id}', access: 'public' },
];

t.test('pipelined requests are judged each on its own and answered in order', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const good = proxy.bearer();
  const responses = await sendRaw(
    proxy.port,
    [
      `GET /orders/1 HTTP/1.1\r\nHost: a\r\n${good}\r\n`,
      'GET /orders/2 HTTP/1.1\r\nHost: a\r\n\r\n',
      `POST /orders/3 HTTP/1.1\r\nHost: a\r\n${good}Content-Length: 5\r\n\r\nhello`,
      `GET /nowhere HTTP/1.1\r\nHost: a\r\n${good}\r\n`,
      `POST /orders/5 HTTP/1.1\r\nHost: a\r\n${good}Transfer-Encoding: chunked\r\n\r\n5\r\nthere\r\n0\r\n\r\n`,
      'GET /open/6 HTTP/1.1\r\nHost: a\r\n\r\n',
    ].join(''),
    { responses: 6 },
  );
  t.same(
    responses.map(({ status }) => status),
    [200, 401, 200, 403, 200, 200],
  );
  t.same(
    proxy.receiver.requests.map(({ target, body }) => [target, body.toString()]),
    [
      ['/orders/1', ''],
      ['/orders/3', 'hello'],
      ['/orders/5', 'there'],
      ['/open/6', ''],
    ],
  );
  t.same(
    proxy.receiver.requests.map(({ field }) => field('x-auth-subject')[0]),
    ['checkout', 'checkout', 'checkout', undefined],
  );
});

t.test('a connection has one request under way at a time', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write('GET /open/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /open/2 HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('the first is there', () => held.length === 1);
  // Another connection's request overtakes the second one, which waits for its own.
  const other = await connectRaw(proxy.port);
  t.teardown(other.end);
  other.write('GET /open/3 HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('so is the other', () => held.length === 2);
  t.same(
    proxy.receiver.requests.map(({ target }) => target),
    ['/open/1', '/open/3'],
  );
  t.equal(proxy.server.counts().inFlight, 2);
  held[0]?.end('one');
  t.equal((await connection.readResponse())?.text, 'one');
  await until('the second follows', () => held.length === 3);
  held[2]?.end('two');
  t.equal((await connection.readResponse())?.text, 'two');
});

t.test('who pipelines many is answered all of them, in order', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  const ids = Array.from({ length: 40 }, (_, i) => String(i));
  connection.write(ids.map((id) => `GET /open/${id} HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\n\r\n`).join(''));
  await until('the first is there', () => held.length === 1);
  proxy.receiver.behave(null);
  held[0]?.end('0');
  for (const id of ids) {
    const response = await connection.readResponse();
    t.same([response?.status, response?.field('x-request-id'), response?.field('connection')], [200, id, 'keep-alive']);
  }
  t.equal(proxy.receiver.requests.length, 40);
});

t.test('nothing after a response that closes the connection is served', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const next = 'GET /open/next HTTP/1.1\r\nHost: a\r\n\r\n';
  const cases = [
    {
      name: 'the caller says close',
      bytes: `GET /open/1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n${next}`,
      status: 200,
    },
    {
      name: 'a refused body',
      bytes: `POST /orders/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc${next}`,
      status: 401,
    },
    { name: 'a bad target', bytes: `GET /a//b HTTP/1.1\r\nHost: a\r\n\r\n${next}`, status: 400 },
    { name: 'a broken head', bytes: `GET /open/1 HTTP/1.1\r\nHost : a\r\n\r\n${next}`, status: 400 },
    { name: 'a tunnel', bytes: `CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n${next}`, status: 405 },
    {
      name: 'an expectation that was not met, for want of a body',
      bytes: `POST /orders/1 HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Expect: 100-continue\r\nContent-Length: 0\r\n\r\n${next}`,
      status: 200,
    },
    {
      name: 'an offer to upgrade',
      bytes: `GET /open/1 HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n${next}`,
      status: 200,
    },
  ];
  for (const { name, bytes, status } of cases) {
    const responses = await sendRaw(proxy.port, bytes, { untilClosed: true });
    t.same(
      responses.map((response) => response.status),
      [status],
      name,
    );
    t.equal(responses[0]?.field('connection'), 'close', name);
  }
  t.same(
    proxy.receiver.requests.map(({ target }) => target),
    ['/open/1', '/orders/1', '/open/1'],
  );
  t.equal(proxy.server.counts().inFlight, 0);
});

t.test('a broken head behind good requests is answered in its turn', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write('GET /open/1 HTTP/1.1\r\nHost: a\r\n\r\nGET /open/2 HTTP/1.1\r\nHost: a\r\n\r\nBROKEN\r\n\r\n');
  await until('the first is there', () => held.length === 1);
  held[0]?.end('one');
  t.equal((await connection.readResponse())?.text, 'one');
  await until('the second follows', () => held.length === 2);
  held[1]?.end('two');
  t.equal((await connection.readResponse())?.text, 'two');
  t.equal((await connection.readResponse())?.status, 400);
  await connection.closed;
  await until('all three are recorded', () => proxy.records.length === 3);
  t.same(
    proxy.records.map(({ reason }) => reason),
    [null, null, 'method_malformed'],
  );
});

t.test(
  'a body that breaks in the packet of its head is refused when it is known whose it is, and nothing of it is sent on',
  async (t) => {
    const proxy = await startProxy(t, { config: { routes } });
    const broken = (credential: string): string =>
      `POST /orders/2 HTTP/1.1\r\nHost: a\r\nX-Request-Id: given\r\n${credential}Transfer-Encoding: chunked\r\n\r\nzz\r\n`;
    const known = await sendRaw(proxy.port, broken(proxy.bearer()), { untilClosed: true });
    const unknown = await sendRaw(proxy.port, broken(''), { untilClosed: true });
    t.same(
      [known, unknown].map((responses) => responses.map(({ status, field }) => [status, field('x-request-id')])),
      [[[400, 'given']], [[401, 'given']]],
    );
    await until('both are recorded', () => proxy.records.length === 2);
    t.match(proxy.records, [
      { request_id: 'given', route: 'post', subject: 'checkout', reason: 'framing', status: 400 },
      { request_id: 'given', reason: 'credential_missing', status: 401 },
    ]);
    t.equal(proxy.receiver.requests.length, 0);
  },
);

t.test(
  'a broken body behind a good request is refused in its turn and never reaches the upstream as a whole',
  async (t) => {
    const proxy = await startProxy(t, { config: { routes } });
    const held: ServerResponse[] = [];
    proxy.receiver.behave((_req, res) => held.push(res));
    const connection = await connectRaw(proxy.port);
    t.teardown(connection.end);
    connection.write(
      `GET /open/1 HTTP/1.1\r\nHost: a\r\n\r\nPOST /orders/2 HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
    );
    await until('the first is there', () => held.length === 1);
    held[0]?.end('one');
    t.equal((await connection.readResponse())?.text, 'one');
    t.equal((await connection.readResponse())?.status, 400);
    await connection.closed;
    t.equal(proxy.receiver.requests.length, 1);
  },
);
