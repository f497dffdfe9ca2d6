import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** Opens so many connections, has one request answered on each, and leaves them open; returns what closes them. */
export async function openIdle(port: number, count: number, token: string): Promise<() => void> {
  const sockets: Socket[] = [];
  const head = `GET /orders HTTP/1.1\r\nHost: 127.0.0.1:${String(port)}\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  // Some at a time: a listener's queue of new connections is short.
  while (sockets.length < count) {
    const batch = Array.from({ length: Math.min(50, count - sockets.length) }, () => connect(port, '127.0.0.1'));
    sockets.push(...batch);
    await Promise.all(
      batch.map(async (socket) => {
        socket.on('error', () => undefined);
        socket.write(head);
        await once(socket, 'data');
        socket.resume();
      }),
    );
  }
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}
