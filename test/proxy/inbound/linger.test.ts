import t from 'tap';
import { connectRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';

const routes = [
  {
    name: 'post',
    methods: ['POST'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: [],
    max_body: '64MiB',
    idempotency: 'none',
  },
];

t.test('a caller that is still sending gets to read the refusal, and its connection is never used again', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const refused = [
    { name: '401', head: 'POST /orders HTTP/1.1\r\nHost: a\r\nContent-Length: 40000000\r\n\r\n', status: 401 },
    {
      name: '403',
      head: `POST /other HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 40000000\r\n\r\n`,
      status: 403,
    },
    {
      name: '413',
      head: `POST /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 400000000\r\n\r\n`,
      status: 413,
    },
    {
      name: '400',
      head: `POST /orders//x HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 40000000\r\n\r\n`,
      status: 400,
    },
  ];
  for (const { name, head, status } of refused) {
    const connection = await connectRaw(proxy.port);
    t.teardown(connection.end);
    let failure: unknown = null;
    connection.socket.on('error', (error) => {
      failure = error;
    });
    connection.write(head);
    connection.write(Buffer.alloc(6_000_000, 'GET /orders HTTP/1.1\r\nHost: a\r\n\r\n'));
    await until('everything is sent', () => connection.socket.writableLength === 0);
    const response = await connection.readResponse();
    t.equal(failure, null, `${name}: not reset while it sends`);
    t.equal(response?.status, status, name);
    t.ok(response?.complete, `${name}: whole`);
    t.equal(response?.field('connection'), 'close', name);
    await connection.closed;
    t.equal(connection.pending().length, 0, `${name}: nothing of what followed was taken for a request`);
  }
  t.equal(proxy.receiver.requests.length, 0);
  await until('no connection is left', () => proxy.server.counts().connections === 0);
});

t.test('a caller that neither reads nor stops is not waited for', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write('POST /orders HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  const trickle = setInterval(() => {
    connection.write('1\r\nx\r\n');
  }, 50);
  t.teardown(() => {
    clearInterval(trickle);
  });
  t.equal((await connection.readResponse())?.status, 401);
  await until('its connection is closed', () => proxy.server.counts().connections === 0);
});

t.test(
  'a response that the upstream gives before the end of the body is delivered, and the connection closed',
  async (t) => {
    const proxy = await startProxy(t, { config: { routes } });
    proxy.receiver.behave((_req, res) => {
      res.writeHead(422, { 'content-type': 'text/plain', 'x-early': 'yes' });
      res.end('no, thank you');
    });
    for (const framing of ['Content-Length: 40000000', 'Transfer-Encoding: chunked']) {
      const connection = await connectRaw(proxy.port);
      t.teardown(connection.end);
      connection.write(`POST /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}${framing}\r\n\r\n`);
      connection.write(framing.startsWith('T') ? '5\r\nhello\r\n' : 'hello');
      const response = await connection.readResponse();
      t.equal(response?.status, 422, framing);
      t.equal(response?.text, 'no, thank you');
      t.equal(response?.field('connection'), 'close');
      t.equal(response?.field('proxy-status'), null, "the answer is the receiver's");
      await connection.closed;
    }
    await until('nothing is in flight', () => proxy.server.counts().inFlight === 0);
    proxy.receiver.behave(null);
    const again = await connectRaw(proxy.port);
    t.teardown(again.end);
    again.write(`POST /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 2\r\n\r\nhi`);
    t.equal((await again.readResponse())?.status, 200, 'the receiver is asked over a sound connection');
  },
);

t.test('a response that begins before the body ends streams on beside it', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  proxy.receiver.behave((req, res) => {
    res.writeHead(200, { 'content-type': 'text/plain' });
    req.on('data', (chunk: Buffer) => res.write(chunk.toString('latin1').toUpperCase()));
    req.on('end', () => res.end('!'));
  });
  const connection = await connectRaw(proxy.port);
  t.teardown(connection.end);
  connection.write(`POST /orders HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 6\r\n\r\nabc`);
  await until('the first half is back', () => connection.pending().includes('ABC'));
  connection.write('def');
  t.equal((await connection.readResponse())?.text, 'ABCDEF!');
});

t.test('a caller that has ended its side is not waited for', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const connection = await connectRaw(proxy.port);
  connection.write('POST /orders HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc');
  connection.socket.end();
  const response = await connection.readResponse();
  t.ok(response?.status === 401 || response?.status === 400, 'refused for the credential or for the body that ended');
  await connection.closed;
  await until('its connection is gone', () => proxy.server.counts().connections === 0);
});
