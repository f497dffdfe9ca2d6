import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { request } from '../../support/raw-client.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { tempDir } from '../../support/temp-dir.js';
import { startProxy } from '../harness.js';

const routes = [
  {
    name: 'any',
    methods: ['GET', 'POST'],
    path: '/**',
    subjects: ['checkout'],
    permissions: [],
    max_body: '8MiB',
    idempotency: 'none',
  },
];

t.test('an upstream behind a unix socket', async (t) => {
  const receiver = await startUpstreamServer(t, { unix: join(tempDir(t), 'app.sock') });
  const proxy = await startProxy(t, { receiver, config: { routes } });
  const body = Buffer.alloc(1_000_000, 'ab');
  t.equal(
    (await request(proxy.port, { method: 'POST', path: '/a', headers: proxy.authorization(), body })).status,
    200,
  );
  t.same(receiver.requests[0]?.body, body);
  t.same(receiver.requests[0]?.field('host'), ['localhost']);
});

t.test("the upstream sees its own Host or the caller's", async (t) => {
  for (const { host, expected } of [
    { host: 'upstream', expected: null },
    { host: 'preserve', expected: 'api.example:8443' },
  ]) {
    const proxy = await startProxy(t, { config: { routes, upstream: { host } } });
    const headers = { ...proxy.authorization(), Host: 'api.example:8443' };
    t.equal((await request(proxy.port, { path: '/a', headers })).status, 200);
    const received = proxy.receiver.requests[0];
    t.same(received?.field('host'), [expected ?? `127.0.0.1:${String(proxy.receiver.port)}`], host);
    t.same(received?.field('x-forwarded-host'), ['api.example:8443']);
  }
});

t.test('an upstream named by an IPv6 address', async (t) => {
  const server = createServer((_req, res) => res.end('six'));
  server.listen(0, '::1');
  await once(server, 'listening');
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  const proxy = await startProxy(t, { upstreamUrl: `http://[::1]:${String(port)}`, config: { routes } });
  t.equal((await request(proxy.port, { path: '/a', headers: proxy.authorization() })).text, 'six');
});
