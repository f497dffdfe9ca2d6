import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import type { Scope } from './scope.js';

export interface Listening {
  readonly port: number;
  /** Ends the server and every connection to it. */
  readonly close: () => Promise<void>;
}

/** Listens on loopback, on a free port unless one is named, until the test ends. */
export async function listen(t: Scope, server: Server, port = 0): Promise<Listening> {
  const sockets = new Set<{ destroy: () => unknown }>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => {
      server.close(() => {
        resolve();
      });
    });
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  t.teardown(close);
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return { port: address.port, close };
}

/**
 * A port that was free a moment ago, from below those that the system hands out: a client that tries again and again to
 * reach a server that is down could else be given the server's own port.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(12_000, 32_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
