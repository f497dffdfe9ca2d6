import type { ServerResponse } from 'node:http';
import { connect as connectTls } from 'node:tls';
import { connect } from 'node:net';
import { once } from 'node:events';
import t from 'tap';
import { certificates } from '../support/certificates.js';
import { connectRaw } from '../support/raw-client.js';
import { until } from '../support/until.js';
import { startProxy } from './harness.js';

const routes = [{ name: 'any', methods: ['GET', 'POST'], path: '/**', subjects: ['checkout'], permissions: [], idempotency: 'none' }];
const get = (bearer: string, path = '/a'): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${bearer}\r\n`;

t.test('R-60: once a shutdown is announced every answer closes its connection, and new ones are still served', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const kept = await connectRaw(proxy.port);
  t.teardown(kept.end);
  kept.write(get(proxy.bearer()));
  t.equal((await kept.readResponse())?.field('connection'), 'keep-alive');
  proxy.server.announceShutdown();
  kept.write(get(proxy.bearer()));
  const last = await kept.readResponse();
  t.same([last?.status, last?.field('connection')], [200, 'close']);
  await kept.closed;
  for (const { bytes, status } of [{ bytes: get(proxy.bearer()), status: 200 }, { bytes: get(''), status: 401 }]) {
    const fresh = await connectRaw(proxy.port);
    t.teardown(fresh.end);
    fresh.write(bytes);
    const response = await fresh.readResponse();
    t.same([response?.status, response?.field('connection')], [status, 'close']);
  }
});

t.test('R-60: what is under way is finished, what is idle or silent is closed, and nothing new is accepted', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  const idle = await connectRaw(proxy.port);
  idle.write(get(proxy.bearer()));
  await idle.readResponse();
  const silent = await connectRaw(proxy.port);
  const held: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => held.push(res));
  const busy = await connectRaw(proxy.port);
  const uploading = await connectRaw(proxy.port);
  const streaming = await connectRaw(proxy.port);
  const beginning = await connectRaw(proxy.port);
  for (const connection of [busy, uploading, streaming, beginning]) t.teardown(connection.end);
  busy.write(get(proxy.bearer()));
  uploading.write(`POST /b HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 10\r\n\r\n01234`);
  streaming.write(get(proxy.bearer(), '/c'));
  await until('three are with the receiver', () => held.length === 3);
  const answerOf = (path: string): ServerResponse | undefined => held.find(({ req }) => req.url === path);
  answerOf('/c')?.write('first ');
  await until('the stream began', () => streaming.pending().includes('first '));
  const [head, rest] = [get(proxy.bearer()).slice(0, 20), get(proxy.bearer()).slice(20)];
  beginning.write(head);
  await until('the beginning arrived', () => proxy.server.counts().connections === 6);

  let isDrained = false;
  const drained = proxy.server.drain(20_000).then(() => {
    isDrained = true;
  });
  await idle.closed;
  await silent.closed;
  t.equal(silent.pending().length, 0);
  const refused = connect(proxy.port, '127.0.0.1');
  const [error] = await once(refused, 'error') as [NodeJS.ErrnoException];
  t.equal(error.code, 'ECONNREFUSED');

  answerOf('/a')?.end('done');
  const done = await busy.readResponse();
  t.same([done?.status, done?.text, done?.field('connection')], [200, 'done', 'close']);
  uploading.write('56789');
  await until('the upload is whole', () => proxy.receiver.requests.find(({ target }) => target === '/b')?.complete);
  answerOf('/b')?.end('uploaded');
  t.equal((await uploading.readResponse())?.text, 'uploaded');
  answerOf('/c')?.end('last');
  t.equal((await streaming.readResponse())?.text, 'first last');
  t.equal(isDrained, false, 'one request is still being sent');
  proxy.receiver.behave(null);
  beginning.write(rest);
  t.equal((await beginning.readResponse())?.status, 200);
  await drained;
  t.same(proxy.server.counts(), { connections: 0, inFlight: 0 });
  t.same(proxy.records.map(({ reason }) => reason), [null, null, null, null, null]);
});

t.test('R-60: at the end of the grace all that is left is ended', async (t) => {
  const proxy = await startProxy(t, {
    config: { routes },
    find: async () => new Promise(() => undefined),
  });
  const judged = await connectRaw(proxy.port);
  judged.write(get(proxy.bearer()));
  const partial = await connectRaw(proxy.port);
  partial.write('GET /a HT');
  await until('both are there', () => proxy.server.counts().connections === 2);
  await proxy.server.drain(200);
  t.same(proxy.server.counts(), { connections: 0, inFlight: 0 });
  const told = await judged.readResponse();
  t.equal(told?.status, 503, 'who was not sent on is told so');
  t.match(told?.text, 'urn:sallyport:shutting-down');
  await judged.closed;
  await partial.closed;
});

t.test('R-60: a stream without end does not outlive the grace, and is not ended as if it were whole', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  proxy.receiver.behave((_req, res) => {
    const timer = setInterval(() => res.write('tick'), 10);
    res.on('close', () => {
      clearInterval(timer);
    });
  });
  const connection = await connectRaw(proxy.port);
  connection.write(get(proxy.bearer()));
  await until('it streams', () => connection.pending().includes('tick'));
  await proxy.server.drain(200);
  const response = await connection.readResponse();
  t.equal(response?.complete, false);
  await until('the receiver is told', () => proxy.receiver.open() === 0);
  await until('it is recorded', () => proxy.records.length === 1);
});

t.test('R-60: connections in the midst of a TLS handshake do not hold it up', async (t) => {
  const { server } = certificates(t);
  const proxy = await startProxy(t, {
    config: { listen: { tls: { cert_file: '/tls/tls.crt', key_file: '/tls/tls.key' } }, routes },
    tls: { cert: server.cert, key: server.key, clientCa: null, clientAuth: 'require' },
  });
  const silent = connect(proxy.port, '127.0.0.1');
  const secure = connectTls({ port: proxy.port, host: '127.0.0.1', rejectUnauthorized: false });
  secure.on('error', () => undefined);
  await once(secure, 'secureConnect');
  await until('both are there', () => proxy.server.counts().connections === 2);
  await proxy.server.drain(60_000);
  t.same(proxy.server.counts(), { connections: 0, inFlight: 0 });
  silent.destroy();
  secure.destroy();
});

t.test('a drain before anything was served, and a second one, resolve as well', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  await proxy.server.drain(0);
  await proxy.server.drain(0);
  t.same(proxy.server.counts(), { connections: 0, inFlight: 0 });
});
