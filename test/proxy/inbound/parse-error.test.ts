import t from 'tap';
import { sendRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { parseErrorDenial } from '../../../src/proxy/inbound/parse-error.js';
import { startProxy } from '../harness.js';

t.test('what the parser refuses is answered as a problem, logged and counted, and nothing is sent on', async (t) => {
  const proxy = await startProxy(t);
  const head = `POST /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}`;
  const cases = [
    { name: 'no request at all', bytes: 'hello\r\n\r\n', reason: 'method_malformed' },
    { name: 'a method of lower case', bytes: 'get / HTTP/1.1\r\nHost: a\r\n\r\n', reason: 'method_malformed' },
    { name: 'a space before the colon', bytes: `${head}Content-Length : 2\r\n\r\nhi`, reason: 'field_malformed' },
    { name: 'a folded field', bytes: `${head}X-A: b\r\n c\r\nContent-Length: 2\r\n\r\nhi`, reason: 'field_malformed' },
    { name: 'a NUL', bytes: `${head}X-A: \0\r\n\r\n`, reason: 'field_malformed' },
    { name: 'a bare LF', bytes: 'GET /orders HTTP/1.1\nHost: a\n\n', reason: /^(framing|http_version)$/ },
    {
      name: 'length and chunks',
      bytes: `${head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      reason: 'framing',
    },
    { name: 'two lengths', bytes: `${head}Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi`, reason: 'framing' },
    { name: 'a length with a sign', bytes: `${head}Content-Length: +2\r\n\r\nhi`, reason: 'framing' },
    { name: 'an empty length', bytes: `${head}Content-Length: \r\n\r\nhi`, reason: 'framing' },
    {
      name: 'chunks twice',
      bytes: `${head}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      reason: /^(framing|field_repeated)$/,
    },
    { name: 'chunks inside', bytes: `${head}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`, reason: 'framing' },
    { name: 'gzip and chunks', bytes: `${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, reason: 'framing' },
    {
      name: 'a chunk size that is none',
      bytes: `${head}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n`,
      reason: 'framing',
    },
    {
      name: 'a chunk size with a sign',
      bytes: `${head}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n`,
      reason: 'framing',
    },
    {
      name: 'a chunk size beyond all numbers',
      bytes: `${head}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n`,
      reason: 'framing',
    },
    {
      name: 'a chunk that is longer than it says',
      bytes: `${head}Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n`,
      reason: 'framing',
    },
    {
      name: 'a space in the target',
      bytes: 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n',
      reason: /^(framing|target_malformed|http_version)$/,
    },
    { name: 'no Host', bytes: `GET /orders HTTP/1.1\r\n${proxy.bearer()}\r\n`, reason: 'host_malformed' },
    { name: 'HTTP/2', bytes: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', reason: 'http_version' },
  ];
  for (const [index, { name, bytes, reason }] of cases.entries()) {
    const responses = await sendRaw(proxy.port, bytes, { untilClosed: true });
    t.same(
      responses.map(({ status }) => status),
      [400],
      name,
    );
    t.equal(responses[0]?.field('content-type'), 'application/problem+json', name);
    t.equal(responses[0]?.field('proxy-status'), 'sallyport; error=http_request_error', name);
    t.match(responses[0]?.text, '"status":400}', name);
    await until('it is recorded', () => proxy.records.length === index + 1);
    t.match(proxy.records[index], { decision: 'denied', status: 400 }, name);
    t.match(proxy.records[index]?.reason, reason, name);
  }
  t.notOk(
    proxy.receiver.requests.some(({ complete }) => complete),
    'no receiver took any of it for a request',
  );
  t.equal(proxy.counted.denials.length, cases.length);
  t.equal(proxy.server.counts().inFlight, 0);
});

t.test('a request whose body proves broken is not carried out', async (t) => {
  const routes = [
    { name: 'get', methods: ['GET'], path: '/orders', subjects: ['checkout'], permissions: [], body: 'allow' },
  ];
  const proxy = await startProxy(t, { config: { routes } });
  const bytes = `GET /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Transfer-Encoding: chunked\r\n\r\n5\r\nhel`;
  const [response] = await sendRaw(proxy.port, bytes, { finish: true });
  t.equal(response?.status, 400);
  t.notOk(proxy.receiver.requests.some(({ complete }) => complete));
});

t.test('nobody is answered where the connection or its TLS failed', (t) => {
  for (const code of ['ECONNRESET', 'EPIPE', 'ERR_SSL_HTTP_REQUEST', 'ERR_TLS_HANDSHAKE_TIMEOUT', undefined]) {
    t.equal(parseErrorDenial(Object.assign(new Error(), code === undefined ? {} : { code })), null, String(code));
  }
  t.same(parseErrorDenial(Object.assign(new Error(), { code: 'HPE_SOMETHING_NEW' })), { reason: 'framing' });
  t.end();
});
