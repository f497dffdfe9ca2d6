import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Holds a server to so many connections: one more takes the place of the oldest that has no complete request, or of the
 * oldest of all where every one is being answered. `Server.maxConnections` would refuse the new one: whoever opens
 * connections and says nothing would keep every monitor out.
 */
export function limitConnections(server: Server, maxConnections: number): void {
  /** In the order in which they came. */
  const open = new Set<Socket>();
  /** Those without a complete request, in the order in which they began to wait for one. */
  const silent = new Set<Socket>();

  server.on('connection', (socket: Socket) => {
    if (open.size >= maxConnections) forget(silent.values().next().value ?? open.values().next().value)?.destroy();
    open.add(socket);
    silent.add(socket);
    socket.once('close', () => forget(socket));
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    silent.delete(socket);
    response.once('close', () => {
      if (open.has(socket)) silent.add(socket);
    });
  });

  function forget(socket: Socket | undefined): Socket | undefined {
    if (socket === undefined) return undefined;
    open.delete(socket);
    silent.delete(socket);
    return socket;
  }
}
