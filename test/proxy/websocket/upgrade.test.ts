import t from 'tap';
import { connectRaw, sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';

t.test('an offer of HTTP/2 is ignored, and the body stays whole', async (t) => {
  const proxy = await startProxy(t);
  const offer = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n';
  const bodies = [
    { framing: 'Content-Length: 5\r\n\r\nhello', body: 'hello' },
    { framing: 'Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n', body: 'hello' },
    { framing: 'Content-Length: 0\r\n\r\n', body: '' },
  ];
  for (const [index, { framing, body }] of bodies.entries()) {
    const [response] = await sendRaw(
      proxy.port,
      `POST /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}${offer}${framing}`,
    );
    t.equal(response?.status, 200);
    const received = proxy.receiver.requests[index];
    t.equal(received?.body.toString(), body);
    t.same([...(received?.field('upgrade') ?? []), ...(received?.field('http2-settings') ?? [])], []);
    t.same(received?.field('connection'), [body === '' ? 'keep-alive' : 'close'], 'of our own connection');
  }
  const [get] = await sendRaw(proxy.port, `GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}${offer}\r\n`);
  t.equal(get?.status, 200);
});

t.test('no other protocol is switched to, and the connection ends', async (t) => {
  const proxy = await startProxy(t);
  const webSocket = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
  const upgrade = (protocol: string, bearer: string): string =>
    `GET /orders HTTP/1.1\r\nHost: a\r\n${bearer}Connection: Upgrade\r\nUpgrade: ${protocol}\r\n${webSocket}\r\n`;
  const cases = [
    { name: 'WebSocket', bytes: upgrade('websocket', proxy.bearer()), status: 400 },
    { name: 'WebSocket without a credential', bytes: upgrade('websocket', ''), status: 400 },
    { name: 'several', bytes: upgrade('h2c, websocket', proxy.bearer()), status: 400 },
    { name: 'TLS', bytes: upgrade('TLS/1.3', proxy.bearer()), status: 400 },
    { name: 'tunnel', bytes: `CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`, status: 405 },
    { name: 'tunnel to a path', bytes: `CONNECT /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`, status: 405 },
    { name: 'HTTP/2 with prior knowledge', bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', status: 400 },
    { name: 'TRACE', bytes: `TRACE /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`, status: 405 },
  ];
  for (const { name, bytes, status } of cases) {
    const responses = await sendRaw(proxy.port, bytes, { untilClosed: true });
    t.same(
      responses.map((response) => response.status),
      [status],
      name,
    );
    t.equal(responses[0]?.field('content-type'), 'application/problem+json', name);
    t.equal(responses[0]?.field('connection'), 'close', name);
    t.equal(responses[0]?.field('proxy-status'), 'sallyport; error=http_request_error', name);
  }
  await until('all are recorded', () => proxy.records.length === cases.length);
  t.ok(proxy.records.every(({ decision }) => decision === 'denied'));
  t.equal(proxy.receiver.requests.length, 0);
});

t.test('what follows a refused tunnel goes nowhere', async (t) => {
  const proxy = await startProxy(t);
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal((await connection.readResponse())?.status, 405);
  connection.write(`GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  await connection.closed;
  t.equal(connection.pending().length, 0);
  t.equal(proxy.receiver.requests.length, 0);
  t.match(proxy.records, [{ method: 'CONNECT', path: 'a:1', reason: 'method_not_allowed', status: 405 }]);
});

t.test('a refused tunnel that is reset ends nothing but itself', async (t) => {
  const proxy = await startProxy(t);
  for (let i = 0; i < 5; i++) {
    const connection = await connectRaw(proxy.port);
    connection.write('CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
    if (i % 2 === 0) await connection.readResponse();
    connection.socket.resetAndDestroy();
    await until('it is gone', () => proxy.server.counts().connections === 0);
  }
  const [response] = await sendRaw(proxy.port, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
  t.equal(response?.status, 200);
});
