/** docs/contract.md 3.8: what is let through arrives byte for byte, streamed, once, and so does its answer. */
import type { ServerResponse } from 'node:http';
import { createHash } from 'node:crypto';
import t from 'tap';
import { connectRaw, requestBytes } from '../support/raw-client.js';
import type { ReceivedRequest } from '../support/upstream-server.js';
import { until } from '../support/until.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const proxy = await startProxyProcess(t);
const auth = proxy.authorization();

const received = (): ReceivedRequest => {
  const last = proxy.receiver.requests.at(-1);
  if (last === undefined) throw new Error('nothing was received');
  return last;
};

/** Waits for the request and hands out its answer, which the test then writes bit by bit. */
async function nextAnswer(): Promise<ServerResponse> {
  let answer: ServerResponse | null = null;
  proxy.receiver.behave((_req, res) => {
    answer = res;
  });
  return until('the receiver has the request', () => answer);
}

t.test('bodies and their types are not touched', async (t) => {
  const bodies: readonly (readonly [string, Buffer])[] = [
    ['application/json; charset=utf-8', Buffer.from('\ufeff{"a":1.0,"a":2,"big":12345678901234567890}')],
    ['application/json ;charset=utf-8', Buffer.from('{ not json')],
    ['application/octet-stream', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
    ['text/plain', Buffer.from('a\r\n\r\n0\r\n\r\n')],
    ['application/x-www-form-urlencoded', Buffer.from('a=%zz&a=1')],
    ['multipart/form-data; boundary=x', Buffer.from('--x\r\n\r\n--x--')],
    ['no/type/at all', Buffer.alloc(200_000, 'x')],
  ];
  const digest = (body: Buffer): string => createHash('sha256').update(body).digest('hex');
  for (const [type, body] of bodies) {
    const response = await proxy.request({
      method: 'POST',
      path: '/orders',
      headers: { ...auth, 'Content-Type': type },
      body,
    });
    t.equal(response.status, 200, type);
    t.equal(digest(received().body), digest(body), type);
    t.same(received().field('content-type'), [type]);
    t.same(received().field('content-length'), [String(body.length)]);
  }
});

t.test('answers come back as they are, and each request is sent once', async (t) => {
  for (const status of [
    200, 201, 202, 204, 206, 301, 303, 304, 400, 401, 403, 404, 409, 418, 429, 500, 502, 503, 504,
  ]) {
    proxy.receiver.behave((_req, res) =>
      res
        .writeHead(status, { 'X-From': 'receiver' })
        .end(status === 204 || status === 304 ? undefined : `s${String(status)}`),
    );
    const before = proxy.receiver.requests.length;
    const response = await proxy.request({ path: '/orders', headers: auth });
    t.equal(response.status, status);
    t.equal(response.text, status === 204 || status === 304 ? '' : `s${String(status)}`);
    t.equal(response.field('x-from'), 'receiver');
    t.equal(response.field('proxy-status'), null, `${String(status)}: the receiver's answer, not ours`);
    t.equal(proxy.receiver.requests.length - before, 1, `${String(status)}: asked once`);
  }
  proxy.receiver.behave(null);
});

t.test('HEAD has the head of a response only', async (t) => {
  proxy.receiver.behave((_req, res) => res.writeHead(200, { 'Content-Length': '5' }).end());
  const response = await proxy.request({ method: 'HEAD', path: '/orders/1', headers: auth });
  proxy.receiver.behave(null);
  t.match(response, { status: 200, text: '', complete: true });
  t.equal(response.field('content-length'), '5');
  t.equal(received().method, 'HEAD');
});

t.test('an upload streams', async (t) => {
  const connection = await connectRaw(proxy.port);
  const [name, value] = Object.entries(auth)[0] ?? [];
  connection.write(
    `POST /orders HTTP/1.1\r\nHost: a\r\n${String(name)}: ${String(value)}\r\nContent-Length: 10\r\n\r\nfirst`,
  );
  const before = proxy.receiver.requests.length;
  await until(
    'the first half is at the receiver',
    () => proxy.receiver.requests.length > 0 && received().body.toString() === 'first',
  );
  t.equal(received().complete, false);
  connection.write('again');
  t.equal((await connection.readResponse())?.status, 200);
  t.equal(received().body.toString(), 'firstagain');
  t.ok(proxy.receiver.requests.length >= before);
  connection.end();
});

t.test('a response streams, event by event', async (t) => {
  const connection = await connectRaw(proxy.port);
  connection.write(requestBytes(proxy.port, { path: '/orders', headers: { ...auth, Accept: 'text/event-stream' } }));
  const answer = await nextAnswer();
  answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for (const event of ['data: 1\n\n', 'data: 2\n\n']) {
    answer.write(event);
    await until(`${event.trim()} has arrived before the next is written`, () =>
      connection.pending().toString().includes(event),
    );
  }
  answer.end();
  const response = await connection.readResponse();
  proxy.receiver.behave(null);
  t.equal(response?.text, 'data: 1\n\ndata: 2\n\n');
  t.equal(response?.field('content-type'), 'text/event-stream');
  connection.end();
});

t.test('100 Continue only after the checks', async (t) => {
  const connection = await connectRaw(proxy.port);
  const before = proxy.receiver.requests.length;
  const expecting = { Expect: '100-continue', 'Content-Length': '4' };
  connection.write(requestBytes(proxy.port, { method: 'POST', path: '/orders', headers: { ...auth, ...expecting } }));
  t.equal((await connection.readResponse())?.status, 100);
  connection.write('body');
  t.equal((await connection.readResponse())?.status, 200);
  t.equal(received().body.toString(), 'body');
  t.same(received().field('expect'), [], 'the expectation ends here');
  connection.end();

  for (const [headers, path, refusal] of [
    [expecting, '/orders', refusals.unauthorized],
    [{ ...expecting, ...proxy.authorization({ permissions: [] }) }, '/orders', refusals.forbidden],
    [{ ...expecting, ...auth }, '/orders//', refusals.badTarget],
    [{ ...expecting, ...auth, 'Content-Length': '99999999' }, '/orders', refusals.bodyTooLarge],
    [{ ...auth, Expect: 'something-else', 'Content-Length': '4' }, '/orders', refusals.expectation],
  ] as const) {
    const responses = await proxy.send(requestBytes(proxy.port, { method: 'POST', path, headers }), {
      untilClosed: true,
    });
    t.equal(responses.length, 1, 'one answer, no 100, and a close, since the body may or may not follow');
    const [response] = responses;
    if (response !== undefined) checkRefusal(t, response, refusal, `expecting, ${path}`);
  }
  t.equal(proxy.receiver.requests.length, before + 1);
});

t.test('upgrades are refused, h2c is ignored', async (t) => {
  const before = proxy.receiver.requests.length;
  const websocket = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  };
  checkRefusal(
    t,
    await proxy.request({ path: '/orders', headers: { ...auth, ...websocket } }),
    refusals.badRequest,
    'a WebSocket',
  );
  t.ok(
    [400, 401].includes((await proxy.request({ path: '/orders', headers: websocket })).status),
    'a WebSocket without a credential',
  );
  t.equal(proxy.receiver.requests.length, before);
  // The JDK's client sends this with every plaintext request.
  const h2c = {
    Connection: 'Upgrade, HTTP2-Settings',
    Upgrade: 'h2c',
    'HTTP2-Settings': 'AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
  };
  const response = await proxy.request({
    method: 'POST',
    path: '/orders',
    headers: { ...auth, ...h2c },
    body: 'payload',
  });
  t.equal(response.status, 200);
  t.equal(received().body.toString(), 'payload');
  t.same([...received().field('upgrade'), ...received().field('http2-settings')], []);
  checkRefusal(
    t,
    await proxy.request({ method: 'POST', path: '/orders', headers: h2c, body: 'payload' }),
    refusals.unauthorized,
    'h2c without a credential',
  );
});

