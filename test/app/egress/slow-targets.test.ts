/** Targets that take a body slowly, or no more of it. */
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import { createServer as createHttpServer, request as httpRequest } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { listen } from '../../support/listening.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startCalling } from './calling.js';

const limits = { response_timeout: '1s', idle_timeout: '1s' };

/** One that leaves what a request brings where it is; over HTTP/2 its window stays shut, and it answers PING. */
async function startDeaf(t: Scope, isHttp2: boolean): Promise<string> {
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket.on('error', () => undefined).on('close', () => sockets.delete(socket)));
  };
  const server = isHttp2
    ? createHttp2Server()
        .on('stream', (stream) => stream.on('error', () => undefined))
        .on('connection', keep)
    : createServer({ pauseOnConnect: true }, keep);
  const { port } = await listen(t, server);
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  return `http://127.0.0.1:${String(port)}`;
}

for (const [target, isHttp2, sizes] of [
  ['HTTP/1.1', false, [8_000_000]],
  ['HTTP/2', true, [66_000, 100_000, 300_000, 8_000_000]],
] as const) {
  for (const idempotency of ['generate', 'pass']) {
    t.test(`a target of ${target} that takes no more of a body has its idle_timeout, ${idempotency}`, async (t) => {
      const url = await startDeaf(t, isHttp2);
      const { proxy, port, call } = await startCalling(
        t,
        url,
        { ...limits, idempotency, http2: isHttp2 },
        { listen: { port: 0, http2: true } },
      );
      for (const size of sizes) {
        const body = 'x'.repeat(size);
        const answers = await Promise.all([call('/orders/a', { body }), call('/orders/b', { body })]);
        t.same(
          answers.map(({ status }) => status),
          [504, 504],
          `${String(size)} bytes`,
        );
      }
      const session = connectHttp2(`http://127.0.0.1:${String(port)}`);
      t.teardown(() => session.destroy());
      const stream = session.request({ ':method': 'POST', ':path': '/orders/c' });
      stream.on('error', () => undefined).end(Buffer.alloc(sizes[0]));
      const [head] = (await once(stream, 'response')) as [Readonly<Record<string, unknown>>];
      t.equal(head[':status'], 504, 'over HTTP/2');
      stream.close();
      await until('nothing is held', async () => (await proxy.metric('sallyport_egress_held_bytes')) === 0);
      t.match(
        proxy.logs().filter(({ path }) => path === '/orders/a'),
        sizes.map(() => ({ reason: 'upstream_timeout' })),
      );
    });
  }
}

t.test(
  'a target that takes a body slowly, and a caller that sends it slowly, have as long as they go on',
  async (t) => {
    const server = createHttpServer((req, res) => {
      let bytes = 0;
      req.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        // A rest of its own for what was sent at once; a caller that rests is the rest of its own.
        if (bytes > 100_000) setTimeout(() => req.resume(), 20).unref();
        if (bytes > 100_000) req.pause();
      });
      req.on('end', () => res.end(String(bytes)));
    });
    const { port: targetPort } = await listen(t, server);
    const { port, call } = await startCalling(t, `http://127.0.0.1:${String(targetPort)}`, {
      // What the kernel took counts as sent.
      response_timeout: '30s',
      idle_timeout: '1s',
    });
    const size = 12_000_000;
    const slowlyTaken = call('/orders/a', { body: 'x'.repeat(size) });
    const slowlySent = new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: '/orders/b' }, (res) => {
        resolve(res.resume().statusCode);
      }).on('error', reject);
      void (async () => {
        for (let piece = 0; piece < 3; piece += 1) {
          request.write(Buffer.alloc(20_000));
          await sleep(1_500);
        }
        request.end();
      })();
    });
    const taken = await slowlyTaken;
    t.same([taken.status, String(taken.body)], [200, String(size)]);
    t.equal(await slowlySent, 200);
  },
);
