import { connect, Socket, type NetConnectOpts } from 'node:net';
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { onPushedEnd, wasReset } from '../node-internals/socket.js';

/** A connection to the upstream, opened or being opened. */
export interface OpenSocket {
  readonly socket: Socket;
  /**
   * Once the socket said `end`: whether the upstream said so. Whoever is on the way can end TCP, but cannot say within
   * TLS that it ends (RFC 8446 §6.1), and a response that ends with its connection is whole only then (RFC 9112 §9.8).
   */
  readonly endedItself: () => boolean;
  /**
   * Gives it up so that its port can be used at once, and not after the minute that a farewell takes (RFC 9293 §3.6.1).
   */
  readonly reset: () => void;
}

interface OpenTlsSocket extends OpenSocket {
  readonly socket: TLSSocket;
}

/**
 * Takes what was read. `false` reads no more until `resume`. The bytes are good until it returns: the next read fills
 * the same place.
 */
export type OnRead = (bytes: Buffer) => boolean;

/** How long a connection is idle before the system asks whether the upstream is still there. */
const keepAliveDelayMs = 60_000;

/**
 * What a read fills, whichever connection it is of: reads follow one another, and what is kept of one is copied. A
 * place for each connection would have to be fetched into the processor's caches each time.
 */
const readBuffer = Buffer.allocUnsafeSlow(64 * 1024);

export function openSocket(place: NetConnectOpts, onRead?: OnRead): OpenSocket {
  const reading =
    onRead === undefined
      ? {}
      : { onread: { buffer: readBuffer, callback: (length: number) => onRead(readBuffer.subarray(0, length)) } };
  const socket = prepared(connect({ ...place, ...reading }));
  return {
    socket,
    endedItself: () => !wasReset(socket),
    reset: () => {
      reset(socket, place);
    },
  };
}

export function openTlsSocket(place: NetConnectOpts, options: ConnectionOptions, onRead?: OnRead): OpenTlsSocket {
  // A socket that is not connected yet is read through Node's streams, not past them, so that its `end` is told here.
  const tcp = new Socket();
  let tcpHasEnded = false;
  let endedItself = false;
  // Registered before TLS listens, so that the end of TCP is known here before TLS acts on it.
  tcp.once('end', () => {
    tcpHasEnded = true;
  });
  const socket = connectTls({ ...options, socket: tcp });
  prepared(tcp.connect(place));
  // TLS pushes its end when the upstream says it, or else when TCP has ended.
  onPushedEnd(socket, () => {
    endedItself ||= !tcpHasEnded;
  });
  if (onRead !== undefined) {
    socket.on('data', (bytes: Buffer) => {
      if (!onRead(bytes)) socket.pause();
    });
  }
  return {
    socket,
    endedItself: () => endedItself,
    reset: () => {
      reset(tcp, place);
    },
  };
}

function prepared(tcp: Socket): Socket {
  return tcp.setNoDelay(true).setKeepAlive(true, keepAliveDelayMs);
}

/** Unix sockets have no ports, and Node resets none. */
function reset(tcp: Socket, place: NetConnectOpts): void {
  if ('path' in place) tcp.destroy();
  else tcp.resetAndDestroy();
}
