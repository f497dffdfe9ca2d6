/** What a process counts, beside what its heap and the kernel really hold. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { kernelConnections } from '../support/linux.js';
import type { Scope } from '../support/scope.js';
import { until } from '../support/until.js';
import { startProxyProcess, type ConfigTree, type ProxyProcess } from '../support/proxy-process.js';

const one = { subjects: ['checkout'], permissions: [] };
const routes = [
  { name: 'read', methods: ['GET'], path: '/read', ...one },
  { name: 'live', methods: ['GET'], path: '/live', ...one, websocket: true },
  { name: 'write', methods: ['POST'], path: '/write', ...one, idempotency: 'required' },
];

export interface Ledger {
  readonly proxy: ProxyProcess;
  /** Bytes of the heap and of buffers outside of it, once garbage is collected. */
  readonly held: () => Promise<number>;
  /** Opens so many connections, and sends each its bytes. */
  readonly open: (count: number, bytesOf: (index: number) => string) => Promise<readonly Socket[]>;
  /** Waits until the proxy has read all that was sent to it. */
  readonly read: () => Promise<void>;
  /** Answers of the service that are begun and not ended. */
  readonly answers: readonly ServerResponse[];
  /** Waits until a gauge says so. */
  readonly gauge: (name: string, value: number) => Promise<void>;
  /** The head of a request of the approved caller. */
  readonly head: (request: string, fields?: string) => string;
}

/** Starts a proxy whose service begins each answer and does not end it, unless the settings name another. */
export async function startLedger(t: Scope, settings: ConfigTree = {}): Promise<Ledger> {
  const proxy = await startProxyProcess(t, {
    main: join(import.meta.dirname, 'ledger-main.js'),
    config: { routes, store: { memory: {} }, ...settings },
  });
  const answers: ServerResponse[] = [];
  proxy.receiver.behave((_req, res) => {
    res.flushHeaders();
    answers.push(res);
  });
  const lines = (): readonly number[] =>
    proxy.logs().flatMap((line) => (typeof line['ledger'] === 'number' ? [line['ledger']] : []));
  return {
    proxy,
    answers,
    held: async () => {
      const before = lines().length;
      proxy.signal('SIGUSR2');
      return until('the line of the ledger', () => lines()[before]);
    },
    open: async (count, bytesOf) => {
      const sockets: Socket[] = [];
      // As many at once as the queue of a listening socket holds.
      while (sockets.length < count) {
        const made = Array.from({ length: Math.min(100, count - sockets.length) }, () =>
          connect(proxy.port, '127.0.0.1').setNoDelay(),
        );
        for (const socket of made) socket.on('error', () => undefined);
        await Promise.all(made.map(async (socket) => once(socket, 'connect')));
        sockets.push(...made);
      }
      for (const [index, socket] of sockets.entries()) socket.write(bytesOf(index));
      t.teardown(() => {
        for (const socket of sockets) socket.destroy();
      });
      return sockets;
    },
    read: async () => {
      await until('everything is read', () => kernelConnections(proxy.port).unread === 0);
    },
    gauge: async (name, value) => {
      await until(`${name} is ${String(value)}`, async () => (await proxy.metric(name)) === value, 120_000);
    },
    head: (request, fields = '') =>
      `${request} HTTP/1.1\r\nHost: a\r\nAuthorization: ${proxy.authorization()['Authorization'] ?? ''}\r\n${fields}\r\n`,
  };
}

export interface Drip {
  readonly rounds: number;
  /** What is written for it. */
  readonly byte?: string;
  readonly isRead: () => boolean;
}

/** Something that takes bytes, one after the other. */
interface Taker {
  write: (bytes: string) => boolean;
}

/** Gives each of them a byte, and again once that was read: each byte is a piece of its own. */
export async function drip(takers: readonly Taker[], { rounds, byte = 'x', isRead }: Drip): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    for (const taker of takers) taker.write(byte);
    do await new Promise(setImmediate);
    while (!isRead());
  }
}
