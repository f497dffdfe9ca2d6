/** docs/contract.md 2 and 4: every phase and every size has a bound, and who exceeds it is told so. */
import type { ServerResponse } from 'node:http';
import t from 'tap';
import { connectRaw, requestBytes } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const kib = 1024;
const proxy = await startProxyProcess(t, {
  config: {
    listen: {
      max_header_bytes: '4KiB',
      max_target: '1KiB',
      header_timeout: '300ms',
      body_idle_timeout: '300ms',
      max_in_flight: 3,
    },
    upstream: { max_connections: 16 },
    routes: [
      { name: 'read', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [] },
      {
        name: 'write',
        methods: ['POST'],
        path: '/orders',
        subjects: ['checkout'],
        permissions: [],
        idempotency: 'none',
        max_body: '1KiB',
      },
      { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
    ],
  },
});
const auth = proxy.authorization();
const chunk = (size: number): string => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`;

t.test('a body up to the limit passes, a longer one is 413', async (t) => {
  const chunked = { ...auth, 'Transfer-Encoding': 'chunked' };
  t.equal(
    (await proxy.request({ method: 'POST', path: '/orders', headers: auth, body: 'x'.repeat(kib) })).status,
    200,
    'length at the limit',
  );
  t.equal(
    (await proxy.request({ method: 'POST', path: '/orders', headers: chunked, body: `${chunk(kib)}0\r\n\r\n` })).status,
    200,
    'chunks at the limit',
  );
  const before = proxy.receiver.requests.length;
  for (const type of ['application/json', 'text/plain', 'application/octet-stream']) {
    const headers = { 'Content-Type': type };
    checkRefusal(
      t,
      await proxy.request({
        method: 'POST',
        path: '/orders',
        headers: { ...auth, ...headers },
        body: 'x'.repeat(kib + 1),
      }),
      refusals.bodyTooLarge,
      `length over it, ${type}`,
    );
    checkRefusal(
      t,
      await proxy.request({
        method: 'POST',
        path: '/orders',
        headers: { ...chunked, ...headers },
        body: `${chunk(kib)}${chunk(1)}0\r\n\r\n`,
      }),
      refusals.bodyTooLarge,
      `chunks over it, ${type}`,
    );
  }
  const announced = requestBytes(proxy.port, {
    method: 'POST',
    path: '/orders',
    headers: { ...auth, 'Content-Length': '999999999999' },
  });
  const [response] = await proxy.send(announced, { untilClosed: true });
  t.equal(response?.status, 413, 'an announced length is refused without a byte of it');
  await until('what began is broken off', () =>
    proxy.receiver.requests.slice(before).every(({ aborted, complete }) => aborted || complete),
  );
  t.same(
    proxy.receiver.requests.slice(before).filter(({ complete }) => complete),
    [],
    'none is whole at the receiver',
  );
});

t.test('a target or a head that is too long', async (t) => {
  checkRefusal(
    t,
    await proxy.request({ path: `/orders?${'x'.repeat(kib)}`, headers: auth }),
    refusals.targetTooLong,
    'target',
  );
  const rows: readonly (readonly [string, Record<string, string>])[] = [
    ['one large field', { 'X-Large': 'x'.repeat(5 * kib) }],
    ['many small fields', Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`X-${String(index)}`, 'x']))],
  ];
  for (const [name, headers] of rows) {
    const [response] = await proxy.send(
      requestBytes(proxy.port, { path: '/orders', headers: { ...auth, ...headers } }),
      { untilClosed: true },
    );
    t.ok(response !== undefined, name);
    if (response !== undefined) checkRefusal(t, response, refusals.headerTooLarge, name);
  }
});

t.test('a head that does not come to its end is 408', async (t) => {
  for (const start of [
    'GET /orders HT',
    'GET /orders HTTP/1.1\r\nHost: a\r\nX-Half: ',
    'GET /orders HTTP/1.1\r\nHost: a\r\n',
  ]) {
    const [response] = await proxy.send(start, { untilClosed: true });
    t.ok(response !== undefined, start);
    if (response !== undefined) checkRefusal(t, response, refusals.tooSlow, JSON.stringify(start));
  }
});

t.test('one byte now and then does not prolong a head', async (t) => {
  const connection = await connectRaw(proxy.port);
  connection.write('GET /orders HTTP/1.1\r\nX-Slow: ');
  const drip = setInterval(() => {
    if (!connection.isClosed()) connection.write('x');
  }, 20);
  t.teardown(() => {
    clearInterval(drip);
  });
  t.equal((await connection.readResponse())?.status, 408);
  await connection.closed;
});

t.test('a body that pauses too long is 408, and never whole at the upstream', async (t) => {
  const before = proxy.receiver.requests.length;
  for (const framing of [{ 'Content-Length': '10' }, { 'Transfer-Encoding': 'chunked' }]) {
    const bytes = requestBytes(proxy.port, { method: 'POST', path: '/orders', headers: { ...auth, ...framing } });
    const [response] = await proxy.send(
      `${bytes.toString('latin1')}${'Content-Length' in framing ? 'first' : chunk(5)}`,
      { untilClosed: true },
    );
    t.ok(response !== undefined, 'an answer');
    if (response !== undefined) checkRefusal(t, response, refusals.tooSlow, Object.keys(framing).join());
  }
  await until('what began is broken off', () => proxy.receiver.requests.slice(before).every(({ aborted }) => aborted));
  t.same(
    proxy.receiver.requests.slice(before).filter(({ complete }) => complete),
    [],
  );
});

t.test('more requests in flight than allowed are 503, at once', async (t) => {
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const waiting = [1, 2, 3].map(async () => proxy.request({ path: '/orders', headers: auth }));
  await until('all places are taken', () => held.length === 3);
  for (const [name, path, headers] of [
    ['with a token', '/orders', auth],
    ['a public route', '/healthz', {}],
  ] as const) {
    checkRefusal(t, await proxy.request({ path, headers }), refusals.overloaded, name);
  }
  t.equal((await proxy.admin('/livez')).status, 200, 'operators are still served');
  t.ok((await proxy.metric('sallyport_failures_total{reason="overloaded"}')) >= 2, 'counted');
  proxy.receiver.behave(null);
  for (const answer of held) answer.end('held');
  t.same(
    (await Promise.all(waiting)).map(({ status, text }) => [status, text]),
    [
      [200, 'held'],
      [200, 'held'],
      [200, 'held'],
    ],
    'those in flight end well',
  );
  t.equal((await proxy.request({ path: '/orders', headers: auth })).status, 200, 'and there is room again');
});

t.test('a caller that breaks off gives its place back', async (t) => {
  proxy.receiver.behave(() => undefined);
  for (let round = 0; round < 4; round += 1) {
    const before = proxy.receiver.requests.length;
    const connections = await Promise.all([1, 2, 3].map(async () => connectRaw(proxy.port)));
    for (const connection of connections) {
      connection.write(requestBytes(proxy.port, { path: '/orders', headers: auth }));
    }
    await until('all places are taken', () => proxy.receiver.requests.length === before + 3);
    for (const connection of connections) connection.end();
    await until('all places are free', async () => (await proxy.metric('sallyport_requests_in_flight')) === 0);
  }
  proxy.receiver.behave(null);
  t.equal((await proxy.request({ path: '/orders', headers: auth })).status, 200);
});

checkSilence(t, proxy);
