/**
 * What Fastify, http-proxy and reply-from did with requests when they were left to themselves, one test for each
 * finding.
 */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { connectRaw, request, sendRaw } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { startProxy } from '../proxy/harness.js';
import { okResponse, startRawUpstream } from '../proxy/upstream/raw-upstream.js';

const routes = [
  {
    name: 'any',
    methods: ['*'],
    path: '/**',
    subjects: ['checkout'],
    permissions: [],
    max_body: '1KiB',
    idempotency: 'none',
  },
  { name: 'open', methods: ['GET'], path: '/public/**', access: 'public' },
];

t.test('a target that another reader would rewrite is refused, never rewritten', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const targets = [
    '/public/\\..\\..\\admin',
    '/a\\b',
    '/a/./b',
    '/a/%2e',
    '/a/..',
    '/a#f',
    '*',
    '{}',
    '/{}',
    'http://evil/healthz',
    '/%68ealthz',
    '//evil/a',
    '/a//b',
  ];
  for (const path of targets) {
    t.equal((await request(proxy.port, { path, headers: proxy.authorization() })).status, 400, path);
  }
  t.equal(proxy.receiver.requests.length, 0);
});

t.test('what looks like an identity header does not pass beside it', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const names = [
    'X-Auth-Subject',
    'x_auth_subject',
    'X.Auth.Subject',
    'X-AUTH_SUBJECT',
    'XAuthSubject',
    'X--Auth--Subject',
  ];
  const headers = [
    ...names.map((name): [string, string] => [name, 'evil']),
    ['Authorization', proxy.authorization().Authorization] as const,
  ];
  t.equal((await request(proxy.port, { path: '/a', headers })).status, 200);
  const received = proxy.receiver.requests[0]?.rawHeaders ?? [];
  t.notOk(received.includes('evil'));
  t.same(proxy.receiver.requests[0]?.field('X-Auth-Subject'), ['checkout']);
  t.equal(proxy.counted.stripped, names.length);
});

t.test('Connection takes away nothing that we set or judge', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  for (const name of ['Idempotency-Key', 'content-type', 'X-AUTH-SUBJECT', 'traceparent', 'Host']) {
    const headers = {
      ...proxy.authorization(),
      'Idempotency-Key': 'k',
      'Content-Type': 'text/plain',
      Connection: `close, ${name}`,
    };
    t.equal((await request(proxy.port, { method: 'POST', path: '/a', headers, body: 'x' })).status, 400, name);
  }
  t.equal(proxy.receiver.requests.length, 0);
});

t.test('no header of a caller makes a 5xx', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const registered: unknown = JSON.parse(
    readFileSync(new URL('../../../test/vectors/iana-field-names.json', import.meta.url), 'utf8'),
  );
  const names =
    JSON.stringify(registered)
      .match(/"[A-Za-z][A-Za-z0-9-]*"/g)
      ?.map((text) => text.slice(1, -1)) ?? [];
  t.ok(names.length > 100);
  for (const name of [
    ...names,
    'Keep-Alive',
    'Upgrade',
    'Expect',
    'TE',
    'Trailer',
    'Proxy-Connection',
    'HTTP2-Settings',
    '__proto__',
    'constructor',
  ]) {
    const [response] = await sendRaw(proxy.port, `GET /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}${name}: h2c\r\n\r\n`);
    t.ok(response !== undefined && response.status < 500, `${name}: ${String(response?.status)}`);
  }
  t.same(proxy.logged, []);
});

t.test('max_body counts, whatever the content type', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  for (const type of ['application/json', 'text/plain', 'application/octet-stream', 'x/y']) {
    for (const framing of ['Content-Length: 50000\r\n\r\n', 'Transfer-Encoding: chunked\r\n\r\nc350\r\n']) {
      const head = `POST /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Type: ${type}\r\n${framing}`;
      const [response] = await sendRaw(proxy.port, head + 'x'.repeat(50_000));
      t.equal(response?.status, 413, type);
    }
  }
});

