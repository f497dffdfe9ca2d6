import t from 'tap';
import { certificates } from './certificates.js';
import { startJwksServer } from './jwks-server.js';
import { connectRaw, request, sendRaw } from './raw-client.js';
import { readResponse } from './raw-response.js';
import { startUpstreamServer } from './upstream-server.js';
import { until } from './until.js';

await t.test('reads every framing of a response', (t) => {
  const rows = [
    {
      name: 'length',
      bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP',
      body: 'ok',
      complete: true,
      rest: 'HTTP',
    },
    {
      name: 'chunked',
      bytes: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
      body: 'ok',
      complete: true,
      rest: '',
    },
    { name: 'until close', bytes: 'HTTP/1.1 200 OK\r\n\r\nok', body: 'ok', complete: true, rest: '' },
    { name: 'cut off', bytes: 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok', body: 'ok', complete: false, rest: '' },
    { name: 'no content', bytes: 'HTTP/1.1 204 No Content\r\n\r\n', body: '', complete: true, rest: '' },
  ];
  for (const row of rows) {
    const read = readResponse(Buffer.from(row.bytes), true, false);
    t.equal(read?.response.complete, row.complete, row.name);
    t.equal(row.bytes.slice(read?.length), row.rest, row.name);
    t.equal(read?.response.text, row.body, row.name);
  }
  t.equal(
    readResponse(Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok'), false, false),
    null,
    'more to come',
  );
  t.equal(
    readResponse(Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n'), false, true)?.response.complete,
    true,
    'HEAD',
  );
  t.end();
});

await t.test('sends bytes as they are, to the upstream that keeps them', async (t) => {
  const receiver = await startUpstreamServer(t);
  const bytes = 'POST /a//b HTTP/1.1\r\nHost: x\r\nX-Odd:  1 \r\nContent-Length: 2\r\n\r\nhi';
  const [response] = await sendRaw(receiver.port, bytes);
  t.match(response, { status: 200, complete: true });
  const [received] = receiver.requests;
  t.match(received, { method: 'POST', target: '/a//b', complete: true, aborted: false, connection: 1 });
  t.same(received?.rawHeaders, ['Host', 'x', 'X-Odd', '1', 'Content-Length', '2']);
  t.same(received?.field('x-odd'), ['1']);
  t.equal(received?.body.toString(), 'hi');

  receiver.behave((_req, res) => res.writeHead(418).end());
  t.equal((await request(receiver.port, { path: '/', headers: [['X', '1']] })).status, 418);
});

await t.test('reads several responses of one connection, 100 included', async (t) => {
  const receiver = await startUpstreamServer(t);
  const connection = await connectRaw(receiver.port);
  connection.write('POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n');
  t.equal((await connection.readResponse())?.status, 100);
  connection.write('xHEAD /2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  t.equal((await connection.readResponse())?.status, 200);
  t.match(await connection.readResponse({ bodyless: true }), { status: 200, complete: true });
  await connection.closed;
  t.equal(await connection.readResponse(), null);
  await until('no connection left', () => receiver.open() === 0);
});

await t.test('speaks TLS', async (t) => {
  const { server, ca } = certificates(t);
  const receiver = await startUpstreamServer(t, { tls: { cert: server.cert, key: server.key } });
  t.equal((await request(receiver.port, { path: '/' }, { tls: { ca: ca.cert, servername: 'localhost' } })).status, 200);
  t.equal(receiver.connections(), 1);
});

await t.test('counts the requests for keys', async (t) => {
  const jwks = await startJwksServer(t);
  const { text } = await request(jwks.port, { path: '/auth/jwt/jwks.json' });
  t.match(JSON.parse(text), { keys: [{ kid: 'd-1', alg: 'RS256', use: 'sig', kty: 'RSA' }] });
  jwks.setKeys([]);
  t.equal((await request(jwks.port, { path: '/auth/jwt/jwks.json' })).text, '{"keys":[]}');
  t.equal(jwks.hits(), 2);
});
