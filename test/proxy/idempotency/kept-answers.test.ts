/** What a caller saw is what a retry gets; what nobody can have seen whole is not kept as if it were. */
import type { Socket } from 'node:net';
import { createServer } from 'node:tls';
import t from 'tap';
import { certificates } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';
import { answering, recordOf, startReservingProxy } from './reserving-proxy.js';

t.test('RFC 9110 §15: a status that nobody has defined is kept and shown as it came', async (t) => {
  const proxy = await startReservingProxy(t);
  for (const status of [200, 299, 302, 404, 499, 500, 599, 600, 799, 999]) {
    proxy.receiver.behave(
      answering(status, { 'Content-Type': 'text/plain', Location: '/orders/1' }, `answer ${String(status)}`),
    );
    const key = `status-${String(status)}`;
    const first = await proxy.write({ key });
    proxy.receiver.behave(null);
    const retry = await proxy.write({ key });
    const seen = [first, retry].map(({ status: code, text, field }) => [
      code,
      text,
      field('content-type'),
      field('location'),
    ]);
    t.same(seen[1], seen[0], String(status));
    t.equal(first.status, status);
    t.same([first.field('idempotent-replayed'), retry.field('idempotent-replayed')], [null, 'true'], String(status));
  }
});

t.test(
  'RFC 9112 §9.8: a response without a length that was cut off beneath TLS is not kept as a whole one',
  async (t) => {
    const files = certificates(t);
    let ran = 0;
    let tcp: Socket | null = null;
    const server = createServer({ cert: files.server.cert, key: files.server.key }, (secure) => {
      secure
        .on('error', () => undefined)
        .once('data', (head: Buffer) => {
          ran += 1;
          secure.write('HTTP/1.1 200 OK\r\n\r\npay 100', () => {
            // "0 to Bob only" never comes.
            if (head.includes('cut')) tcp?.end();
            else secure.end();
          });
        });
    }).on('connection', (socket: Socket) => {
      tcp = socket.on('error', () => undefined);
    });
    const { port } = await listen(t, server);
    const proxy = await startReservingProxy(t, {
      upstreamUrl: `https://127.0.0.1:${String(port)}`,
      upstreamCa: files.ca.cert,
    });
    const whole = await proxy.write({ key: 'whole' });
    t.same([whole.status, whole.text], [200, 'pay 100']);
    t.equal((await proxy.write({ key: 'whole' })).field('idempotent-replayed'), 'true');
    const cut = await proxy.write({ key: 'cut', headers: { 'X-Fate': 'cut' } });
    t.match(JSON.parse(cut.text), { type: 'urn:sallyport:upstream-failed' });
    t.match(await proxy.record(recordOf(cut)), { state: 'tombstone', response: { status: 200 } });
    const retry = await proxy.write({ key: 'cut', headers: { 'X-Fate': 'cut' } });
    t.match([retry.status, JSON.parse(retry.text)], [409, { type: 'urn:sallyport:idempotency-result-not-replayable' }]);
    t.equal(ran, 2, 'each ran once');
  },
);
