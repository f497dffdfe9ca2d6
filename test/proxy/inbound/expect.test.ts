import t from 'tap';
import { connectRaw, sendRaw } from '../../support/raw-client.js';
import { startProxy } from '../harness.js';

const head = (bearer: string, fields: string): string =>
  `POST /orders HTTP/1.1\r\nHost: a\r\n${bearer}Expect: 100-continue\r\n${fields}\r\n`;

t.test('100 Continue comes after the checks', async (t) => {
  const proxy = await startProxy(t);
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(head(proxy.bearer(), 'Content-Length: 5\r\n'));
  t.equal((await connection.readResponse())?.status, 100);
  connection.write('hello');
  t.equal((await connection.readResponse())?.status, 200);
  t.equal(proxy.receiver.requests[0]?.body.toString(), 'hello');
  t.same(proxy.receiver.requests[0]?.field('expect'), []);
  connection.write(head(proxy.bearer(), 'Transfer-Encoding: chunked\r\n'));
  t.equal((await connection.readResponse())?.status, 100, 'again on the same connection');
  connection.write('2\r\nhi\r\n0\r\n\r\n');
  t.equal((await connection.readResponse())?.status, 200);
});

t.test('what is refused is refused without it', async (t) => {
  const proxy = await startProxy(t);
  const cases = [
    { name: 'no credential', bytes: head('', 'Content-Length: 5\r\n'), status: 401 },
    { name: 'no permission', bytes: head(proxy.bearer({ permissions: [] }), 'Content-Length: 5\r\n'), status: 403 },
    { name: 'too large', bytes: head(proxy.bearer(), 'Content-Length: 50000000\r\n'), status: 413 },
    {
      name: 'another expectation',
      bytes: head(proxy.bearer(), 'Content-Length: 5\r\n').replace('100-continue', '200-ok'),
      status: 417,
    },
    {
      name: 'one more expectation',
      bytes: head(proxy.bearer(), 'Content-Length: 5\r\n').replace('100-continue', '100-continue, x'),
      status: 417,
    },
  ];
  for (const { name, bytes, status } of cases) {
    const responses = await sendRaw(proxy.port, bytes, { untilClosed: true });
    t.same(
      responses.map((response) => response.status),
      [status],
      name,
    );
    t.match(responses[0]?.field('content-type'), 'application/problem+json', name);
    t.equal(responses[0]?.field('connection'), 'close', name);
  }
  t.equal(proxy.receiver.requests.length, 0);
});

t.test('a body is not asked for while the upstream cannot be reached', async (t) => {
  const proxy = await startProxy(t, { upstreamUrl: 'http://127.0.0.1:1' });
  const responses = await sendRaw(proxy.port, head(proxy.bearer(), 'Content-Length: 5\r\n'), { untilClosed: true });
  t.same(
    responses.map((response) => response.status),
    [503],
  );
});

t.test('a body that comes unasked is taken all the same', async (t) => {
  const proxy = await startProxy(t);
  const responses = await sendRaw(proxy.port, `${head(proxy.bearer(), 'Content-Length: 5\r\n')}hello`);
  t.equal(responses.at(-1)?.status, 200);
  t.equal(proxy.receiver.requests[0]?.body.toString(), 'hello');
});
