/** Targets that take a body slowly, or no more of it. */
import { createServer as createHttp2Server } from 'node:http2';
import { request as httpRequest } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { ask, connectHttp2 } from '../../support/http2-client.js';
import { listen } from '../../support/listening.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';
import { startCalling } from './calling.js';

t.setTimeout(120_000);
// They wait, and do little else.
t.jobs = 5;

const limits = { response_timeout: '1s', idle_timeout: '1s' };

/** One that leaves what a request brings where it is; over HTTP/2 its window stays shut, and it answers PING. */
async function startDeaf(t: Scope, isHttp2: boolean): Promise<string> {
  const server = isHttp2
    ? createHttp2Server().on('stream', (stream) => stream.on('error', () => undefined))
    : createServer({ pauseOnConnect: true });
  const { port } = await listen(t, server);
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
      const session = await connectHttp2(t, `http://127.0.0.1:${String(port)}`);
      const post = { ':method': 'POST', ':path': '/orders/c' };
      t.equal((await ask(session, post, Buffer.alloc(sizes[0]))).status, 504, 'over HTTP/2');
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
    // Over HTTP/2, where what is not taken waits here, and not in megabytes of the kernel's.
    const server = createHttp2Server().on('stream', (stream) => {
      let bytes = 0;
      stream.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        stream.pause();
        setTimeout(() => stream.resume(), 40).unref();
      });
      stream.on('end', () => {
        stream.respond();
        stream.end(String(bytes));
      });
    });
    const { port: targetPort } = await listen(t, server);
    const target = { response_timeout: '3s', idle_timeout: '3s', http2: true };
    const { port, call } = await startCalling(t, `http://127.0.0.1:${String(targetPort)}`, target);
    const size = 3_000_000;
    const startedMs = performance.now();
    const slowlyTaken = call('/orders/a', { body: 'x'.repeat(size) });
    const slowlySent = new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest({ port, host: '127.0.0.1', method: 'POST', path: '/orders/b' }, (res) => {
        resolve(res.resume().statusCode);
      }).on('error', reject);
      void (async () => {
        for (let piece = 0; piece < 2; piece += 1) {
          request.write(Buffer.alloc(20_000));
          await sleep(3_500);
        }
        request.end();
      })();
    });
    const taken = await slowlyTaken;
    t.ok(performance.now() - startedMs > 6_000, 'twice its idle_timeout');
    t.same([taken.status, String(taken.body)], [200, String(size)]);
    t.equal(await slowlySent, 200);
  },
);
