import type { ServerResponse } from 'node:http';
import { connect as connectTls } from 'node:tls';
import { connect } from 'node:net';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { connectRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';

const routes = [
  { name: 'any', methods: ['GET', 'POST'], path: '/**', subjects: ['checkout'], permissions: [], idempotency: 'none' },
];
const get = (bearer: string, path = '/a'): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${bearer}\r\n`;

t.test(
  'once a shutdown is announced every response closes its connection, and new ones are still served',
  async (t) => {
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
    for (const { bytes, status } of [
      { bytes: get(proxy.bearer()), status: 200 },
      { bytes: get(''), status: 401 },
    ]) {
      const fresh = await connectRaw(proxy.port);
      t.teardown(fresh.end);
      fresh.write(bytes);
      const response = await fresh.readResponse();
      t.same([response?.status, response?.field('connection')], [status, 'close']);
    }
  },
);

t.test('what is under way is finished, what is idle or silent is closed, and nothing new is accepted', async (t) => {
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
  const drained = proxy.server.drain(120_000).then(() => {
    isDrained = true;
  });
  await until('the port is closed', async () =>
    connectRaw(proxy.port).then(
      ({ end }) => {
        end();
        return false;
      },
      () => true,
    ),
  );
  const refused = connect(proxy.port, '127.0.0.1');
  const [error] = (await once(refused, 'error')) as [NodeJS.ErrnoException];
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
  await idle.closed;
  await silent.closed;
  t.equal(silent.pending().length, 0);
  t.same(proxy.server.counts(), { connections: 0, inFlight: 0, streams: 0 });
  t.same(
    proxy.records.map(({ reason }) => reason),
    [null, null, null, null, null],
  );
});

t.test(
  'a request that meets the shutdown on a kept connection is answered, and told that it is the last one',
  async (t) => {
    const proxy = await startProxy(t, { config: { routes } });
    const held: ServerResponse[] = [];
    proxy.receiver.behave((req, res) => {
      if (req.url === '/slow') held.push(res.writeHead(200, { 'Content-Length': '4' }));
      else res.end('ok');
    });
    const idle = await connectRaw(proxy.port);
    const unused = await connectRaw(proxy.port);
    const streaming = await connectRaw(proxy.port);
    for (const connection of [idle, unused, streaming]) t.teardown(connection.end);
    idle.write(get(proxy.bearer()));
    t.equal((await idle.readResponse())?.field('connection'), 'keep-alive');
    streaming.write(get(proxy.bearer(), '/slow'));
    await until('it is with the receiver', () => held.length === 1);
    held[0]?.write('fi');
    await until('its answer began, and says that another request may follow', () =>
      streaming.pending().includes('keep-alive'),
    );
    const drained = proxy.server.drain(120_000);
    await until('nothing more is accepted', async () =>
      connectRaw(proxy.port).then(
        ({ end }) => {
          end();
          return false;
        },
        () => true,
      ),
    );
    for (const connection of [idle, unused]) {
      connection.write(get(proxy.bearer()));
      const answer = await connection.readResponse();
      t.same([answer?.status, answer?.field('connection')], [200, 'close']);
      await connection.closed;
    }
    held[0]?.end('rs');
    t.equal((await streaming.readResponse())?.text, 'firs');
    streaming.write(get(proxy.bearer()));
    const answer = await streaming.readResponse();
    t.same([answer?.status, answer?.field('connection')], [200, 'close']);
    await drained;
  },
);

t.test('heads and bodies that drip have a short time in a drain', async (t) => {
  const proxy = await startProxy(t, {
    config: { listen: { header_timeout: '60s', body_idle_timeout: '60s' }, routes },
  });
  proxy.receiver.behave(() => undefined);
  const head = await connectRaw(proxy.port);
  head.write('GET /a HTTP/1.1\r\nHost: a\r\n');
  const dripping = await connectRaw(proxy.port);
  const stalled = await connectRaw(proxy.port);
  for (const connection of [dripping, stalled]) {
    t.teardown(connection.end);
    connection.write(`POST /b HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: 100000\r\n\r\n01234`);
  }
  t.teardown(head.end);
  await until('they are there', () => proxy.server.counts().inFlight === 2);
  const drip = setInterval(() => {
    dripping.write('x');
  }, 100);
  t.teardown(() => clearInterval(drip));
  const drained = proxy.server.drain(120_000);
  for (const connection of [head, dripping, stalled]) {
    const answer = await connection.readResponse();
    t.equal(answer?.status, 408);
    await connection.closed;
  }
  await drained;
  t.same(proxy.records.map(({ reason }) => reason).sort(), ['body_timeout', 'body_timeout', 'header_timeout']);
});

t.test('a body that comes fast enough has the whole grace', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  proxy.receiver.behave(null);
  const uploading = await connectRaw(proxy.port);
  t.teardown(uploading.end);
  const seconds = 7;
  uploading.write(`POST /b HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: ${String(seconds * 4_000)}\r\n\r\n`);
  await until('it is there', () => proxy.server.counts().inFlight === 1);
  const drained = proxy.server.drain(120_000);
  for (let i = 0; i < seconds; i += 1) {
    await sleep(1_000);
    uploading.write('x'.repeat(4_000));
  }
  t.equal((await uploading.readResponse())?.status, 200);
  await drained;
});

t.test('at the end of the grace all that is left is ended', async (t) => {
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
  t.same(proxy.server.counts(), { connections: 0, inFlight: 0, streams: 0 });
  const told = await judged.readResponse();
  t.equal(told?.status, 503, 'who was not sent on is told so');
  t.match(told?.text, 'urn:sallyport:shutting-down');
  await judged.closed;
  await partial.closed;
});

t.test('a stream without end does not outlive the grace, and is not ended as if it were whole', async (t) => {
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

t.test('connections in the midst of a TLS handshake do not hold it up', async (t) => {
  const { server } = certificates(t);
  const proxy = await startProxy(t, {
    config: { listen: { tls: { cert_file: '/tls/tls.crt', key_file: '/tls/tls.key' }, header_timeout: '60s' }, routes },
    tls: { cert: server.cert, key: server.key, clientCa: null, clientAuth: 'require' },
  });
  const silent = connect(proxy.port, '127.0.0.1');
  const secure = connectTls({ port: proxy.port, host: '127.0.0.1', rejectUnauthorized: false });
  secure.on('error', () => undefined);
  await once(secure, 'secureConnect');
  await until('both are there', () => proxy.server.counts().connections === 2);
  await proxy.server.drain(120_000);
  t.same(proxy.server.counts(), { connections: 0, inFlight: 0, streams: 0 });
  silent.destroy();
  secure.destroy();
});

t.test('a drain before anything was served, and a second one, resolve as well', async (t) => {
  const proxy = await startProxy(t, { config: { routes } });
  await proxy.server.drain(0);
  await proxy.server.drain(0);
  t.same(proxy.server.counts(), { connections: 0, inFlight: 0, streams: 0 });
});