t.test('a GET that is answered 503 is not sent again', async (t) => {
  const upstream = await startRawUpstream(
    t,
    (socket) => void socket.write(okResponse('', 'Retry-After: 0\r\n').replace('200 OK', '503 Busy')),
  );
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  t.equal((await request(proxy.port, { path: '/a', headers: proxy.authorization() })).status, 503);
  t.equal(upstream.hits(), 1);
});

t.test('a caller that hangs up ends its request at the upstream', async (t) => {
  const upstream = await startRawUpstream(t, () => undefined);
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  const caller = await connectRaw(proxy.port);
  caller.write(`GET /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  await until('it is with the receiver', () => upstream.hits() === 1);
  caller.end();
  await until('the connection is closed', () => upstream.open() === 0);
});

t.test('a silent connection does not hold up a shutdown', async (t) => {
  const proxy = await startProxy(t, { config: { routes, listen: { header_timeout: '10m' } } });
  const silent = await connectRaw(proxy.port);
  t.teardown(silent.end);
  await proxy.server.drain(120_000);
  t.equal(proxy.server.counts().connections, 0);
});

t.test("the text of an error of the upstream's connection stays here", async (t) => {
  const upstream = await startRawUpstream(t, (socket) => void socket.end('HTTP/1.1 2OO garbage-text\r\n\r\n'));
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  const response = await request(proxy.port, { path: '/a', headers: proxy.authorization() });
  t.equal(response.status, 502);
  t.notMatch(response.raw.toString(), /garbage|socket|parse|expected|UND_ERR|HPE_/i);
});

t.test('two Hosts, an empty one, two credentials and old versions are refused', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const good = proxy.bearer();
  const heads = [
    `GET /a HTTP/1.1\r\nHost: a\r\nHost: b\r\n${good}`,
    `GET /a HTTP/1.1\r\nHost:\r\n${good}`,
    `GET /a HTTP/1.1\r\nHost: a b\r\n${good}`,
    `GET /a HTTP/1.1\r\nHost: a,b\r\n${good}`,
    `GET /a HTTP/1.1\r\nHost: u@a\r\n${good}`,
    `GET /a HTTP/1.1\r\n${good}`,
    `GET /a HTTP/1.0\r\nHost: a\r\n${good}`,
    `GET /a HTTP/2.0\r\nHost: a\r\n${good}`,
    `GET /a HTTP/1.1\r\nHost: a\r\n${good}${good}`,
    `GET /a HTTP/1.1\r\nHost: a\r\n${good}Idempotency-Key: A\r\nIdempotency-Key: B\r\n`,
  ];
  for (const head of heads) {
    t.equal((await sendRaw(proxy.port, `${head}\r\n`))[0]?.status, 400, JSON.stringify(head.slice(0, 40)));
  }
  t.equal(proxy.receiver.requests.length, 0);
});

t.test('Transfer-Encoding is chunked and nothing else', async (t) => {
  const proxy = await startProxy(t, { config: { routes, listen: { http_1_0: 'allow' } } });
  for (const [version, coding] of [
    ['1.1', 'gzip, chunked'],
    ['1.1', ',chunked'],
    ['1.0', 'chunked'],
    ['1.1', 'identity'],
    ['1.1', 'x'],
  ] as const) {
    const head = `POST /a HTTP/${version}\r\nHost: a\r\n${proxy.bearer()}Transfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`;
    t.equal((await sendRaw(proxy.port, head))[0]?.status, 400, `${version} ${coding}`);
  }
  t.notOk(proxy.receiver.requests.some(({ complete }) => complete));
});

t.test('a strange response does not spoil the next one', async (t) => {
  const strange = [
    'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok',
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok',
    okResponse('ok') + okResponse('more'),
    'HTTP/1.1 304 X\r\n\r\nhello',
  ];
  let next: string | undefined;
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write(next ?? okResponse('sound'));
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  for (const bytes of strange) {
    next = bytes;
    await sendRaw(proxy.port, `GET /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
    next = undefined;
    const response = await request(proxy.port, { path: '/a', headers: proxy.authorization() });
    t.same([response.status, response.text], [200, 'sound'], JSON.stringify(bytes.slice(0, 60)));
  }
});
