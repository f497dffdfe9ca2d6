import type { Socket } from 'node:net';
import { stopReading } from '../../node-internals/socket.js';

/** Type, version and length of a record (RFC 8446 §5.1). */
const recordHeaderBytes = 5;

/** The type of a record of a handshake. */
const handshakeType = 22;

/** A record of 16 KiB (RFC 8446 §5.1), and what came with it in one read. */
const mostBytes = recordHeaderBytes + 16_384 + 1_024;

interface FirstRecordOptions {
  /** Milliseconds that it may take. */
  readonly withinMs: number;
  /** It is here, or what is here is none; what was read is put back, and no more is read. */
  readonly onRecord: () => void;
}

/**
 * Reads the first record of a connection, in which a client of TLS says hello, however many packets that comes in. So a
 * connection that says nothing yet, or too little, takes no TLS and waits for no turn. One that says more, or takes
 * longer, is ended.
 */
export function awaitFirstRecord(socket: Socket, { withinMs, onRecord }: FirstRecordOptions): void {
  let read: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), withinMs);
  const end = (): void => {
    socket.destroy();
  };
  const stop = (): void => {
    clearTimeout(timer);
    socket.off('data', onData).off('close', stop).off('end', end);
  };
  const onData = (bytes: Buffer): void => {
    read = read.length === 0 ? bytes : Buffer.concat([read, bytes]);
    if (read.length > mostBytes) {
      end();
      return;
    }
    if (!isRecordWhole(read)) return;
    stop();
    socket.pause();
    stopReading(socket);
    socket.unshift(read);
    onRecord();
  };
  // A reset would end the process: while it waits for its turn, too.
  socket
    .on('error', () => undefined)
    .on('close', stop)
    .on('end', end)
    .on('data', onData);
}

/** What is no record of a handshake is TLS's to refuse, which costs nothing. */
function isRecordWhole(bytes: Buffer): boolean {
  if (bytes[0] !== handshakeType) return true;
  return bytes.length >= recordHeaderBytes && bytes.length >= recordHeaderBytes + bytes.readUInt16BE(3);
}