t.test('interim responses do not disturb the final one', async (t) => {
  const interims: readonly (readonly [string, (res: ServerResponse) => void])[] = [
    [
      '102',
      (res) => {
        res.writeProcessing();
      },
    ],
    [
      '103',
      (res) => {
        res.writeEarlyHints({ link: '</a.css>; rel=preload' });
      },
    ],
    [
      '103 twice',
      (res) => {
        res.writeEarlyHints({ link: '</a>; rel=preload' });
        res.writeEarlyHints({ link: '</b>; rel=preload' });
      },
    ],
  ];
  for (const [name, interim] of interims) {
    proxy.receiver.behave((_req, res) => {
      interim(res);
      res.end('final');
    });
    const responses = await proxy.send(requestBytes(proxy.port, { path: '/orders', headers: auth }));
    t.match(responses.at(-1), { status: 200, text: 'final', complete: true }, name);
    t.ok(
      responses.slice(0, -1).every(({ status }) => status === 102 || status === 103),
      name,
    );
  }
  proxy.receiver.behave(null);
});

t.test('a request id is kept, or made, and returned', async (t) => {
  const kept = ['a', 'A.b_c-9', 'x'.repeat(128), '00000000-0000-4000-8000-000000000000'];
  for (const id of kept) {
    const response = await proxy.request({ path: '/orders', headers: { ...auth, 'X-Request-Id': id } });
    t.equal(response.field('x-request-id'), id);
    t.same(received().field('x-request-id'), [id]);
  }
  for (const id of ['', 'a b', 'x'.repeat(129), 'a\tb', 'caf\xe9', '"a"', 'a,b', '<script>', '${jndi:x}', null]) {
    const response = await proxy.request({
      path: '/orders',
      headers: { ...auth, ...(id === null ? {} : { 'X-Request-Id': id }) },
    });
    const made = response.field('x-request-id');
    t.match(made, /^[A-Za-z0-9._-]{1,128}$/, `instead of ${String(id)}`);
    t.not(made, id);
    t.same(received().field('x-request-id'), [made]);
  }
});

