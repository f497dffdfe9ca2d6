import { createHash, randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import t from 'tap';
import { connectRaw, request, requestBytes, sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';
import { okResponse, startRawUpstream } from './raw-upstream.js';

const routes = [
  {
    name: 'any',
    methods: ['*'],
    path: '/**',
    subjects: ['checkout'],
    permissions: [],
    max_body: '64MiB',
    idempotency: 'none',
  },
];

t.test('method and target reach the upstream byte for byte', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const targets = [
    '/a',
    '/a/',
    '/A/b',
    '/a%20b',
    '/a+b',
    '/%E2%82%AC',
    '/a?',
    '/a?b=c&d',
    '/a??',
    '/a?x=%2e%2e/../%00',
    '/a?{}|\\^`[]\'"<>',
    '/~a/-._',
    '/a?1.0',
    "/a!$&'()*+,=:@b",
    '/a?q=%',
    '/a?a=1&a=2&b',
    '/a?%zz',
  ];
  for (const path of targets) {
    t.equal((await request(proxy.port, { path, headers: proxy.authorization() })).status, 200, path);
  }
  t.same(
    proxy.receiver.requests.map(({ target }) => target),
    targets,
  );
});

t.test('every method but those of tunnels passes as it is', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const methods = [
    'GET',
    'HEAD',
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'PROPFIND',
    'REPORT',
    'PURGE',
    'M-SEARCH',
    'LINK',
    'QUERY',
  ];
  const known = methods.filter((method) => method !== 'QUERY' || process.version > 'v22');
  for (const method of known) {
    const [response] = await sendRaw(
      proxy.port,
      requestBytes(proxy.port, { method, path: '/a', headers: proxy.authorization() }),
    );
    t.equal(response?.status, 200, method);
  }
  t.same(
    proxy.receiver.requests.map(({ method }) => method),
    known,
  );
});

t.test('bodies arrive hash for hash, whatever they claim to be', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const bodies: readonly [string, string, Buffer][] = [
    [
      'a number that JSON parsers change',
      'application/json',
      Buffer.from('{"n":1.0,"big":12345678901234567890,"n":2}'),
    ],
    ['a byte order mark', 'application/json; charset=utf-8', Buffer.from('\ufeff{"a":1}')],
    ['no JSON at all', 'application/json', Buffer.from('{"a":')],
    ['an unsound content type', 'application/json ;', Buffer.from('{}')],
    ['a content type that is none', ';;;', Buffer.from('x')],
    ['another charset', 'text/plain; charset=iso-8859-1', Buffer.from([0xe4, 0xf6, 0xfc, 0x00, 0xff])],
    ['a form', 'application/x-www-form-urlencoded', Buffer.from('a=1&b=%20&a=2')],
    ['noise', 'application/octet-stream', randomBytes(200_000)],
    ['a request', 'message/http', Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')],
  ];
  for (const [name, type, body] of bodies) {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const before = proxy.receiver.requests.length;
      const response = await request(proxy.port, {
        method,
        path: '/a',
        headers: { ...proxy.authorization(), 'Content-Type': type },
        body,
      });
      t.equal(response.status, 200, `${method} ${name}`);
      const received = proxy.receiver.requests[before];
      t.equal(hash(received?.body ?? Buffer.alloc(0)), hash(body));
      t.same(received?.field('content-type'), [type]);
      t.same(received?.field('content-length'), [String(body.length)]);
    }
  }
});

t.test('the framing of a body is kept, and trailers end here', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const head = `POST /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}`;
  const cases = [
    { name: 'a length', rest: 'Content-Length: 3\r\n\r\nabc', length: ['3'], chunked: [], body: 'abc' },
    { name: 'no body, a length of 0', rest: 'Content-Length: 0\r\n\r\n', length: ['0'], chunked: [], body: '' },
    { name: 'no body and no length, which means the same', rest: '\r\n', length: ['0'], chunked: [], body: '' },
    {
      name: 'chunks',
      rest: 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
      length: [],
      chunked: ['chunked'],
      body: 'abc',
    },
    {
      name: 'trailers',
      rest: 'Trailer: X-Auth-Subject\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Auth-Subject: evil\r\n\r\n',
      length: [],
      chunked: ['chunked'],
      body: 'abc',
    },
  ];
  for (const [index, { name, rest, length, chunked, body }] of cases.entries()) {
    const [response] = await sendRaw(proxy.port, head + rest);
    t.equal(response?.status, 200, name);
    const received = proxy.receiver.requests[index];
    t.same(received?.field('content-length'), length, name);
    t.same(received?.field('transfer-encoding'), chunked, name);
    t.equal(received?.body.toString(), body, name);
    t.same(received?.trailers, [], name);
    t.same(received?.field('x-auth-subject'), ['checkout'], name);
  }
});

