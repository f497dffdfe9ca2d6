import { createHash } from 'node:crypto';
import t from 'tap';
import { ask, connectHttp2 } from '../../../support/http2-client.js';
import { connectFrames, frame, frameTypes, headers, uint32 } from '../../../support/http2-frames.js';
import { until } from '../../../support/until.js';
import { connectRaw } from '../../../support/raw-client.js';
import { startProxy, type Harness } from '../../harness.js';
import type { Scope } from '../../../support/scope.js';

const startHttp2Proxy = (t: Scope): Promise<Harness> => startProxy(t, { config: { listen: { http2: true } } });

const originOf = ({ port }: Harness): string => `http://127.0.0.1:${port}`;

t.test('a request of HTTP/2 takes the same way as one of HTTP/1.1', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const session = await connectHttp2(t, originOf(proxy));
  const authorization = proxy.authorization().Authorization;
  const got = await ask(session, { ':path': '/orders?a=b', authorization, cookie: ['a=1', 'b=2'] });
  t.equal(got.status, 200);
  t.equal(got.code, 0);
  const [received] = proxy.receiver.requests;
  t.equal(received?.target, '/orders?a=b');
  t.same(received?.field('host'), [new URL(`http://127.0.0.1:${proxy.receiver.port}`).host]);
  t.same(received?.field('via'), ['2.0 sallyport']);
  t.same(received?.field('cookie'), ['a=1; b=2']);
  t.same(received?.field('x-forwarded-host'), [`127.0.0.1:${proxy.port}`]);
  t.equal(received?.field('x-auth-subject').length, 1);
  const refused = await ask(session, { ':path': '/orders' });
  t.equal(refused.status, 401);
  t.equal(refused.headers['content-type'], 'application/problem+json');
  t.equal(refused.body.toString(), '{"type":"about:blank","title":"Unauthorized","status":401}');
  const tunnel = await ask(session, { ':method': 'CONNECT', ':authority': '127.0.0.1:80' });
  t.equal(tunnel.status, 405);
  t.same(proxy.records.map(({ status, reason }) => ({ status, reason })).slice(0, 2), [
    { status: 200, reason: null },
    { status: 401, reason: 'credential_missing' },
  ]);
});

t.test('a response head goes on as long as an upstream may send one, and costs no connection', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const session = await connectHttp2(t, originOf(proxy), {
    settings: { maxHeaderListSize: 1_000_000 },
    maxHeaderListPairs: 10_000,
  });
  const authorization = proxy.authorization().Authorization;
  for (const [lines, bytes] of [
    [1, 64_000],
    [250, 243],
    [900, 58],
  ] as const) {
    proxy.receiver.behave((_req, res) => {
      for (let i = 0; i < lines; i += 1) res.setHeader(`x-${String(i)}`, 'a'.repeat(bytes));
      res.end('whole');
    });
    const got = await ask(session, { ':path': '/orders', authorization });
    t.same([got.status, got.code, got.body.toString()], [200, 0, 'whole'], `${String(lines)} lines`);
    t.equal(got.headers[`x-${String(lines - 1)}`], 'a'.repeat(bytes));
  }
  t.notOk(session.closed);
});

t.test('bodies are whole, or broken', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const session = await connectHttp2(t, originOf(proxy));
  const authorization = proxy.authorization().Authorization;
  const post = { ':path': '/orders', ':method': 'POST', authorization };
  for (const size of [0, 1, 16_384, 65_535, 65_536, 900_000]) {
    const body = Buffer.alloc(size, 'a');
    const got = await ask(session, post, body);
    t.equal(got.status, 200, `${size} bytes`);
    const received = proxy.receiver.requests.at(-1)?.body ?? Buffer.alloc(0);
    t.equal(createHash('sha256').update(received).digest('hex'), createHash('sha256').update(body).digest('hex'));
    t.equal((await ask(session, { ...post, 'content-length': size }, body)).status, 200, `${size} bytes as said`);
  }
  const before = proxy.receiver.requests.length;
  const raw = await connectFrames(t, proxy.port);
  const fields = [
    ':method',
    'POST',
    ':scheme',
    'http',
    ':path',
    '/orders',
    ':authority',
    'a',
    'authorization',
    authorization,
  ];
  for (const [stream, code] of [
    [1, 0],
    [3, 8],
  ] as const) {
    raw.write(headers(stream, fields, false));
    raw.write(frame(frameTypes.data, 0, stream, Buffer.from('half of it')));
    await until('the receiver has its head', () => proxy.receiver.requests.length > before + (stream >> 1));
    raw.write(frame(frameTypes.reset, 0, stream, uint32(code)));
  }
  await until('both are over', () => proxy.records.filter(({ reason }) => reason === 'caller_gone').length === 2);
  await until('and told', () => proxy.receiver.requests.slice(before).every(({ aborted }) => aborted));
  t.same(
    proxy.receiver.requests.slice(before).map(({ complete, aborted }) => ({ complete, aborted })),
    [
      { complete: false, aborted: true },
      { complete: false, aborted: true },
    ],
    'what was taken back never ends like a whole one',
  );
  t.not((await ask(session, { ...post, 'content-length': 5 }, 'abcdef')).code, 0, 'more than was said');
});

