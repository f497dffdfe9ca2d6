/** Servers that treat whoever connects badly, by TCP alone or once TLS is agreed on. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { TLSSocket, type TLSSocketOptions } from 'node:tls';
import { listen } from '../support/listening.js';
import type { Scope } from '../support/scope.js';

export interface HostilePeer {
  readonly name: string;
  /** Called with each connection, and with what resets it; none where nobody listens. */
  readonly serve: ((socket: Socket, reset: () => void) => void) | null;
}

/** Some milliseconds on: while the other side waits. */
const meanwhileMs = 100;

export const hostilePeers: readonly HostilePeer[] = [
  { name: 'nobody listens', serve: null },
  { name: 'says nothing', serve: () => undefined },
  {
    name: 'resets in the midst of connecting',
    serve: (_socket, reset) => void setTimeout(reset, meanwhileMs),
  },
  { name: 'ends in the midst of connecting', serve: (socket) => void setTimeout(() => socket.end(), meanwhileMs) },
  { name: 'speaks something else', serve: (socket) => void socket.write('220 mail.example.com ESMTP\r\n') },
  {
    name: 'speaks something else and resets',
    serve: (socket, reset) => void socket.write('220 mail.example.com ESMTP\r\n', reset),
  },
  {
    name: 'resets after half a response',
    serve: (socket, reset) =>
      void socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\nhalf');
        setTimeout(reset, meanwhileMs);
      }),
  },
  {
    name: 'drips a response and resets',
    serve: (socket, reset) =>
      void socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n');
        const drip = setInterval(() => socket.write('1\r\n \r\n'), 20);
        socket.once('close', () => clearInterval(drip));
        setTimeout(reset, 10 * meanwhileMs);
      }),
  },
];

/** Its port. With `tls`, it is served once the handshake is over. */
export async function startHostilePeer(
  t: Scope,
  { serve }: HostilePeer,
  tls: TLSSocketOptions | null,
): Promise<number> {
  const accept = (connection: Socket, socket: Socket): void => {
    socket.on('error', () => undefined);
    serve?.(socket, () => connection.resetAndDestroy());
  };
  const server: Server = createServer((connection) => {
    if (tls === null) {
      accept(connection, connection);
      return;
    }
    const socket = new TLSSocket(connection, { ...tls, isServer: true });
    socket.on('error', () => undefined).once('secure', () => accept(connection, socket));
  });
  const { port } = await listen(t, server);
  if (serve === null) await once(server.close(), 'close');
  return port;
}
