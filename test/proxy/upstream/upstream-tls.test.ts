import type { Socket } from 'node:net';
import { createServer } from 'node:tls';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';
import { connectRaw, request } from '../../support/raw-client.js';
import { startUpstreamServer } from '../../support/upstream-server.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness } from '../harness.js';
import { rest } from './upstream-harness.js';

const routes = [
  { name: 'any', methods: ['GET', 'POST'], path: '/**', subjects: ['checkout'], permissions: [], idempotency: 'none' },
];

async function ask(proxy: Harness, host = 'a.example'): Promise<readonly [number, string | null]> {
  const response = await request(proxy.port, { path: '/a', headers: { ...proxy.authorization(), Host: host } });
  return [response.status, response.field('proxy-status')];
}

t.test('the certificate of an https upstream is verified, always', async (t) => {
  const files = certificates(t);
  const refused = [503, 'sallyport; error=tls_certificate_error'] as const;
  const cases = [
    { name: 'signed by the CA, for this name', served: files.server, ca: files.ca.cert, expected: [200, null] },
    { name: 'signed by nobody we know', served: files.server, ca: null, expected: refused },
    { name: 'signed by another CA', served: files.strangerServer, ca: files.ca.cert, expected: refused },
    { name: 'for another name', served: files.misnamed, ca: files.ca.cert, expected: refused },
    {
      name: 'for the name that was given',
      served: files.misnamed,
      ca: files.ca.cert,
      serverName: 'other.example',
      expected: [200, null],
    },
    {
      name: 'for the host, not the name that was given',
      served: files.server,
      ca: files.ca.cert,
      serverName: 'other.example',
      expected: refused,
    },
    {
      name: 'for the address that was given',
      served: files.server,
      ca: files.ca.cert,
      serverName: '127.0.0.1',
      expected: [200, null],
    },
  ];
  for (const { name, served, ca, serverName, expected } of cases) {
    const receiver = await startUpstreamServer(t, { tls: { cert: served.cert, key: served.key } });
    for (const host of ['127.0.0.1', 'localhost']) {
      const proxy = await startProxy(t, {
        receiver,
        upstreamUrl: `https://${host}:${String(receiver.port)}`,
        config: {
          routes,
          upstream: { connect_timeout: '10s', ...(serverName === undefined ? {} : { server_name: serverName }) },
        },
        ...(ca === null ? {} : { upstreamCa: ca }),
      });
      t.same(await ask(proxy), expected, `${name}, ${host}`);
      t.same(await ask(proxy), expected, `${name}, ${host}, again`);
      t.equal(
        receiver.requests.length > 0,
        expected[0] === 200,
        'nothing reaches a receiver that did not show who it is',
      );
    }
  }
});

t.test("a caller's Host decides nothing about the certificate, and costs no connection", async (t) => {
  const files = certificates(t);
  const receiver = await startUpstreamServer(t, { tls: { cert: files.server.cert, key: files.server.key } });
  const proxy = await startProxy(t, {
    receiver,
    config: { routes, upstream: { host: 'preserve' } },
    upstreamCa: files.ca.cert,
  });
  for (const host of ['a.example', 'other.example', '127.0.0.1', 'localhost:1', 'x'.repeat(60)]) {
    t.same(await ask(proxy, host), [200, null], host);
    await rest();
  }
  t.same(
    receiver.requests.map(({ field }) => field('host')[0]),
    ['a.example', 'other.example', '127.0.0.1', 'localhost:1', 'x'.repeat(60)],
  );
  t.equal(receiver.connections(), 1);
});

t.test('an upstream that speaks no TLS is not spoken to without', async (t) => {
  const receiver = await startUpstreamServer(t);
  const proxy = await startProxy(t, {
    receiver,
    upstreamUrl: `https://127.0.0.1:${String(receiver.port)}`,
    config: { routes },
  });
  const [status, reason] = await ask(proxy);
  t.equal(status, 503);
  t.match(reason, /tls_protocol_error|connection_terminated/);
  t.equal(receiver.requests.length, 0);
});

t.test(
  'a response that ends with its connection is whole only where the upstream said within TLS that it ends',
  async (t) => {
    const files = certificates(t);
    const ways = ['said', 'said, in pieces', 'cut', 'cut in the midst of a record', 'reset'] as const;
    for (const how of ways.flatMap((way) => [
      { way, maxVersion: 'TLSv1.2' } as const,
      { way, maxVersion: 'TLSv1.3' } as const,
    ])) {
      const { way, maxVersion } = how;
      const name = `${way}, ${maxVersion}`;
      let accepted: { readonly tcp: Socket; readonly secure: Socket } | null = null;
      let tcp: Socket | null = null;
      const server = createServer({ cert: files.server.cert, key: files.server.key, maxVersion }, (secure) => {
        secure.on('error', () => undefined);
        if (tcp !== null) accepted = { tcp, secure };
        secure.once('data', () => secure.write('HTTP/1.1 200 OK\r\n\r\n01234'));
      });
      server.on('connection', (socket: Socket) => {
        tcp = socket.on('error', () => undefined);
      });
      const { port } = await listen(t, server);
      const proxy = await startProxy(t, {
        upstreamUrl: `https://127.0.0.1:${String(port)}`,
        config: { routes },
        upstreamCa: files.ca.cert,
      });
      const caller = await connectRaw(proxy.port);
      t.teardown(caller.end);
      caller.write(`GET /a HTTP/1.1\r\nHost: a\r\nX-Request-Id: cut\r\n${proxy.bearer()}\r\n`);
      await until('some of it came', () => caller.pending().includes('01234'));
      const ends = await until('it is known', () => accepted);
      if (way === 'said, in pieces') ends.secure.write('56789');
      if (way.startsWith('said')) ends.secure.end();
      // A record of application data that is longer than what comes of it.
      if (way === 'cut in the midst of a record') ends.tcp.write(Buffer.from([23, 3, 3, 0, 40, 1, 2, 3]));
      if (way.startsWith('cut')) ends.tcp.end();
      if (way === 'reset') ends.tcp.resetAndDestroy();
      const response = await caller.readResponse();
      t.same([response?.status, response?.complete], [200, way.startsWith('said')], name);
      t.match(await proxy.recordOf('cut'), { reason: way.startsWith('said') ? null : 'upstream_failed' }, name);
      t.same(proxy.activeConfig().upstream.counts(), { active: 0, waiting: 0 });
    }
  },
);
