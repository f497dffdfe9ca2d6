/** What log and metrics say of requests over HTTP/2, and of gRPC calls, whoever answered them. */
import type { OutgoingHttpHeaders } from 'node:http2';
import { status, type handleUnaryCall } from '@grpc/grpc-js';
import t from 'tap';
import { frameMessage } from '../../../src/decision/grpc/messages.js';
import { startGrpcServer } from '../../support/grpc-server.js';
import { ask, connectHttp2, type Http2Response } from '../../support/http2-client.js';
import { connectFrames, frame, frameTypes } from '../../support/http2-frames.js';
import { connectRaw } from '../../support/raw-client.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness } from '../harness.js';

const echo: handleUnaryCall<Buffer, Buffer> = (call, reply) => reply(null, call.request);
const missing: handleUnaryCall<Buffer, Buffer> = (_call, reply) => reply({ code: status.NOT_FOUND, details: 'none' });

async function start(t: Scope): Promise<Harness> {
  const server = await startGrpcServer(t, { '/shop.v1.Orders/Echo': echo, '/shop.v1.Orders/Missing': missing });
  const none = { mode: 'none', because: 'a test' };
  return startProxy(t, {
    upstreamUrl: `http://127.0.0.1:${String(server.port)}`,
    config: {
      listen: { http2: true },
      upstream: { http2: true },
      routes: [
        {
          name: 'orders',
          grpc: 'shop.v1.Orders',
          subjects: ['checkout'],
          permissions: ['orders:read'],
          idempotency: none,
        },
        { name: 'open', methods: ['POST'], path: '/open', access: 'public', idempotency: none },
      ],
    },
  });
}

t.test('gRPC calls are recorded with the status that their caller was sent', async (t) => {
  const proxy = await start(t);
  const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
  const { Authorization: authorization } = proxy.authorization({ permissions: ['orders:read'] });
  const call = (id: string, path: string, headers: OutgoingHttpHeaders): Promise<Http2Response> =>
    ask(
      session,
      {
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
        te: 'trailers',
        'x-request-id': id,
        ...headers,
      },
      Buffer.from(frameMessage(Buffer.from('hello'))),
    );
  const rows = [
    { id: 'ok', path: '/shop.v1.Orders/Echo', headers: { authorization }, http: 200, grpc: 0, route: 'orders' },
    { id: 'missing', path: '/shop.v1.Orders/Missing', headers: { authorization }, http: 200, grpc: 5, route: 'orders' },
    {
      id: 'unknown-method',
      path: '/shop.v1.Orders/Other',
      headers: { authorization },
      http: 200,
      grpc: 12,
      route: 'orders',
    },
    { id: 'nobody', path: '/shop.v1.Orders/Echo', headers: {}, http: 200, grpc: 16, route: 'orders' },
    { id: 'no-route', path: '/shop.v1.Stock/Get', headers: { authorization }, http: 200, grpc: 7, route: 'none' },
  ];
  for (const { id, path, headers, http, grpc, route } of rows) {
    const got = await call(id, path, headers);
    t.equal(Number(got.trailers?.['grpc-status'] ?? got.headers['grpc-status']), grpc, `${id}: what the caller saw`);
    t.match(await proxy.recordOf(id), { protocol: 'HTTP/2', grpc_status: grpc, status: http, route }, id);
  }
  t.same(
    proxy.counted.grpcCalls,
    rows.map(({ route, grpc }) => ({ route, status: grpc })),
  );
});

t.test('what is no gRPC call has no such status, and each protocol has its name', async (t) => {
  const proxy = await start(t);
  const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
  await ask(session, { ':path': '/nowhere', 'x-request-id': 'h2' });
  t.match(await proxy.recordOf('h2'), { protocol: 'HTTP/2', grpc_status: null, status: 401 });
  for (const [at, version] of ['1.1', '1.0', '2.0'].entries()) {
    const socket = await connectRaw(proxy.port);
    socket.write(`GET /nowhere HTTP/${version}\r\nHost: a\r\n\r\n`);
    await until('it is recorded', () => proxy.records.length === at + 2);
    socket.end();
  }
  t.match(proxy.records.slice(1), [
    { protocol: 'HTTP/1.1', grpc_status: null, reason: 'credential_missing' },
    { protocol: 'HTTP/1.0', grpc_status: null, reason: 'http_version' },
    // What only says so is no HTTP/2.
    { protocol: 'HTTP/1.1', grpc_status: null, reason: 'http_version' },
  ]);
  t.same(proxy.counted.grpcCalls, []);
});

t.test('connections and streams are counted by protocol, and calm again when they are over', async (t) => {
  const proxy = await start(t);
  const none = { connections: 0, requests: 0 };
  t.same(proxy.server.connectionsByProtocol(), { http1: none, http2: none });
  const session = await connectHttp2(t, `http://127.0.0.1:${String(proxy.port)}`);
  const { Authorization: authorization } = proxy.authorization({ permissions: ['orders:read'] });
  const streams = [1, 2, 3].map(() => {
    const stream = session.request(
      {
        ':method': 'POST',
        ':path': '/shop.v1.Orders/Echo',
        'content-type': 'application/grpc',
        te: 'trailers',
        authorization,
      },
      { endStream: false },
    );
    stream.on('error', () => undefined).resume();
    return stream;
  });
  const idle = await connectRaw(proxy.port);
  idle.write('GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('all are open', () => proxy.server.connectionsByProtocol().http2.requests === 3);
  await until('and the other one rests', () => proxy.server.connectionsByProtocol().http1.connections === 1);
  await until('and is answered', () => proxy.records.length === 1);
  t.same(proxy.server.connectionsByProtocol(), {
    http1: { connections: 1, requests: 0 },
    http2: { connections: 1, requests: 3 },
  });
  const { upstream } = proxy.activeConfig();
  await until('the upstream has them', () => upstream.counts().active === 3);
  t.equal(upstream.connections(), 1);
  for (const stream of streams) stream.end(frameMessage(Buffer.from('x')));
  await until('all are answered', () => proxy.server.connectionsByProtocol().http2.requests === 0);
  session.close();
  await until('it is gone', () => proxy.server.connectionsByProtocol().http2.connections === 0);
});

t.test('a connection that is ended for what it sent has a reason of its own', async (t) => {
  const proxy = await start(t);
  const raw = await connectFrames(t, proxy.port);
  for (let i = 0; i < 1_000; i += 1) raw.write(frame(frameTypes.settings, 0, 0, Buffer.alloc(0)));
  await until('it was ended', () => proxy.counted.connectionEndings.length > 0);
  t.same([...new Set(proxy.counted.connectionEndings)], ['http2_abuse']);
});
