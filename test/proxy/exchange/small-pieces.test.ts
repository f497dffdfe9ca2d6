/** Bodies, responses and WebSockets in small pieces, through a proxy whose event loop says that it is busy. */
import { randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { Duplex } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import t, { type Test } from 'tap';
import { acceptOf } from '../../../src/decision/websocket/handshake.js';
import { Pieces } from '../../../src/proxy/resting-reads.js';
import { startInProcessProxy } from '../../app/in-process-proxy.js';
import { certificates } from '../../support/certificates.js';
import { listen } from '../../support/listening.js';
import { connectRaw } from '../../support/raw-client.js';
import { until } from '../../support/until.js';

t.setTimeout(60_000);

const piecesOfEach = 40;
const numbers = Array.from({ length: piecesOfEach }, (_, i) => `<${String(i)}>`);
const whole = numbers.join('');

let rests = 0;

t.before(() => {
  const measured = performance.eventLoopUtilization.bind(performance);
  performance.eventLoopUtilization = () => ({ idle: 0, active: 1, utilization: 1 });
  const prototype = Pieces.prototype as { rest: (this: Pieces) => boolean };
  const { rest } = prototype;
  prototype.rest = function counted() {
    const hasRested = rest.call(this);
    if (hasRested) rests += 1;
    return hasRested;
  };
  t.teardown(() => {
    performance.eventLoopUtilization = measured;
    prototype.rest = rest;
  });
});

/** Says what it was sent, or numbers one by one; on a WebSocket, too. */
function upstream(): Server {
  return createServer((req, res) => {
    if (req.url === '/numbers') {
      void trickle((text) => res.write(text)).then(() => res.end());
      return;
    }
    let text = '';
    req.on('data', (chunk: Buffer) => (text += chunk.toString())).on('end', () => res.end(text));
  }).on('upgrade', (req, socket: Duplex) => {
    socket.on('error', () => undefined);
    socket.write(switched(req.headers['sec-websocket-key'] ?? ''));
    if (req.url === '/live/numbers') void trickle((text) => socket.write(frame(text, false)));
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (text.includes(numbers.at(-1) ?? '')) socket.end(frame(digitsOf(text), false));
    });
  });
}

function switched(key: string): string {
  return (
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
    `Sec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`
  );
}

function upgrade(path: string): string {
  return (
    `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${randomBytes(16).toString('base64')}\r\n\r\n`
  );
}

/** A binary message; masked with zeros where a client sends it. */
function frame(text: string, isClient: boolean): Buffer {
  const payload = Buffer.from(text);
  const length = payload.length < 126 ? [payload.length] : [126, payload.length >> 8, payload.length & 0xff];
  const mask = isClient ? Buffer.alloc(4) : Buffer.alloc(0);
  return Buffer.concat([
    Buffer.from([0x82, (length[0] ?? 0) | (isClient ? 0x80 : 0), ...length.slice(1)]),
    mask,
    payload,
  ]);
}

function digitsOf(text: string): string {
  return (text.match(/<\d+>/g) ?? []).join('');
}

async function trickle(write: (text: string) => unknown): Promise<void> {
  for (const text of numbers) {
    write(text);
    await delay(10);
  }
}

