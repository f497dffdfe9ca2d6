/**
 * The service behind a proxy that is attacked, as a process: quick for honest callers; slow, large, deaf or byte by
 * byte where an attack asks for it.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How many bytes of an answer byte by byte go out at once, and how often. */
const [atOnce = 1, everyMs = 10] = process.argv.slice(2).map(Number);

const large = Buffer.alloc(1024 * 1024, 'x');

/** As much before a body as an upstream may send: 1,000 interim responses, and a head of 60 KiB. */
const interim = 'HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n'.repeat(1_000);
const padding = Array.from({ length: 60 }, (_, i) => [`X-Padding-${String(i)}`, 'x'.repeat(1_000)]).flat();

/** Writes that ran, by their idempotency key, so that nothing runs twice unseen. */
const runs = new Map<string, number>();

const server = createServer((req, res) => {
  const kind = (req.url ?? '').split('/').at(-1);
  if (kind === 'slow') setTimeout(() => res.end('late'), 500);
  else if (kind === 'large') res.end(large);
  else if (kind === 'heads') {
    res.socket?.write(interim);
    res.writeHead(200, padding).end();
  } else if (kind === 'drip') {
    const timer = setInterval(() => {
      for (let count = 0; count < atOnce && !res.writableNeedDrain; count += 1) res.write('x');
    }, everyMs);
    res.on('close', () => {
      clearInterval(timer);
    });
  } else {
    req.resume().on('end', () => {
      const key = req.headers['idempotency-key'];
      const run = typeof key === 'string' && req.method === 'POST' ? (runs.get(key) ?? 0) + 1 : 1;
      if (typeof key === 'string') runs.set(key, run);
      res.setHeader('X-Subject', String(req.headers['x-auth-subject'] ?? ''));
      res.end(`${req.method ?? ''} ${req.url ?? ''} ${String(run)}`);
    });
  }
});

server.on('upgrade', (req, socket) => {
  const accept = createHash('sha1')
    .update(`${req.headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest('base64');
  socket.on('error', () => undefined);
  // Nothing is read of what comes.
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
});

server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${String((server.address() as AddressInfo).port)}\n`);
});
