/** Responses that a caller does not take yet: its other requests on the connection are served all the same. */
import { once } from 'node:events';
import t from 'tap';
import { ask, connectHttp2 } from '../../../support/http2-client.js';
import { connectFrames, flags, frame, frameTypes, headers, uint32 } from '../../../support/http2-frames.js';
import { until } from '../../../support/until.js';
import { startProxy } from '../../harness.js';
import { startReservingProxy } from '../../idempotency/reserving-proxy.js';

t.test('300 large responses that no window is opened for, and then a small one', async (t) => {
  const proxy = await startProxy(t, {
    config: {
      listen: { http2: true, max_streams: 400 },
      upstream: { max_connections: 400 },
    },
  });
  proxy.receiver.behave((_req, res) => res.end(Buffer.alloc(1_000_000)));
  const session = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`, { settings: { initialWindowSize: 0 } });
  const headers = { ':path': '/orders', authorization: proxy.authorization().Authorization };
  let heads = 0;
  for (let i = 0; i < 300; i += 1) {
    const stream = session.request(headers);
    stream.on('error', () => undefined).on('response', () => (heads += 1));
  }
  await until('all are answered', () => heads === 300);
  proxy.receiver.behave((_req, res) => res.writeHead(204).end());
  t.equal((await ask(session, headers)).status, 204);
});

t.test('45 kept responses of 256 KiB that no window is opened for, and then a small one', async (t) => {
  const proxy = await startReservingProxy(t, { config: { listen: { http2: true } } });
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => res.end(Buffer.alloc(250_000)));
  });
  const session = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`, { settings: { initialWindowSize: 0 } });
  const headers = {
    ':path': '/orders',
    ':method': 'POST',
    authorization: proxy.authorization().Authorization,
  };
  let heads = 0;
  for (let i = 0; i < 45; i += 1) {
    const stream = session.request({ ...headers, 'idempotency-key': `k${String(i)}` });
    stream.on('error', () => undefined).on('response', () => (heads += 1));
    stream.end('body');
  }
  await until('all are answered', () => heads === 45);
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => res.writeHead(204).end());
  });
  t.equal((await ask(session, { ...headers, 'idempotency-key': 'small' }, 'body')).status, 204);
});

t.test('a large kept response that is taken slowly, and one that is not', async (t) => {
  const config = {
    listen: { http2: true },
    upstream: { idle_timeout: '3s' },
    routes: [
      {
        ...{ name: 'create', methods: ['POST'], path: '/orders', subjects: ['checkout'], permissions: [] },
        idempotency: { mode: 'required', max_stored_response: '1MiB' },
      },
    ],
  };
  const proxy = await startReservingProxy(t, { config });
  // At 160 KiB a second it takes twice that time.
  const size = 1_000_000;
  proxy.receiver.behave((req, res) => {
    req.resume().on('end', () => res.end(Buffer.alloc(size)));
  });
  const client = await connectFrames(t, proxy.port, [[4, 65_535]]);
  const { Authorization: authorization } = proxy.authorization();
  const fields = (key: string): readonly string[] => [
    ...[':method', 'POST', ':scheme', 'http', ':path', '/orders', ':authority', 'a'],
    ...['authorization', authorization, 'idempotency-key', key],
  ];
  const of = (stream: number, type: number): typeof client.frames =>
    client.frames.filter((sent) => sent.stream === stream && sent.type === type);
  const isOver = (stream: number): boolean =>
    client.socket.closed ||
    of(stream, frameTypes.reset).length > 0 ||
    of(stream, frameTypes.data).some((sent) => (sent.flags & flags.endStream) !== 0);
  client.write(headers(1, fields('slow')));
  client.write(headers(3, fields('untaken')));
  client.write(frame(frameTypes.windowUpdate, 0, 0, uint32(2_000_000)));
  await until('both have begun', () => [1, 3].every((stream) => of(stream, frameTypes.data).length > 0));
  const taking = setInterval(() => client.write(frame(frameTypes.windowUpdate, 0, 1, uint32(16_384))), 100);
  t.teardown(() => clearInterval(taking));
  await until('both are over', () => isOver(1) && isOver(3), 20_000);
  t.same(of(1, frameTypes.reset), []);
  t.equal(
    of(1, frameTypes.data).reduce((sum, { payload }) => sum + payload.length, 0),
    size,
  );
  t.equal(of(3, frameTypes.reset).length, 1);
});

t.test('a caller with a good credential keeps its connection, however many responses it does not take', async (t) => {
  const proxy = await startProxy(t, {
    config: { listen: { http2: true, max_streams: 400 }, upstream: { max_connections: 400, idle_timeout: '1s' } },
  });
  proxy.receiver.behave((_req, res) => res.end('something'));
  const session = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`, { settings: { initialWindowSize: 0 } });
  const headers = { ':path': '/orders', authorization: proxy.authorization().Authorization };
  let closed = 0;
  for (let i = 0; i < 300; i += 1) {
    const stream = session.request(headers);
    stream.on('error', () => undefined).on('close', () => (closed += 1));
  }
  await until('all are broken off', () => closed === 300);
  proxy.receiver.behave((_req, res) => res.writeHead(204).end());
  t.equal((await ask(session, headers)).status, 204);
});

t.test('a response that is not taken ends with its stream, also where that is reset with NO_ERROR', async (t) => {
  const proxy = await startProxy(t, { config: { listen: { http2: true } } });
  proxy.receiver.behave((_req, res) => res.end(Buffer.alloc(1_000_000)));
  const session = await connectHttp2(t, `http://127.0.0.1:${proxy.port}`, { settings: { initialWindowSize: 0 } });
  const stream = session.request({ ':path': '/orders', authorization: proxy.authorization().Authorization });
  await once(
    stream.on('error', () => undefined),
    'response',
  );
  t.equal(proxy.server.counts().inFlight, 1);
  stream.close(0);
  await until('nothing is held', () => proxy.server.counts().inFlight + proxy.server.counts().streams === 0, 5_000);
});
