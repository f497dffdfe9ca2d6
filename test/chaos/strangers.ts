/** What somebody without a credential, or one caller, sends to wear a proxy out; and an honest caller beside it. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { request } from '../support/raw-client.js';
import { until } from '../support/until.js';
import type { World } from '../support/world.js';

/** As Node takes it by itself in the memory that the chart allows. */
export const containerHeap = { NODE_OPTIONS: '--max-old-space-size=320' };

/** Where attacks go. */
export interface Target {
  readonly port: number;
  /** `Authorization` of one caller. */
  readonly bearer: string;
}

/** Something that is sent until it is told to end. */
export interface Attack {
  readonly name: string;
  readonly run: (target: Target, ended: () => boolean) => Promise<void>;
}

function open(port: number): Socket {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  socket.on('error', () => undefined).resume();
  return socket;
}

async function written(socket: Socket, bytes: string): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
    socket.write(bytes, () => resolve());
  });
}

/** So many connections at a time; whichever is closed is opened anew. */
async function keepUp(count: number, ended: () => boolean, make: () => Socket): Promise<void> {
  const sockets = new Set<Socket>();
  const add = (): void => {
    const socket = make();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  };
  while (!ended()) {
    // As many as the queue of a listening socket holds.
    for (let added = 0; added < 200 && sockets.size < count; added += 1) add();
    await sleep(20);
  }
  for (const socket of sockets) socket.destroy();
}

const get = (port: number, rest = ''): string => `GET /orders HTTP/1.1\r\nHost: 127.0.0.1:${String(port)}\r\n${rest}\r\n`;

const pipelined: Attack = {
  name: 'requests in one packet, without a credential',
  run: async ({ port }, ended) => keepUp(300, ended, () => {
    const socket = open(port);
    socket.write('GET / HTTP/1.1\r\nHost:a\r\n\r\n'.repeat(2_520));
    return socket;
  }),
};

const idle: Attack = {
  name: 'idle connections',
  run: async ({ port }, ended) => keepUp(3_500, ended, () => {
    const socket = open(port);
    socket.write(get(port));
    return socket;
  }),
};

/** Bodies of reserved writes or of plain ones, byte by byte, of one caller. */
function dripped(name: string, path: string, connections: number): Attack {
  return {
    name,
    run: async ({ port, bearer }, ended) => {
      const drip = async (id: number): Promise<void> => {
        while (!ended()) {
          const socket = open(port);
          const head = `POST ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: ${bearer}\r\nIdempotency-Key: drip-${String(id)}\r\nContent-Length: 500000\r\n\r\n`;
          await written(socket, head);
          while (!ended() && socket.writable) {
            for (let count = 0; count < 20; count += 1) socket.write('x');
            await sleep(1);
          }
          socket.destroy();
          await sleep(10);
        }
      };
      await Promise.all(Array.from({ length: connections }, async (_, id) => drip(id)));
    },
  };
}

/** Asks for answers that come in pieces of one byte, and does not read them. */
const deaf: Attack = {
  name: 'answers byte by byte to callers that do not read',
  run: async ({ port, bearer }, ended) => {
    await keepUp(64, ended, () => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => undefined).pause();
      socket.write(`GET /drip HTTP/1.1\r\nHost: a\r\nAuthorization: ${bearer}\r\n\r\n`);
      return socket;
    });
  },
};

/** Asks and hangs up, with more requests behind. */
const hungUp: Attack = {
  name: 'hang-ups behind pipelined requests',
  run: async ({ port, bearer }, ended) => {
    const field = `Authorization: ${bearer}\r\n`;
    while (!ended()) {
      const sockets = Array.from({ length: 50 }, () => open(port));
      for (const socket of sockets) socket.write(`${get(port, field).replace('/orders', '/slow')}${get(port, field).repeat(20)}`);
      await sleep(30);
      for (const socket of sockets) socket.destroy();
    }
  },
};

