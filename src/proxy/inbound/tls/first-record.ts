import type { Socket } from 'node:net';
import { stopReading } from '../../node-internals/socket.js';

/** Type, version and length of a record (RFC 8446 §5.1). */
const recordHeaderBytes = 5;

/** The type of a record of a handshake. */
const handshakeType = 22;

/** A record of 16 KiB (RFC 8446 §5.1), and what came with it in one read. */
const mostBytes = recordHeaderBytes + 16_384 + 1_024;

/**
 * Reads the first record of a connection, in which a client of TLS says hello, however many packets that comes in. So a
 * connection that says nothing yet, or too little, takes no TLS and waits for no turn. One that says more, or ends, is
 * ended.
 *
 * @param onRecord it is here, or what is here is none; what was read was put back, and no more is read.
 */
export function awaitFirstRecord(socket: Socket, onRecord: () => void): void {
  let read: Buffer = Buffer.alloc(0);
  const end = (): void => {
    socket.destroy();
  };
  const onData = (bytes: Buffer): void => {
    read = read.length === 0 ? bytes : Buffer.concat([read, bytes]);
    if (read.length > mostBytes) {
      end();
      return;
    }
    if (!isRecordWhole(read)) return;
    socket.off('data', onData).off('end', end);
    socket.pause();
    stopReading(socket);
    socket.unshift(read);
    onRecord();
  };
  // A reset would end the process: while it waits for its turn, too.
  socket
    .on('error', () => undefined)
    .on('end', end)
    .on('data', onData);
}

/** What is no record of a handshake is TLS's to refuse, which costs nothing. */
function isRecordWhole(bytes: Buffer): boolean {
  if (bytes[0] !== handshakeType) return true;
  return bytes.length >= recordHeaderBytes && bytes.length >= recordHeaderBytes + bytes.readUInt16BE(3);
}