t.test('traceparent is passed on, or made', async (t) => {
  const good = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  await proxy.request({ path: '/orders', headers: { ...auth, traceparent: good, tracestate: 'a=1' } });
  t.match(
    received().field('traceparent').join(),
    /^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$/,
    'the trace goes on',
  );
  t.same(received().field('tracestate'), ['a=1']);
  for (const bad of [
    null,
    '',
    'x',
    good.toUpperCase(),
    `${good}-extra`,
    good.replace('00-', 'ff-'),
    '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
  ]) {
    await proxy.request({ path: '/orders', headers: { ...auth, ...(bad === null ? {} : { traceparent: bad }) } });
    t.match(
      received().field('traceparent').join(),
      /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/,
      `instead of ${String(bad)}`,
    );
    t.notMatch(received().field('traceparent').join(), /4bf92f3577b34da6a3ce929d0e0e4736.*4bf92|^00-0{32}/);
  }
});

t.test('a caller that leaves takes its request along', async (t) => {
  const connection = await connectRaw(proxy.port);
  connection.write(requestBytes(proxy.port, { path: '/orders', headers: auth }));
  const answer = await nextAnswer();
  let gone = false;
  answer.on('close', () => {
    gone = true;
  });
  connection.end();
  await until('the receiver notices', () => gone);
  proxy.receiver.behave(null);
  t.equal((await proxy.request({ path: '/orders', headers: auth })).status, 200, 'the next one passes');
});

t.test('a broken body never reaches the upstream as a whole request', async (t) => {
  const [name, value] = Object.entries(auth)[0] ?? [];
  const heads = [
    ['Content-Length: 10', 'first'],
    ['Transfer-Encoding: chunked', '5\r\nfirst\r\n'],
  ] as const;
  for (const [framing, part] of heads) {
    const connection = await connectRaw(proxy.port);
    connection.write(
      `POST /orders HTTP/1.1\r\nHost: a\r\n${String(name)}: ${String(value)}\r\n${framing}\r\n\r\n${part}`,
    );
    await until(
      'the beginning is at the receiver',
      () => received().body.toString() === 'first' && !received().complete,
    );
    connection.end();
    await until('it is broken off there', () => received().aborted);
    t.equal(received().complete, false, framing);
  }
});

t.test('a response that comes before the end of the upload reaches the caller', async (t) => {
  const connection = await connectRaw(proxy.port);
  const [name, value] = Object.entries(auth)[0] ?? [];
  proxy.receiver.behave((_req, res) => res.writeHead(413, { Connection: 'close' }).end('enough'));
  connection.write(
    `POST /orders HTTP/1.1\r\nHost: a\r\n${String(name)}: ${String(value)}\r\nContent-Length: 1000\r\n\r\nfirst`,
  );
  const response = await connection.readResponse();
  proxy.receiver.behave(null);
  t.match(response, { status: 413, text: 'enough' });
  await connection.closed;
  t.pass('and the connection is closed: what is left of the body is no request');
});

checkSilence(t, proxy);