/** Opens WebSockets and sends frames without a payload to a service that does not read. */
const frames: Attack = {
  name: 'empty frames of WebSockets',
  run: async ({ port, bearer }, ended) => {
    const frame = Buffer.from([0x81, 0x81, 1, 2, 3, 4, 5]);
    await keepUp(200, ended, () => {
      const socket = open(port);
      socket.write(`GET /live HTTP/1.1\r\nHost: a\r\nAuthorization: ${bearer}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`
        + 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n');
      const timer = setInterval(() => {
        if (socket.writableLength < 65_536) for (let count = 0; count < 10; count += 1) socket.write(frame);
      }, 2);
      socket.once('close', () => {
        clearInterval(timer);
      });
      return socket;
    });
  },
};

export const attacks: readonly Attack[] = [
  pipelined, idle, dripped('bodies of reserved writes, byte by byte', '/reserved', 60), dripped('bodies of plain writes, byte by byte', '/plain', 60),
  deaf, hungUp, frames,
];

export const routes = [
  { name: 'orders', methods: ['GET'], path: '/orders', subjects: ['checkout', 'honest'], permissions: [] },
  { name: 'slow', methods: ['GET'], path: '/slow', subjects: ['checkout'], permissions: [] },
  { name: 'drip', methods: ['GET'], path: '/drip', subjects: ['checkout'], permissions: [] },
  { name: 'live', methods: ['GET'], path: '/live', subjects: ['checkout'], permissions: [], websocket: true },
  { name: 'reserved', methods: ['POST'], path: '/reserved', subjects: ['checkout'], permissions: [], idempotency: 'required' },
  { name: 'plain', methods: ['POST'], path: '/plain', subjects: ['checkout'], permissions: [], idempotency: 'none' },
];

/** The service behind: slow, byte by byte, or at once. */
export function behave(world: World): void {
  world.receiver.behave((req, res) => {
    if (req.url === '/slow') setTimeout(() => res.end('late'), 500);
    else if (req.url === '/drip') {
      const timer = setInterval(() => {
        for (let count = 0; count < 20 && !res.writableNeedDrain; count += 1) res.write('x');
      }, 1);
      res.on('close', () => {
        clearInterval(timer);
      });
    } else res.end('ok');
  });
}

/** What an honest caller saw: how long its requests took, and what became of those without a 200. */
export interface Honest {
  readonly took: readonly number[];
  readonly failed: readonly string[];
}

/** Asks one request after the other, each on a connection of its own, until told. */
export async function beHonest(world: World, ended: () => boolean): Promise<Honest> {
  const took: number[] = [];
  const failed: string[] = [];
  const headers = world.authorization({ sub: 'honest' });
  while (!ended()) {
    const started = performance.now();
    const outcome = await request(world.port, { path: '/orders', headers }).then(({ status }) => String(status), (error: unknown) => String(error));
    took.push(performance.now() - started);
    if (outcome !== '200') failed.push(outcome);
    await sleep(5);
  }
  return { took, failed };
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

export function residentMiB({ process: { pid } }: World): number {
  return Math.round(Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1] ?? 0) / 1024);
}

/** Runs an attack, or several at once, in a thread of its own beside an honest caller; what was taken is given back afterwards. */
export async function withstand(world: World, chosen: readonly Attack[], ms: number): Promise<Honest & { readonly peakMiB: number }> {
  const target: Target = { port: world.port, bearer: world.authorization()['Authorization'] ?? '' };
  const thread = new Worker(new URL('./strangers-thread.js', import.meta.url), { workerData: { target, ms, names: chosen.map(({ name }) => name) } });
  const over = once(thread, 'exit');
  let isOver = false;
  void over.then(() => {
    isOver = true;
  });
  let peakMiB = 0;
  const watch = setInterval(() => {
    if (world.process.isRunning()) peakMiB = Math.max(peakMiB, residentMiB(world));
    else void thread.terminate();
  }, 100);
  const honest = await beHonest(world, () => isOver);
  clearInterval(watch);
  if (world.process.isRunning()) {
    await until('every place is given back', async () => (await world.metric('sallyport_requests_in_flight')) === 0, 60_000);
    await until('every connection is closed', async () => (await world.metric('sallyport_connections_open')) === 0, 120_000);
    await until('every WebSocket is closed', async () => (await world.metric('sallyport_websockets_open')) === 0, 60_000);
  }
  return { ...honest, peakMiB };
}