t.test('each comes whole, is read in turns, and the next message at once', async (t) => {
  const server = upstream();
  const { port: upstreamPort } = await listen(t, server);
  const open = { access: 'public', idempotency: { mode: 'none', because: 'a test' } };
  const proxy = await startInProcessProxy(t, {
    config: {
      upstream: { url: `http://127.0.0.1:${String(upstreamPort)}`, reuse: 'always' },
      routes: [
        { name: 'said', methods: ['POST'], path: '/said', ...open },
        { name: 'numbers', methods: ['GET'], path: '/numbers', access: 'public' },
        { name: 'live', methods: ['GET'], path: '/live/{kind}', access: 'public', websocket: true },
      ],
    },
  });
  const http = await connectRaw(proxy.port);
  t.teardown(http.end);
  for (let round = 0; round < 2; round += 1) {
    rests = 0;
    http.write('POST /said HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
    await trickle((text) => http.write(`${text.length.toString(16)}\r\n${text}\r\n`));
    http.write('0\r\n\r\n');
    t.match(await http.readResponse(), { status: 200, text: whole }, 'a body');
    t.ok(rests > 0, 'which rested');

    rests = 0;
    http.write('GET /numbers HTTP/1.1\r\nHost: a\r\n\r\n');
    t.match(await http.readResponse(), { status: 200, text: whole }, 'a response');
    t.ok(rests > 0, 'which rested');
  }

  for (const [path, sends] of [
    ['/live/said', true],
    ['/live/numbers', false],
  ] as const) {
    rests = 0;
    const live = await connectRaw(proxy.port);
    t.teardown(live.end);
    live.write(upgrade(path));
    await until('it is switched', () => live.pending().toString('latin1').includes('\r\n\r\n'));
    if (sends) await trickle((text) => live.write(frame(text, true)));
    await until('all came', () => digitsOf(live.pending().toString('latin1')) === whole, 10_000);
    t.ok(rests > 0, `${path} rested`);
  }
});

/** What is written is on its way at once, before the reset. */
const noDelay = { noDelay: true };

/** Says `head` and the numbers one by one, then `last`, and is reset 20 ms later: within the rest behind them. */
async function resetting(
  t: Test,
  isTls: boolean,
  say: { head: (asked: string) => string; piece: (text: string) => string | Buffer; last: string | Buffer },
): Promise<{ readonly url: string; readonly ca_file?: string }> {
  const below: Socket[] = [];
  const serve = (socket: Socket): void => {
    socket.on('error', () => undefined);
    socket.once('data', (asked: Buffer) => {
      socket.write(say.head(asked.toString('latin1')));
      void trickle((text) => socket.write(say.piece(text))).then(async () => {
        socket.write(say.last);
        await delay(20);
        (below.shift() ?? socket).resetAndDestroy();
      });
    });
  };
  if (!isTls) return { url: `http://127.0.0.1:${String((await listen(t, createTcpServer(noDelay, serve))).port)}` };
  const { server, ca } = certificates(t);
  const tls = createTlsServer({ ...noDelay, cert: server.cert, key: server.key }, serve);
  tls.on('connection', (socket: Socket) => below.push(socket));
  return { url: `https://localhost:${String((await listen(t, tls)).port)}`, ca_file: ca.certFile };
}

t.test('an upstream is reset behind a rest: what broke off is broken, and what was whole is', async (t) => {
  const close = { head: () => 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n', piece: (text: string) => text };
  const chunked = {
    head: () => 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
    piece: (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`,
  };
  const socket = {
    head: (asked: string) => switched(/sec-websocket-key: (.*)\r/i.exec(asked)?.[1] ?? ''),
    piece: (text: string) => frame(text, false),
  };
  const rows = [
    { name: 'without a length', path: '/numbers', isTls: false, say: { ...close, last: 'half' }, whole: false },
    { name: 'in chunks', path: '/numbers', isTls: false, say: { ...chunked, last: '0\r\n\r\n' }, whole: true },
    { name: 'in chunks, over TLS', path: '/numbers', isTls: true, say: { ...chunked, last: '0\r\n\r\n' }, whole: true },
    {
      name: 'without a length, over TLS',
      path: '/numbers',
      isTls: true,
      say: { ...close, last: 'half' },
      whole: false,
    },
    { name: 'WebSocket', path: '/live', isTls: false, say: { ...socket, last: frame('LAST', false) }, whole: true },
    {
      name: 'WebSocket over TLS',
      path: '/live',
      isTls: true,
      say: { ...socket, last: frame('LAST', false) },
      whole: true,
    },
  ];
  await Promise.all(
    rows.map(async ({ name, path, isTls, say, whole: isWhole }) => {
      const proxy = await startInProcessProxy(t, {
        config: {
          upstream: await resetting(t, isTls, say),
          routes: [
            { name: 'numbers', methods: ['GET'], path: '/numbers', access: 'public' },
            { name: 'live', methods: ['GET'], path: '/live', access: 'public', websocket: true },
          ],
        },
      });
      const client = await connectRaw(proxy.port);
      t.teardown(client.end);
      client.write(path === '/live' ? upgrade(path) : `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
      const text = (): string => client.pending().toString('latin1');
      const end = path === '/live' ? 'LAST' : '0\r\n\r\n';
      await until(`${name}: it is over`, () => text().endsWith(end) || client.isClosed(), 10_000);
      t.equal(text().includes(end), isWhole, name);
    }),
  );
});
