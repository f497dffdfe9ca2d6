import { connect, Server as NetServer, Socket } from 'node:net';
import type { Server } from 'node:http';

/** What of the handle of a server or socket is used. */
interface TcpHandle {
  /** Takes what is accepted by it; 0 where nothing went wrong. */
  onconnection?: (status: number, accepted: unknown) => void;
  /** Calls listen(2), on a socket that listens already too, which takes the new length of the queue. */
  readonly listen?: (backlog: number) => number;
  /** Calls getpeername(2); 0 exactly where the connection is established. */
  readonly getpeername?: (into: object) => number;
  readonly unref?: () => void;
  readonly close?: () => void;
}

/** Further handles of the socket that a server listens on, which are open as long as it is. */
const besides = new WeakMap<NetServer, TcpHandle[]>();

/** What a server of TLS keeps of its options. */
interface TlsServer {
  readonly requestCert?: boolean;
  readonly ca?: unknown;
  readonly _contexts?: readonly unknown[];
  readonly [option: symbol]: unknown;
}

/**
 * Whether a server asks callers for certificates and was given the authorities that vouch for them. Without `ca` every
 * public authority vouches for them; and nobody knows what the contexts of `addContext` and of an `SNICallback` were
 * given, so both count as not given. Reads `server.ca`, `server.requestCert`, `server._contexts` and
 * `server[kSNICallback]`.
 */
export function namesAuthorities(server: Server): boolean {
  const tls = server as object as TlsServer;
  const callback = Object.getOwnPropertySymbols(tls).find(({ description }) => description === 'snicallback');
  const hasOneContext = tls._contexts?.length === 0 && callback !== undefined && tls[callback] === undefined;
  return tls.requestCert === true && tls.ca !== undefined && hasOneContext;
}

/** Loopback addresses that stand for "all addresses", which nothing can be connected to everywhere. */
const loopback: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/**
 * How long connections that wait are accepted before a listener is closed, milliseconds. Only where the CPU has run out
 * is the moment at which none waits further away than a few.
 *
 * @param graceMs what the shutdown has in all.
 */
export function longestAcceptMs(graceMs: number): number {
  return Math.min(2_000, graceMs / 4);
}

/**
 * Accepts no more connections, by `net.Server.prototype.close`. The `close` of `http.Server` also ends connections
 * whose last response is still being read, and looks for late heads no more.
 *
 * The system resets connections that it took and nobody accepted. So its queue is made to hold one connection at most,
 * and the server is closed at a moment when this one is our own: whoever comes in that moment is not connected, and
 * sees the closed port. Where that moment does not come within `withinMs`, the server is closed all the same. A caller
 * on another machine, or on another processor, whose last packet of the handshake is still on its way is reset as by
 * every server: that is what the time between the announcement of a shutdown and its beginning is for.
 *
 * @param does `onStopped` is called when the port is closed, `onClosed` when the last connection is.
 */
export function stopAccepting(
  server: NetServer,
  withinMs: number,
  does: { readonly onStopped?: () => void; readonly onClosed: () => void },
): void {
  const close = (): void => {
    for (const beside of besides.get(server) ?? []) beside.close?.();
    besides.delete(server);
    NetServer.prototype.close.call(server, () => {
      does.onClosed();
    });
    does.onStopped?.();
  };
  const address = server.address();
  const handle = handleOf(server);
  if (typeof address !== 'object' || address === null || handle?.listen === undefined) {
    close();
    return;
  }
  handle.listen(0);
  const deadlineMs = performance.now() + withinMs;
  let hasAccepted = true;
  const onConnection = (): void => {
    hasAccepted = true;
  };
  server.on('connection', onConnection);
  const end = (): void => {
    close();
    server.off('connection', onConnection);
  };
  // libuv accepts connections once in each turn of the event loop: this comes after a turn that brought none.
  const look = (): void => {
    const isLate = performance.now() >= deadlineMs;
    if (hasAccepted && !isLate) {
      hasAccepted = false;
      setImmediate(look);
      return;
    }
    const own = connect({ host: loopback[address.address] ?? address.address, port: address.port });
    own.on('error', () => undefined);
    // Node calls connect(2) in the next tick, which is still before the event loop accepts anything.
    process.nextTick(() => {
      if (isLate || handleOf(own)?.getpeername?.({}) === 0) end();
      else setImmediate(look);
      own.destroy();
    });
  };
  setImmediate(look);
}

