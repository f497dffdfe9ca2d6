/** A body that the upstream does not take waits in its caller, not here. */
import { connect, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';
import { until } from '../../support/until.js';
import { startProxy } from '../harness.js';

const mebibyte = 1024 * 1024;
const size = 48 * mebibyte;
const piece = Buffer.alloc(64 * 1024, 'x');
/** What kernels hold of it on its way, at both ends of both connections. */
const heldByKernels = 24 * mebibyte;

const routes = [
  {
    name: 'files',
    methods: ['POST'],
    path: '/files',
    subjects: ['checkout'],
    permissions: [],
    max_body: '64MiB',
    idempotency: 'none',
  },
];

const { ca, server } = certificates(t);

for (const [name, isTls, http2, hasLargeFirst] of [
  ['HTTP/1.1', false, false, true],
  ['HTTP/1.1 beside HTTP/2', false, true, false],
  ['HTTP/1.1 beside HTTP/2, with much of the body in the first packet', false, true, true],
  ['HTTP/1.1 beside HTTP/2 over TLS', true, true, true],
] as const) {
  t.test(`${name}: of a body that nobody takes hardly anything is read`, async (t) => {
    const { port } = await listen(t, createServer({ pauseOnConnect: true }));
    const { cert, key } = server;
    const files = isTls ? { tls: { cert_file: server.certFile, key_file: server.keyFile } } : {};
    const proxy = await startProxy(t, {
      upstreamUrl: `http://127.0.0.1:${String(port)}`,
      config: { listen: { http2, ...files }, routes },
      ...(isTls ? { tls: { cert, key, clientCa: null, clientAuth: 'optional' } } : {}),
    });
    const client: Socket = isTls
      ? connectTls({ port: proxy.port, host: '127.0.0.1', ca: ca.cert, servername: 'localhost' })
      : connect(proxy.port, '127.0.0.1');
    t.teardown(() => client.destroy());
    client.on('error', () => undefined);
    const head = `POST /files HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}Content-Length: ${String(size)}\r\n\r\n`;
    let sent = 0;
    const pieces = function* (): Iterable<Buffer> {
      yield hasLargeFirst ? Buffer.concat([Buffer.from(head), piece]) : Buffer.from(head);
      for (sent = hasLargeFirst ? piece.length : 0; sent < size; sent += piece.length) yield piece;
    };
    Readable.from(pieces()).pipe(client);
    let [before, still] = [0, 0];
    await until('no more of it is taken', () => {
      still = sent > mebibyte && sent === before ? still + 1 : 0;
      before = sent;
      return still === 50;
    });
    t.ok(sent < heldByKernels, `${String(Math.round(sent / mebibyte))} of 48 MiB`);
  });
}
