import t from 'tap';
import { connectRaw, request, sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';

const config = {
  routes: [
    {
      name: 'small',
      methods: ['POST', 'PUT'],
      path: '/small',
      subjects: ['checkout'],
      permissions: [],
      max_body: '10B',
      idempotency: 'none',
    },
    {
      name: 'get',
      methods: ['GET'],
      path: '/get',
      subjects: ['checkout'],
      permissions: [],
      max_body: '10B',
      body: 'allow',
    },
    { name: 'form', methods: ['POST'], path: '/form', access: 'public', max_body: '10B', idempotency: 'none' },
  ],
};

const contentTypes = [
  'application/json',
  'application/octet-stream',
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=b',
  null,
];

t.test('a body over max_body is refused by its length, before anything is sent on', async (t) => {
  const proxy = await startProxy(t, { config });
  for (const type of contentTypes) {
    for (const { length, status } of [
      { length: 10, status: 200 },
      { length: 11, status: 413 },
      { length: 1e9, status: 413 },
    ]) {
      const headers = {
        ...proxy.authorization(),
        ...(type === null ? {} : { 'Content-Type': type }),
        'Content-Length': String(length),
      };
      const response = await request(proxy.port, {
        method: 'POST',
        path: '/small',
        headers,
        body: 'x'.repeat(Math.min(length, 11)),
      });
      t.equal(response.status, status, `${String(length)} bytes of ${String(type)}`);
      if (status === 413) t.equal(response.field('connection'), 'close');
    }
  }
  t.equal(proxy.receiver.requests.length, contentTypes.length, 'only what was within the limit arrived');
  t.ok(proxy.receiver.requests.every(({ body }) => body.length === 10));
});

t.test('a chunked body is counted as it comes, whatever its type and method', async (t) => {
  const proxy = await startProxy(t, { config });
  const cases = [
    { name: 'one chunk within', chunks: ['a\r\n0123456789\r\n', '0\r\n\r\n'], status: 200 },
    { name: 'one chunk over', chunks: ['b\r\n0123456789a\r\n', '0\r\n\r\n'], status: 413 },
    {
      name: 'many chunks within',
      chunks: Array.from('0123456789', (c) => `1\r\n${c}\r\n`).concat('0\r\n\r\n'),
      status: 200,
    },
    {
      name: 'many chunks over',
      chunks: Array.from('0123456789a', (c) => `1\r\n${c}\r\n`).concat('0\r\n\r\n'),
      status: 413,
    },
    { name: 'over in the last one', chunks: ['9\r\n012345678\r\n', '2\r\n9a\r\n', '0\r\n\r\n'], status: 413 },
  ];
  for (const { path, method } of [
    { path: '/small', method: 'PUT' },
    { path: '/get', method: 'GET' },
    { path: '/form', method: 'POST' },
  ]) {
    for (const { name, chunks, status } of cases) {
      for (const type of contentTypes) {
        const typed = type === null ? '' : `Content-Type: ${type}\r\n`;
        const head = `${method} ${path} HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}${typed}Transfer-Encoding: chunked\r\n\r\n`;
        const [response] = await sendRaw(proxy.port, head + chunks.join(''));
        t.equal(response?.status, status, `${method} ${name}, ${String(type)}`);
        if (status === 413) t.ok(response?.closed, 'the connection is closed');
      }
    }
  }
  await until('the last broken request has ended', () =>
    proxy.receiver.requests.every(({ complete, aborted }) => complete || aborted),
  );
  for (const { complete, body } of proxy.receiver.requests) {
    if (complete) t.equal(body.length, 10, 'what the receiver took for whole is whole');
  }
});

t.test('a chunked body that goes over the limit while it streams is cut for both sides', async (t) => {
  const proxy = await startProxy(t, { config });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(
    `POST /small HTTP/1.1\r\nHost: a\r\nX-Request-Id: cut\r\n${proxy.bearer()}Transfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n`,
  );
  await until('the first chunk is with the receiver', () => proxy.receiver.requests[0]?.body.length === 5);
  connection.write('6\r\n56789a\r\n');
  const response = await connection.readResponse();
  t.equal(response?.status, 413);
  t.equal(response?.field('content-type'), 'application/problem+json');
  await until('the receiver knows', () => proxy.receiver.requests[0]?.aborted);
  t.equal(proxy.receiver.requests[0]?.complete, false, 'a broken body never ends like a whole one');
  await connection.closed;
  t.match(await proxy.recordOf('cut'), { decision: 'denied', reason: 'body_too_large', status: 413 });
  t.same(proxy.counted.denials, ['body_too_large']);
  t.equal(proxy.server.counts().inFlight, 0);
});
