import { createServer, type Server } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Duplex } from 'node:stream';
import t from 'tap';
import { certificates } from '../../../support/certificates.js';
import { listen } from '../../../support/listening.js';
import { until } from '../../../support/until.js';
import { rest, startUpstream } from '../upstream-harness.js';

const files = certificates(t);

const kinds = [
  { scheme: 'http', create: (onSocket: (socket: Duplex) => void): Server => createServer(onSocket) },
  {
    scheme: 'https',
    create: (onSocket: (socket: Duplex) => void): Server =>
      createTlsServer({ cert: files.server.cert, key: files.server.key }, onSocket),
  },
];

for (const { scheme, create } of kinds) {
  t.test(
    `${scheme}: a caller that stops and goes on gets all of it, and the connection carries the next request`,
    async (t) => {
      const body = Buffer.alloc(300_000, 'abcdefghijk');
      let connections = 0;
      const { port } = await listen(
        t,
        create((socket) => {
          connections += 1;
          socket.on('error', () => undefined);
          socket.on('data', () => {
            socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${String(body.length)}\r\n\r\n`);
            socket.write(body);
          });
        }),
      );
      const { upstream, send } = startUpstream(
        t,
        `${scheme}://127.0.0.1:${String(port)}`,
        { maxConnections: 1 },
        files.ca.cert,
      );
      for (let i = 0; i < 8; i++) {
        const heard = send({}, (_bytes, resume) => {
          setTimeout(resume, 2);
          return false;
        });
        await until('it ended', () => heard.ends() > 0);
        t.same([heard.failure(), heard.status(), heard.body().equals(body)], [null, 200, true], String(i));
        await rest();
      }
      t.same(upstream.counts(), { active: 0, waiting: 0 });
      t.equal(connections, 1);
    },
  );

  t.test(`${scheme}: a caller that takes nothing stops the upstream`, async (t) => {
    const total = 64 * 1024 * 1024;
    let written = 0;
    const { port } = await listen(
      t,
      create((socket) => {
        socket.on('error', () => undefined);
        const piece = Buffer.alloc(64 * 1024);
        const pump = (): void => {
          while (written < total) {
            written += piece.length;
            if (!socket.write(piece)) return;
          }
          socket.end();
        };
        socket.on('drain', pump);
        socket.once('data', () => {
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${String(total)}\r\n\r\n`);
          pump();
        });
      }),
    );
    const { upstream, send } = startUpstream(
      t,
      `${scheme}://127.0.0.1:${String(port)}`,
      { idleTimeoutMs: 10 },
      files.ca.cert,
    );
    const taken: number[] = [];
    const heard = send({}, (bytes) => {
      taken.push(bytes.length);
      return false;
    });
    await until('the receiver is stopped', async () => {
      const before = written;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return before > 0 && before === written;
    });
    t.ok(written < total, 'by back-pressure');
    const sum = taken.reduce((all, length) => all + length, 0);
    t.ok(sum <= 128 * 1024, `what one read brought: ${String(sum)} bytes`);
    t.equal(heard.ends(), 0, 'and no limit runs while the caller is the slow one');
    heard.call.cancel();
    await until('it is gone', () => upstream.counts().active === 0);
    t.equal(heard.ends(), 0, 'who left hears nothing more');
  });
}
