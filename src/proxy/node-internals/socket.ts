import { readSync } from 'node:fs';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/**
 * Asks `takesOver` when Node wants to end a connection after its last response. Node calls `socket.destroySoon` then,
 * which closes at once, and a client that still sends is reset and may lose the response with what it had not read yet
 * (RFC 9112 §9.6).
 *
 * @param takesOver `true` where the connection is ended in another way.
 */
export function onDestroySoon(socket: Socket, takesOver: () => boolean): void {
  const destroySoon = socket.destroySoon.bind(socket);
  socket.destroySoon = () => {
    if (!takesOver()) destroySoon();
  };
}

/**
 * Keeps Node from reading on while `isHeld`: it calls `socket.resume` when a body is wanted or some of a response went
 * out, whatever waits.
 *
 * @returns reads on all the same.
 */
export function holdResume(socket: Socket, isHeld: () => boolean): () => Socket {
  const resume = socket.resume.bind(socket);
  socket.resume = () => (isHeld() ? socket : resume());
  return resume;
}

/**
 * Has each `socket.pause` stop the reading. Node's HTTP server, which reads past the stream, stops by the event
 * `pause`, and a stream that is paused already tells of none; but it may be read from all the same: after a `resume`
 * right before the pause, of which Node tells in the next tick, or where the stream's own reading was begun before the
 * parser took its place. What a caller sends would be held, all of it.
 */
export function keepPaused(socket: Socket): void {
  const pause = socket.pause.bind(socket);
  socket.pause = () => {
    if (!socket.isPaused()) return pause();
    socket.emit('pause');
    return socket;
  };
}

/**
 * Puts `listener` in the place of Node's parser, which reads past the stream until somebody else listens for `data`:
 * `removeAllListeners('data')` takes its own listener away, and it stops reading past the stream when another comes.
 */
export function readInPlaceOfParser(socket: Socket, listener: (bytes: Buffer) => void): void {
  socket.removeAllListeners('data').on('data', listener);
  wakeStream(socket);
}

/**
 * Tells a stream that a read it waits for is over, by `push('')`. While the parser read past it, or since the parser
 * was stopped, the stream believes that it is reading and would wait for ever.
 */
export function wakeStream(socket: Socket): void {
  socket.push('');
}

/**
 * Calls `onEnd` when a TLS connection pushes its end, `push(null)`: as long as TCP below it has not ended, the other
 * side said so within TLS. Node's `end` event comes later and tells nothing of that.
 */
export function onPushedEnd(socket: TLSSocket, onEnd: () => void): void {
  const push = socket.push.bind(socket);
  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk === null) onEnd();
    return push(chunk, encoding);
  };
}

/** The connection that TLS was begun on: `tls._parent`. Its addresses would name it no longer once it is closed. */
export function socketBelow(socket: TLSSocket): Socket {
  return (socket as TLSSocket & { readonly _parent: Socket | null })._parent ?? socket;
}

interface Handle {
  /** Of TCP alone. 0 where it is connected, else an error of libuv. */
  readonly getpeername?: (into: object) => number;
  /** The file descriptor. */
  readonly fd?: number;
  readonly reading: boolean;
  readonly bytesWritten: number;
  readonly writeQueueSize: number;
  readonly readStop: () => void;
  readonly readStart: () => void;
}

/**
 * Has nothing more read from a connection that Node's HTTP/2 reads past the stream, so that `pause` changes nothing:
 * `_handle.readStop`. What was read already is parsed. Node starts to read again by itself after a write that took
 * time.
 */
export function stopReading(socket: Socket): void {
  handleOf(socket)?.readStop();
}

/** Reads on after `stopReading`: `_handle.readStart`. */
export function startReading(socket: Socket): void {
  handleOf(socket)?.readStart();
}

/** Connections that wait for their turn to be read. */
const inTurns = new WeakSet<Socket>();

/** Has nothing more read from a connection, as `stopReading`, until it is its turn. */
export function waitForTurn(socket: Socket): void {
  inTurns.add(socket);
  stopReading(socket);
}

/** It is its turn: reads on, where somebody wants more of it now; else whoever does reads on. */
export function takeTurn(socket: Socket): void {
  inTurns.delete(socket);
  readOnInTurn(socket);
}

/** Reads on after `stopReading`, where the connection is wanted, and waits for no turn. */
export function readOnInTurn(socket: Socket): void {
  if (isReading(socket) && !inTurns.has(socket)) startReading(socket);
}

/**
 * Whether the stream, or the parser in its place, wants what comes: `_handle.reading`, which `stopReading` leaves as it
 * is.
 */
export function isReading(socket: Socket): boolean {
  return handleOf(socket)?.reading ?? false;
}

/**
 * Bytes that the system has taken: `_handle.bytesWritten` less `_handle.writeQueueSize`. Node counts a write as a whole
 * until all of it was taken, and TLS has a queue of its own, so that it is asked of TCP below it. 0 once it is closed.
 */
export function sentBytes(socket: Socket): number {
  const handle = handleOf(socket instanceof TLSSocket ? socketBelow(socket) : socket);
  return handle === null ? 0 : handle.bytesWritten - handle.writeQueueSize;
}

const oneByte = Buffer.alloc(1);

/**
 * Whether a TCP connection that said `end` was reset, and not ended by the other side: asked within `end`. libuv up to
 * 1.51 (Node.js 20 and 22) tells a reset that came with the last bytes as an end, and does not ask the system further.
 * So it is asked here, where neither side is connected any more (`_handle.getpeername` fails), by one more read
 * (`_handle.fd`): of nothing after an end, also where a reset followed that, and an error after a reset alone. Always
 * `false` for other connections.
 */
export function wasReset(socket: Socket): boolean {
  const handle = handleOf(socket);
  if ((handle?.getpeername?.({}) ?? 0) >= 0 || handle?.fd === undefined) return false;
  try {
    return readSync(handle.fd, oneByte) > 0;
  } catch {
    return true;
  }
}

/** `null` once the connection is closed. */
function handleOf(socket: Socket): Handle | null {
  return (socket as Socket & { readonly _handle: Handle | null })._handle;
}