/**
 * Takes Node's own listener for connections away from a server that has no other yet: the one by which TLS begins on
 * each of them, or by which its parser of HTTP/1 takes each.
 *
 * @returns has TLS, or the parser, take this connection. What was read of it before, and put back, goes to TLS; the
 *   parser takes what goes to the listeners for `data`.
 */
export function takeConnectionListener(
  server: Server,
  event: 'connection' | 'secureConnection',
): (socket: Socket) => void {
  const [listener, ...others] = server.listeners(event);
  if (listener === undefined || others.length > 0) {
    throw new Error(`Node has ${others.length + 1} listeners for ${event}`);
  }
  server.removeAllListeners(event);
  return (socket) => {
    listener.call(server, socket);
  };
}

/** A connection, as another process sends it. */
interface ConnectionHandle {
  readonly setNoDelay?: (isOn: boolean) => number;
  readonly setKeepAlive?: (isOn: boolean, delayS: number) => number;
  readonly close: () => void;
}

/** What a server keeps of its options, and its count of connections. */
interface CountingServer {
  _connections: number;
  readonly maxConnections?: number;
  readonly allowHalfOpen?: boolean;
  readonly noDelay?: boolean;
  readonly keepAlive?: boolean;
  readonly keepAliveInitialDelay?: number;
}

/** What a socket knows of the server that counts it. */
interface CountedSocket {
  server?: NetServer;
  _server?: NetServer;
}

/**
 * Has a server serve a connection that it did not accept itself, as it does those: with its options for sockets, within
 * `maxConnections`, beyond which it tells of `drop`, and counted, so that it is closed with its last connection. Reads
 * `server.allowHalfOpen`, `server.noDelay`, `server.keepAlive`, `server.keepAliveInitialDelay`, adds to
 * `server._connections`, and sets `socket.server` and `socket._server`, by which a socket is counted off.
 *
 * @param given what the message that came from the process that accepted it brought with it.
 */
export function adoptConnection(server: NetServer, given: unknown): void {
  const handle = given as ConnectionHandle;
  const counting = server as unknown as CountingServer;
  if (counting.maxConnections !== undefined && counting._connections >= counting.maxConnections) {
    handle.close();
    server.emit('drop');
    return;
  }
  const { allowHalfOpen } = counting;
  const socket = new Socket({ handle, allowHalfOpen, readable: true, writable: true } as object);
  if (counting.noDelay === true) handle.setNoDelay?.(true);
  if (counting.keepAlive === true) handle.setKeepAlive?.(true, counting.keepAliveInitialDelay ?? 0);
  counting._connections += 1;
  Object.assign(socket as CountedSocket, { server, _server: server });
  server.emit('connection', socket);
}

/**
 * Has a server of HTTP that listens nowhere look for heads and requests that take too long: Node begins that at the
 * event `listening`.
 */
export function watchForLateHeads(server: Server): void {
  server.emit('listening');
}

/**
 * Has a server accept connections by one more handle of the socket it listens on: libuv accepts one connection for each
 * handle in each turn of the event loop, so that many wait where turns are long. The handle is closed with the server,
 * by `stopAccepting`, or at once where that does not listen any more. Sets `handle.onconnection`.
 *
 * @param given a handle of the same socket with a file descriptor of its own, as another process sends it.
 * @param queue how many connections may wait: listen(2) is called once more.
 */
export function acceptBeside(server: NetServer, given: unknown, queue: number): void {
  const handle = given as TcpHandle;
  if (!server.listening) {
    handle.close?.();
    return;
  }
  handle.onconnection = (status, accepted) => {
    if (status === 0) adoptConnection(server, accepted);
  };
  handle.listen?.(queue);
  handle.unref?.();
  besides.set(server, [...(besides.get(server) ?? []), handle]);
}

/** The handle by which a server listens, for another process; `null` where it does not. Reads `server._handle`. */
export function listeningHandle(server: NetServer): object | null {
  return handleOf(server);
}

/** The handle of a connection, for another process; `null` once it is closed. Reads `socket._handle`. */
export function connectionHandle(socket: Socket): object | null {
  return handleOf(socket);
}

function handleOf(holder: NetServer | Socket): TcpHandle | null {
  return '_handle' in holder ? (holder._handle as TcpHandle | null) : null;
}
