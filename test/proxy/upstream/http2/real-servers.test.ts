/** HTTP/2 with Node's servers: over TLS by ALPN, over a Unix socket, and with large bodies. */
import { createSecureServer, createServer } from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import { createServer as createTlsServer } from 'node:tls';
import { join } from 'node:path';
import t from 'tap';
import { certificates } from '../../../support/certificates.js';
import { listen } from '../../../support/listening.js';
import { tempDir } from '../../../support/temp-dir.js';
import { until } from '../../../support/until.js';
import { startUpstream } from '../upstream-harness.js';

const http2 = { http2: true };

t.test('over TLS it is agreed on by ALPN, and with no other protocol anything is sent', async (t) => {
  const files = certificates(t);
  const { cert, key } = files.server;
  let asked = 0;
  const good = createSecureServer({ cert, key });
  good.on('stream', (stream) => {
    stream.respond({ ':status': 200 });
    stream.end('hello');
  });
  const { port } = await listen(t, good);
  t.equal(await startUpstream(t, `https://localhost:${String(port)}`, http2, files.ca.cert).ask(), '200 hello');

  const others = {
    'HTTP/1.1 alone': createHttpsServer({ cert, key, ALPNProtocols: ['http/1.1'] }, () => (asked += 1)),
    'no ALPN': createTlsServer({ cert, key }, (socket) =>
      socket.on('error', () => undefined).on('data', () => (asked += 1)),
    ),
  };
  for (const [name, server] of Object.entries(others)) {
    const { port: otherPort } = await listen(t, server);
    const heard = startUpstream(t, `https://localhost:${String(otherPort)}`, http2, files.ca.cert).send();
    await until('it ended', () => heard.ends() > 0);
    t.same(heard.failure(), { reason: 'upstream_unreachable', error: 'tls_protocol_error' }, name);
    t.equal(heard.call.mayBeSent(), false);
  }
  t.equal(asked, 0);
});

t.test('over a Unix socket', async (t) => {
  const path = join(tempDir(t), 'app.sock');
  const server = createServer().on('stream', (stream) => {
    stream.respond({ ':status': 200 });
    stream.end('hello');
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(() => server.close());
  t.equal(await startUpstream(t, `unix:${path}`, http2).ask(), '200 hello');
});

t.test('1 GiB each way goes through in bounded memory', async (t) => {
  const { Readable } = await import('node:stream');
  const bytes = 1024 * 1024 * 1024;
  const piece = Buffer.alloc(64 * 1024, 'a');
  const pieces = bytes / piece.length;
  const server = createServer().on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200 });
    stream.pipe(stream);
  });
  const { port } = await listen(t, server);
  const { upstream } = startUpstream(t, `http://127.0.0.1:${String(port)}`, http2);
  let sent = 0;
  const body = new Readable({
    read() {
      this.push(sent < pieces ? piece : null);
      sent += 1;
    },
  });
  const heldBefore = process.memoryUsage().arrayBuffers;
  let received = 0;
  let most = 0;
  const ended = await new Promise<string>((resolve) => {
    upstream.send(
      { holder: 'a', method: 'POST', target: '/', headers: ['Host', 'a'], body, responseTimeoutMs: 60_000 },
      {
        onHead: () => undefined,
        onData: (chunk) => {
          received += chunk.length;
          most = Math.max(most, process.memoryUsage().arrayBuffers - heldBefore);
          return true;
        },
        onEnd: () => resolve('end'),
        onError: ({ reason }) => resolve(reason),
      },
    );
  });
  t.equal(ended, 'end');
  t.equal(received, bytes);
  t.ok(most < 160 * 1024 * 1024, `held ${String(most)} bytes`);
});
