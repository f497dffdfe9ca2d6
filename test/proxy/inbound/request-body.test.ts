/** What a body on its way holds, and passes on at once. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import t from 'tap';
import type { Denial } from '../../../src/decision/denial.js';
import { RequestBody } from '../../../src/proxy/inbound/request-body.js';
import { listen } from '../../support/listening.js';

const mebibyte = 1024 * 1024;

t.test('however much one turn of the event loop brings, little of it is passed on at once', async (t) => {
  const size = 16 * mebibyte;
  const server = createServer();
  const { port } = await listen(t, server);
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${String(size)}\r\n\r\n`);
  socket.write(Buffer.alloc(size, 'x'));
  const [req] = (await once(server, 'request')) as [IncomingMessage];
  const broken: Denial[] = [];
  const body = new RequestBody(
    {
      stream: req,
      brokenBy: 'body_broken',
      isComplete: () => req.complete,
      trailers: () => [],
      sendContinue: () => undefined,
    },
    false,
    {
      maxBytes: size,
      timeouts: { idleMs: 20_000, minRate: 0, minRateAfterMs: 0 },
      upstreamTimeoutMs: 20_000,
      passedTrailers: () => null,
      onBroken: (reason) => broken.push(reason),
    },
  );
  let bytes = 0;
  let largest = 0;
  body.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    largest = Math.max(largest, chunk.length);
  });
  await once(body, 'end');
  t.equal(bytes, size);
  t.ok(largest <= mebibyte / 4, `${String(largest)} bytes at once`);
  t.same(broken, []);
});
