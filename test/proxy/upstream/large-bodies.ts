/** Bodies of any size through the proxy, with the memory that they take. */
import { createServer } from 'node:http';
import type { Scope } from '../../support/scope.js';
import { connectRaw } from '../../support/raw-client.js';
import { listen } from '../../support/listening.js';
import { until } from '../../support/until.js';
import { startProxy, type Harness } from '../harness.js';

const piece = Buffer.from(Array.from({ length: 64 * 1024 }, (_, i) => i % 251));

/** Twice the piece, so that whatever comes of the repeated piece is a part of this. */
const pattern = Buffer.concat([piece, piece]);

/** Checks bytes that come in any portions against the repeated piece. */
class Checker {
  bytes = 0;
  isSame = true;

  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length;) {
      const start = this.bytes % piece.length;
      const length = Math.min(piece.length, chunk.length - at);
      if (chunk.compare(pattern, start, start + length, at, at + length) !== 0) this.isSame = false;
      this.bytes += length;
      at += length;
    }
  }
}

/**
 * What caller, proxy and receiver, all in this process, may hold together on the way of one body: buffers of six
 * sockets, and those that are not collected yet, which Node 24 leaves longer than Node 20. Well below the size of the
 * body.
 */
export const boundBytes = 160 * 1024 * 1024;

export interface Transfer {
  readonly status: number;
  readonly bytes: number;
  /** Whether the bytes are those that were sent. */
  readonly isSame: boolean;
  /** The most that buffers held beyond what they held before. */
  readonly peakBytes: number;
}

interface Counter {
  readonly url: string;
  readonly received: () => { readonly bytes: number; readonly isSame: boolean };
}

/** A receiver that counts what it gets and sends as much as `/down/BYTES` asks for. */
async function startCounter(t: Scope): Promise<Counter> {
  let received = { bytes: 0, isSame: false };
  const server = createServer((req, res) => {
    const [, direction, size] = (req.url ?? '').split('/');
    if (direction === 'down') {
      let left = Number(size);
      res.writeHead(200, { 'content-length': left });
      const fill = (): void => {
        while (left > 0) {
          const next = left < piece.length ? piece.subarray(0, left) : piece;
          left -= next.length;
          if (!res.write(next)) return;
        }
        res.end();
      };
      res.on('drain', fill);
      fill();
      return;
    }
    const checker = new Checker();
    req.on('data', (chunk: Buffer) => {
      checker.take(chunk);
    });
    // Time for whoever does not wait for a slow receiver to fill its memory.
    req.pause();
    setTimeout(() => req.resume(), 500);
    req.on('end', () => {
      received = checker;
      res.end('ok');
    });
  });
  server.requestTimeout = 0;
  const { port } = await listen(t, server);
  return { url: `http://127.0.0.1:${String(port)}`, received: () => received };
}

export async function startTransfers(t: Scope): Promise<{ readonly proxy: Harness; readonly counter: Counter }> {
  const counter = await startCounter(t);
  const route = {
    methods: ['GET', 'POST'],
    path: '/**',
    subjects: ['checkout'],
    permissions: [],
    max_body: '4GiB',
    idempotency: 'none',
  };
  const proxy = await startProxy(t, { upstreamUrl: counter.url, config: { routes: [{ ...route, name: 'large' }] } });
  return { proxy, counter };
}

export async function upload(
  proxy: Harness,
  counter: Counter,
  size: number,
  framing: 'length' | 'chunked',
): Promise<Transfer> {
  const memory = watchMemory();
  const caller = await connectRaw(proxy.port, { limitMs: 120_000 });
  const fields = framing === 'length' ? `Content-Length: ${String(size)}` : 'Transfer-Encoding: chunked';
  caller.write(`POST /up HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}${fields}\r\n\r\n`);
  for (let left = size; left > 0;) {
    const next = left < piece.length ? piece.subarray(0, left) : piece;
    left -= next.length;
    const bytes =
      framing === 'length'
        ? next
        : Buffer.concat([Buffer.from(`${next.length.toString(16)}\r\n`), next, Buffer.from('\r\n')]);
    if (!caller.socket.write(bytes)) await new Promise((resolve) => caller.socket.once('drain', resolve));
  }
  if (framing === 'chunked') caller.write('0\r\n\r\n');
  const response = await caller.readResponse();
  caller.end();
  const { bytes, isSame } = counter.received();
  return { status: response?.status ?? 0, bytes, isSame, peakBytes: memory.peakBytes() };
}

/** Downloads; with `stall` the caller stops reading after the first bytes until everybody has come to rest. */
export async function download(proxy: Harness, size: number, stall = false): Promise<Transfer> {
  const memory = watchMemory();
  const caller = await connectRaw(proxy.port);
  const { socket } = caller;
  socket.removeAllListeners('data');
  const checker = new Checker();
  let head = '';
  let last = Date.now();
  socket.on('data', (chunk: Buffer) => {
    let body = chunk;
    if (!head.endsWith('\r\n\r\n')) {
      const end = chunk.indexOf('\r\n\r\n') + 4;
      head += chunk.toString('latin1', 0, end);
      body = chunk.subarray(end);
    }
    last = Date.now();
    checker.take(body);
  });
  caller.write(`GET /down/${String(size)} HTTP/1.1\r\nHost: a\r\n${proxy.bearer()}\r\n`);
  if (stall) {
    await until('the first bytes', () => checker.bytes > 0);
    socket.pause();
    await until('nothing moves', () => Date.now() - last > 500);
    socket.resume();
  }
  await until('all bytes', () => checker.bytes >= size || caller.isClosed(), 120_000);
  caller.end();
  return {
    status: Number(head.slice(9, 12)),
    bytes: checker.bytes,
    isSame: checker.isSame,
    peakBytes: memory.peakBytes(),
  };
}

function watchMemory(): { readonly peakBytes: () => number } {
  const held = (): number => process.memoryUsage().arrayBuffers;
  const before = held();
  let peak = before;
  const timer = setInterval(() => {
    peak = Math.max(peak, held());
  }, 5);
  return {
    peakBytes: () => {
      clearInterval(timer);
      return Math.max(peak, held()) - before;
    },
  };
}
