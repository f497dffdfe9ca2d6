import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ListenSettings } from '../config/compiled.js';
import { createAddressTest } from '../decision/trusted-address.js';
import { CallerConnection } from './caller-connection.js';

/** Every connection to a listener, from its first packet on. */
export interface CallerConnections {
  /** The connection that serves requests of this socket. */
  readonly of: (socket: Socket) => CallerConnection | undefined;
  readonly count: () => number;
  /** Ends those on which no request has begun, and the others when theirs are answered. */
  readonly closeWhenIdle: () => void;
  /** Ends all, with a word to callers whose request was not sent on. */
  readonly cutOff: () => void;
  /** Resolves once none is open and each one's request has ended: a server says that it is closed before that. */
  readonly allClosed: () => Promise<void>;
}

/** Keeps the connections of a server. `isTls`: whether they begin with a handshake. */
export function createCallerConnections(server: Server, settings: ListenSettings, isTls: boolean): CallerConnections {
  /** As the system knows them: over TLS, those whose handshake is not complete are only here. */
  const sockets = new Set<Socket>();
  const connections = new Map<Socket, CallerConnection>();
  let onEmpty = (): void => undefined;
  const isTrusted = createAddressTest(settings.trustForwarded);

  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      if (sockets.size === 0) onEmpty();
    });
  });
  server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
    const remoteAddress = socket.remoteAddress ?? '';
    const encrypted = socket instanceof TLSSocket || settings.tlsTerminatedBy !== null;
    connections.set(socket, new CallerConnection(socket, { remoteAddress, encrypted, trusted: isTrusted(remoteAddress) }));
    socket.once('close', () => connections.delete(socket));
  });
  return {
    of: socket => connections.get(socket),
    count: () => sockets.size,
    closeWhenIdle: () => {
      for (const connection of connections.values()) connection.closeWhenIdle();
      const serving = new Set([...connections.keys()].map(remoteEnd));
      for (const socket of sockets) {
        if (!serving.has(remoteEnd(socket))) socket.destroy();
      }
    },
    cutOff: () => {
      for (const connection of connections.values()) connection.cutOff();
      for (const socket of sockets) socket.destroy();
    },
    allClosed: () => new Promise((resolve) => {
      onEmpty = resolve;
      if (sockets.size === 0) resolve();
    }),
  };
}

/** The same for a TCP connection and for the TLS connection on it, and for no other. */
function remoteEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress ?? ''} ${remotePort ?? ''}`;
}