t.test('responses keep their framing, and their trailers end here', async (t) => {
  const answers = new Map([
    ['/length', okResponse('hello')],
    [
      '/chunks',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Auth-Subject\r\n\r\n5\r\nhello\r\n0\r\nX-Auth-Subject: evil\r\n\r\n',
    ],
    ['/close', 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello'],
    ['/old', 'HTTP/1.0 200 OK\r\n\r\nhello'],
    ['/empty', okResponse('')],
    ['/none', 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n'],
    ['/same', 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nContent-Length: 5000\r\n\r\n'],
  ]);
  const upstream = await startRawUpstream(t, (socket, received) => {
    const [, target = ''] = /([^ ]+) HTTP\/1\.1\r\n(?!.* HTTP\/1\.1\r\n)/s.exec(received) ?? [];
    const answer = answers.get(target) ?? '';
    socket.write(answer);
    if (target === '/close' || target === '/old') socket.end();
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  const ask = async (path: string): Promise<readonly (string | number | null)[]> => {
    const response = await request(proxy.port, { path, headers: proxy.authorization() });
    t.ok(response.complete, path);
    t.notMatch(response.raw.toString(), 'evil');
    return [response.status, response.field('content-length'), response.field('transfer-encoding'), response.text];
  };
  t.same(await ask('/length'), [200, '5', null, 'hello']);
  t.same(await ask('/chunks'), [200, null, 'chunked', 'hello']);
  t.same(await ask('/close'), [200, null, 'chunked', 'hello']);
  t.same(await ask('/old'), [200, null, 'chunked', 'hello']);
  t.same(await ask('/empty'), [200, '0', null, '']);
  t.same(await ask('/none'), [204, null, null, '']);
  t.same(await ask('/same'), [304, '5000', null, '']);
  t.equal(upstream.hits(), 7);
});

t.test('HEAD is answered with the headers of GET and no body, and the connection goes on', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  proxy.receiver.behave((_req, res) => {
    res.writeHead(200, { 'content-length': '12345', 'x-a': 'b' });
    res.end();
  });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  for (let i = 0; i < 3; i++) {
    connection.write(`HEAD /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
    const response = await connection.readResponse({ bodyless: true });
    t.same([response?.status, response?.field('content-length'), response?.field('x-a')], [200, '12345', 'b']);
  }
  connection.write('HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n');
  const refused = await connection.readResponse({ bodyless: true });
  t.equal(refused?.status, 401);
  t.equal(refused?.field('content-length'), '58', 'as GET would have it');
  proxy.receiver.behave(null);
  connection.write(`GET /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  t.equal((await connection.readResponse())?.status, 200);
});

t.test('an event stream comes through event by event', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  let send = (_event: string): void => undefined;
  let end = (): void => undefined;
  proxy.receiver.behave((_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.flushHeaders();
    send = (event) => res.write(event);
    end = () => res.end();
  });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(`GET /events HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  await until('the head is there before any event', () => connection.pending().includes('text/event-stream\r\n'));
  for (const event of ['data: 1\n\n', 'data: 2\n\n', 'data: 3\n\n']) {
    send(event);
    await until(event.trim(), () => connection.pending().includes(event));
  }
  end();
  t.equal((await connection.readResponse())?.text, 'data: 1\n\ndata: 2\n\ndata: 3\n\n');
});

t.test('a body reaches the upstream while it is being sent', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(`POST /a HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Transfer-Encoding: chunked\r\n\r\n`);
  for (const part of ['one', 'two', 'six']) {
    connection.write(`3\r\n${part}\r\n`);
    await until(part, () => proxy.receiver.requests[0]?.body.toString().endsWith(part));
  }
  connection.write('0\r\n\r\n');
  t.equal((await connection.readResponse())?.status, 200);
});

t.test("of the upstream's response only what is the caller's comes through", async (t) => {
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write(
      [
        'HTTP/1.1 200 OK',
        'Connection: keep-alive, X-Named',
        'Keep-Alive: timeout=9',
        'Proxy-Authenticate: Basic',
        'Upgrade: h2c',
        'Trailer: X',
        'X-Named: gone',
        'X-Auth-Subject: evil',
        'x_auth.subject: evil',
        'Idempotent-Replayed: true',
        'Idempotency-Outcome: x',
        'Proxy-Status: sallyport; error=evil, cdn; x=1',
        'X-Request-Id: evil',
        'Set-Cookie: a=1',
        'Set-Cookie: b=2',
        'Server: app',
        'X-Kept: yes',
        'Content-Length: 2',
        '',
        'ok',
      ].join('\r\n'),
    );
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  const response = await request(proxy.port, {
    path: '/a',
    headers: { ...proxy.authorization(), 'X-Request-Id': 'mine' },
  });
  const kept = response.fields.filter(([name]) => !['Date', 'Connection', 'Keep-Alive'].includes(name));
  t.same(kept, [
    ['X-Request-Id', 'mine'],
    ['Proxy-Status', 'cdn; x=1'],
    ['Set-Cookie', 'a=1'],
    ['Set-Cookie', 'b=2'],
    ['Server', 'app'],
    ['X-Kept', 'yes'],
    ['Content-Length', '2'],
  ]);
  t.equal(response.field('keep-alive'), 'timeout=75', 'of our own connection');
});

function hash(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}

t.test('headers beyond ASCII come through byte for byte, whenever the body comes', async (t) => {
  const line = Buffer.from('X-Beyond: caf\xe9 \xc3\xa9\r\n', 'latin1');
  const head = (length: number): Buffer =>
    Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\n'), line, Buffer.from(`Content-Length: ${String(length)}\r\n\r\n`)]);
  let send = (_socket: Socket): void => undefined;
  const upstream = await startRawUpstream(t, (socket) => {
    send(socket);
  });
  const proxy = await startProxy(t, { upstreamUrl: upstream.url, config: { routes } });
  const ways: readonly { name: string; send: (socket: Socket) => void }[] = [
    { name: 'none', send: (socket) => socket.write(head(0)) },
    { name: 'at once', send: (socket) => socket.write(Buffer.concat([head(2), Buffer.from('ok')])) },
    { name: 'large', send: (socket) => socket.write(Buffer.concat([head(100_000), Buffer.alloc(100_000, 'x')])) },
    {
      name: 'later',
      send: (socket) => {
        socket.write(head(2));
        setTimeout(() => socket.write('ok'), 50);
      },
    },
  ];
  for (const way of ways) {
    send = way.send;
    const answer = await request(proxy.port, { path: '/a', headers: proxy.authorization() });
    t.ok(answer.raw.includes(line), way.name);
    t.ok(answer.complete, way.name);
  }
});
