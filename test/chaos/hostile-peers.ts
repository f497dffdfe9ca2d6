/** Servers that treat whoever connects badly, by TCP alone or once TLS is agreed on. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { TLSSocket, type TLSSocketOptions } from 'node:tls';
import { listen } from '../support/listening.js';
import type { Scope } from '../support/scope.js';
import { brokenRecord } from '../support/tls-records.js';

/** The connection below what is served on it: the same one without TLS. */
interface Below {
  readonly reset: () => void;
  /** Bytes that were not encrypted. */
  readonly write: (bytes: Buffer) => void;
}

export interface HostilePeer {
  readonly name: string;
  /** Whether it breaks off in the midst of a response, of which a caller may have seen nothing yet. */
  readonly breaksOff?: true;
  /** Called with each connection; none where nobody listens. */
  readonly serve: ((socket: Socket, below: Below) => void) | null;
}

/** Some milliseconds on: while the other side waits. */
const meanwhileMs = 100;

export const hostilePeers: readonly HostilePeer[] = [
  { name: 'nobody listens', serve: null },
  { name: 'says nothing', serve: () => undefined },
  {
    name: 'resets in the midst of connecting',
    serve: (_socket, { reset }) => void setTimeout(reset, meanwhileMs),
  },
  { name: 'ends in the midst of connecting', serve: (socket) => void setTimeout(() => socket.end(), meanwhileMs) },
  { name: 'speaks something else', serve: (socket) => void socket.write('220 mail.example.com ESMTP\r\n') },
  {
    name: 'speaks something else and resets',
    serve: (socket, { reset }) => void socket.write('220 mail.example.com ESMTP\r\n', reset),
  },
  {
    name: 'resets after half a response',
    breaksOff: true,
    serve: (socket, { reset }) =>
      void socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\nhalf');
        setTimeout(reset, meanwhileMs);
      }),
  },
  {
    name: 'drips a response and resets',
    breaksOff: true,
    serve: (socket, { reset }) =>
      void socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n');
        const drip = setInterval(() => socket.write('1\r\n \r\n'), 20);
        setTimeout(() => {
          clearInterval(drip);
          reset();
        }, 10 * meanwhileMs);
      }),
  },
  {
    name: 'breaks TLS at once',
    serve: (_socket, { write }) => write(brokenRecord()),
  },
  {
    name: 'breaks TLS and resets',
    serve: (socket, { write, reset }) =>
      void socket.once('data', () => {
        write(brokenRecord());
        setTimeout(reset, 20);
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
    serve?.(socket, {
      reset: () => connection.resetAndDestroy(),
      write: (bytes) => void connection.write(bytes),
    });
  };
  const server: Server = createServer((connection) => {
    if (tls === null) {
      accept(connection, connection);
      return;
    }
    // Apart from the connection, so that bytes can be written past it.
    const socket = new TLSSocket(Duplex.from({ readable: connection, writable: connection }), {
      ...tls,
      isServer: true,
    });
    socket.on('error', () => undefined).once('secure', () => accept(connection, socket));
  });
  const { port } = await listen(t, server);
  if (serve === null) await once(server.close(), 'close');
  return port;
}
