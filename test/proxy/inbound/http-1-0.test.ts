import t from 'tap';
import { connectRaw, sendRaw } from '../../support/raw-client.js';
import { startProxy } from '../harness.js';

t.test('HTTP/1.0 is refused, unless it is allowed', async (t) => {
  for (const http10 of ['refuse', 'allow']) {
    const proxy = await startProxy(t, { config: { listen: { http_1_0: http10 } } });
    const good = proxy.bearer();
    const cases = [
      { name: 'GET', bytes: `GET /orders HTTP/1.0\r\nHost: a\r\n${good}\r\n`, status: 200 },
      { name: 'POST', bytes: `POST /orders HTTP/1.0\r\nHost: a\r\n${good}Content-Length: 2\r\n\r\nhi`, status: 200 },
      {
        name: 'an expectation, which it does not have',
        bytes: `POST /orders HTTP/1.0\r\nHost: a\r\n${good}Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi`,
        status: 200,
      },
      { name: 'no Host', bytes: `GET /orders HTTP/1.0\r\n${good}\r\n`, status: 400 },
      { name: 'two Hosts', bytes: `GET /orders HTTP/1.0\r\nHost: a\r\nHost: a\r\n${good}\r\n`, status: 400 },
      {
        name: 'chunks',
        bytes: `POST /orders HTTP/1.0\r\nHost: a\r\n${good}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
        status: 400,
      },
    ];
    for (const { name, bytes, status } of cases) {
      const responses = await sendRaw(proxy.port, bytes, { untilClosed: true });
      t.same(
        responses.map((response) => response.status),
        [http10 === 'refuse' ? 400 : status],
        `${http10}: ${name}`,
      );
    }
  }
});

t.test('other versions are refused always', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { http_1_0: 'allow' } } });
  for (const version of ['HTTP/0.9', 'HTTP/2.0', 'HTTP/1.2', 'HTTP/3.0', 'HTTP/1.1.1', 'http/1.1', 'ICE/1.0']) {
    const [response] = await sendRaw(proxy.port, `GET /healthz ${version}\r\nHost: a\r\n\r\n`, { untilClosed: true });
    t.equal(response?.status, 400, version);
  }
  const [bare] = await sendRaw(proxy.port, 'GET /healthz\r\n\r\n', { untilClosed: true });
  t.equal(bare?.status, 400, 'HTTP/0.9 in its own form');
  t.equal(proxy.receiver.requests.length, 0);
});

t.test(
  'a response to HTTP/1.0 has no chunks, ends with its connection, and the upstream is spoken to in 1.1',
  async (t) => {
    const proxy = await startProxy(t, { config: { listen: { http_1_0: 'allow' } } });
    proxy.receiver.behave((_req, res) => {
      res.write('in ');
      res.end('chunks');
    });
    const [response] = await sendRaw(proxy.port, `GET /orders HTTP/1.0\r\nHost: a\r\n${proxy.bearer()}\r\n`, {
      untilClosed: true,
    });
    t.equal(response?.field('transfer-encoding'), null);
    t.equal(response?.text, 'in chunks');
    t.equal(proxy.receiver.requests[0]?.httpVersion, '1.1');
    t.same(proxy.receiver.requests[0]?.field('via'), ['1.0 sallyport']);
  },
);

t.test('a caller of HTTP/1.0 may keep its connection', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { http_1_0: 'allow' } } });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  for (let i = 0; i < 3; i++) {
    connection.write(`GET /orders HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n${proxy.bearer()}\r\n`);
    const response = await connection.readResponse();
    t.same([response?.status, response?.field('connection')], [200, 'keep-alive']);
  }
});
