/** Responses without a length whose connection is reset, ended, or both, before their caller has taken them. */
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { startInProcessProxy } from '../../app/in-process-proxy.js';
import { listen } from '../../support/listening.js';
import { connectRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';

t.setTimeout(60_000);

const lastChunk = '0\r\n\r\n';

const endings: Readonly<Record<string, { end: (socket: Socket) => void; isWhole: boolean }>> = {
  'by an end': { end: (socket) => socket.end(), isWhole: true },
  'by a reset': { end: (socket) => socket.resetAndDestroy(), isWhole: false },
  'by an end and then a reset': {
    end: (socket) => socket.end(() => setTimeout(() => socket.resetAndDestroy(), 50)),
    isWhole: true,
  },
};

for (const bytes of [1_000, 1_000_000]) {
  for (const [name, { end, isWhole }] of Object.entries(endings)) {
    t.test(`${String(bytes)} bytes that end ${name}, to a caller that reads late`, async (t) => {
      const { port } = await listen(
        t,
        createServer({ noDelay: true, allowHalfOpen: true }, (socket) => {
          socket.on('error', () => undefined);
          socket.once('data', () => {
            socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${'x'.repeat(bytes)}`, () => {
              // Written is what the system has taken; by then it is on the other side.
              setTimeout(() => end(socket), 100);
            });
          });
        }),
      );
      const proxy = await startInProcessProxy(t, {
        config: {
          upstream: { url: `http://127.0.0.1:${String(port)}` },
          routes: [{ name: 'any', methods: ['GET'], path: '/any', access: 'public' }],
        },
      });
      const client = await connectRaw(proxy.port);
      t.teardown(client.end);
      client.socket.pause();
      client.write('GET /any HTTP/1.1\r\nHost: a\r\n\r\n');
      await delay(500);
      client.socket.resume();
      const text = (): string => client.pending().toString('latin1');
      await until('it is over', () => text().endsWith(lastChunk) || client.isClosed(), 10_000);
      t.equal(text().endsWith(lastChunk), isWhole);
      if (isWhole) t.ok(text().length > bytes, 'all of it');
    });
  }
}
