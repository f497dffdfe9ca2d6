/**
 * A proxy that stands still for longer than its time-outs, as where the CPU is throttled: all that was due is due at
 * once, beside what came meanwhile. Whatever the upstream does, the process lives, every request is answered, and
 * every place is given back.
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { certificates } from '../support/certificates.js';
import { listen } from '../support/listening.js';
import { startProxyProcess, type ProxyProcess } from '../support/proxy-process.js';
import type { Scope } from '../support/scope.js';
import { until } from '../support/until.js';

const connectTimeoutMs = 200;
const responseTimeoutMs = 400;

/** How long before it stands still requests come; milliseconds. */
const headStarts = [0, 20, 150];

/** How an upstream treats whoever connects; none where nobody listens. */
const upstreams: Readonly<Record<string, ((socket: Socket) => void) | null>> = {
  'nobody listens': null,
  'says nothing': () => undefined,
  'resets in the midst of connecting': (socket) => void setTimeout(() => socket.resetAndDestroy(), 100),
  'ends in the midst of connecting': (socket) => void setTimeout(() => socket.end(), 100),
  'speaks something else': (socket) => void socket.write('220 mail.example.com ESMTP\r\n'),
  'resets after half a response': (socket) =>
    void socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
      setTimeout(() => socket.resetAndDestroy(), 100);
    }),
};

async function portOf(t: Scope, serve: ((socket: Socket) => void) | null): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    serve?.(socket);
  });
  const { port } = await listen(t, server);
  if (serve === null) await once(server.close(), 'close');
  return port;
}

async function standStill(proxy: ProxyProcess): Promise<void> {
  proxy.signal('SIGSTOP');
  await delay(responseTimeoutMs + 200);
  proxy.signal('SIGCONT');
}

interface Stall {
  readonly scheme: 'http' | 'https';
  readonly http2: boolean;
  readonly name: string;
  readonly serve: ((socket: Socket) => void) | null;
}

/** Stands still with requests in each state, and is stopped. */
async function stall(t: Test, { scheme, http2, name, serve }: Stall): Promise<void> {
  const files = certificates(t);
  const port = await portOf(t, serve);
  const proxy = await startProxyProcess(t, {
    config: {
      upstream: {
        // A name of two addresses.
        url: `${scheme}://localhost:${String(port)}`,
        http2,
        connect_timeout: `${String(connectTimeoutMs)}ms`,
        response_timeout: `${String(responseTimeoutMs)}ms`,
        ...(scheme === 'https' ? { ca_file: files.ca.certFile } : {}),
      },
    },
  });
  for (const headStartMs of headStarts) {
    const asked = Array.from({ length: 4 }, () => proxy.request({ path: '/orders', headers: proxy.authorization() }));
    await delay(headStartMs);
    await standStill(proxy);
    for (const { status } of await Promise.all(asked)) {
      t.ok([200, 502, 503, 504].includes(status), `${name}, after ${String(headStartMs)} ms: ${String(status)}`);
    }
  }
  await until('every place is given back', async () => (await proxy.metric('sallyport_requests_in_flight')) === 0);
  t.same(
    proxy.logs().filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
    name,
  );
  t.same(await proxy.stop(), { code: 0, signal: null }, name);
}

for (const scheme of ['http', 'https'] as const) {
  for (const http2 of [false, true]) {
    t.test(`${scheme}, ${http2 ? 'HTTP/2' : 'HTTP/1.1'}`, async (t) => {
      const all = Object.entries(upstreams);
      await Promise.all(all.map(([name, serve]) => stall(t, { scheme, http2, name, serve })));
    });
  }
}