t.test('HTTP/1.1 is served on the same port, and slow first bytes are waited for', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  const request = `PUT /nowhere HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 0\r\n\r\n`;
  for (const character of request.slice(0, 6)) {
    connection.write(character);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  connection.write(request.slice(6));
  t.equal((await connection.readResponse())?.status, 403);
  connection.write(`GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\nGET /orders HTTP/1.1\r\nHost: a\r\n\r\n`);
  t.equal((await connection.readResponse())?.status, 200);
  t.equal((await connection.readResponse())?.status, 401, 'what was piped behind it too');
});

t.test('many at a time on one connection are answered each', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const session = await connectHttp2(t, originOf(proxy));
  const authorization = proxy.authorization().Authorization;
  const asked = Array.from({ length: 300 }, (_none, i) =>
    ask(session, { ':path': `/orders?n=${i}`, ...(i % 3 === 0 ? {} : { authorization }) }),
  );
  const statuses = (await Promise.all(asked)).map(({ status }) => status);
  t.same(
    statuses,
    statuses.map((_status, i) => (i % 3 === 0 ? 401 : 200)),
  );
  t.equal(proxy.server.counts().inFlight, 0);
});

t.test('a drain asks callers to leave, and answers what is under way', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const session = await connectHttp2(t, originOf(proxy));
  const authorization = proxy.authorization().Authorization;
  t.equal((await ask(session, { ':path': '/orders', authorization })).status, 200);
  let isLeft = false;
  session.on('goaway', () => {
    isLeft = true;
  });
  proxy.server.announceShutdown();
  await until('GOAWAY', () => isLeft);
  await proxy.server.drain(5_000);
  t.ok(session.closed || session.destroyed);
});

t.test('a response that comes before the end of the request is whole, and the rest is not waited for', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const session = await connectHttp2(t, originOf(proxy));
  const authorization = proxy.authorization().Authorization;
  proxy.receiver.behave((_req, res) => res.end('early'));
  for (const fields of [{ authorization }, {}]) {
    const stream = session.request({ ':path': '/orders', ':method': 'POST', ...fields });
    stream.on('error', () => undefined);
    stream.write(Buffer.alloc(10_000));
    const pieces: Buffer[] = [];
    stream.on('data', (piece: Buffer) => pieces.push(piece));
    await new Promise((resolve) => stream.once('close', resolve));
    t.equal(stream.rstCode, 0, 'reset with NO_ERROR');
    const body = Buffer.concat(pieces).toString();
    t.equal(body, 'authorization' in fields ? 'early' : '{"type":"about:blank","title":"Unauthorized","status":401}');
  }
  await until('every place is given back', () => proxy.server.counts().inFlight === 0);
});

t.test('a response that breaks off never looks whole', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const session = await connectHttp2(t, originOf(proxy));
  const authorization = proxy.authorization().Authorization;
  proxy.receiver.behave((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/plain' });
    res.write('half of it', () => res.destroy());
  });
  const raw = await connectFrames(t, proxy.port);
  const fields = [
    ':method',
    'GET',
    ':scheme',
    'http',
    ':path',
    '/orders',
    ':authority',
    'a',
    'authorization',
    authorization,
  ];
  raw.write(headers(1, fields));
  const reset = await raw.next('a reset', ({ type }) => type === frameTypes.reset);
  t.equal(reset.payload.readUInt32BE(), 2, 'INTERNAL_ERROR');
  const ended = raw.frames.filter(
    ({ type, flags }) => (type === frameTypes.data || type === frameTypes.headers) && (flags & 1) === 1,
  );
  t.same(ended, [], 'without END_STREAM');
  t.equal((await ask(session, { ':path': '/orders', authorization })).code, 2);
});

t.test('a body that is on its way when it is refused may come, and the stream ends without a reset', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const raw = await connectFrames(t, proxy.port);
  for (const [stream, type] of [
    [1, 'application/json'],
    [3, 'application/grpc'],
  ] as const) {
    const fields = [':method', 'POST', ':scheme', 'http', ':path', '/orders', ':authority', 'a', 'content-type', type];
    raw.write(headers(stream, fields, false));
    await raw.next('the end of the answer', (sent) => sent.stream === stream && (sent.flags & 1) === 1);
    raw.write(frame(frameTypes.data, 1, stream, Buffer.from('the rest of it')));
  }
  await until('both are over', () => proxy.server.counts().streams === 0);
  t.same(
    raw.frames.filter(({ type }) => type === frameTypes.reset),
    [],
  );
});

t.test('a response that the deadline of a shutdown cuts off does not look whole', async (t) => {
  const proxy = await startHttp2Proxy(t);
  const authorization = proxy.authorization().Authorization;
  proxy.receiver.behave((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/plain' });
    res.write('half of it');
  });
  const raw = await connectFrames(t, proxy.port);
  const fields = [':method', 'GET', ':scheme', 'http', ':path', '/orders', ':authority', 'a'];
  raw.write(headers(1, [...fields, 'authorization', authorization]));
  await raw.next('some of the body', ({ type }) => type === frameTypes.data);
  await proxy.server.drain(400);
  await raw.closed;
  const ended = raw.frames.filter(({ type, flags, stream }) => stream === 1 && type <= 1 && (flags & 1) === 1);
  t.same(ended, [], 'no END_STREAM');
});
