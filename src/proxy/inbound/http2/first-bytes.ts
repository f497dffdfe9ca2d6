import type { Socket } from 'node:net';

/** What a connection of HTTP/2 begins with (RFC 9113 §3.4). */
const clientPreface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

interface ProtocolChoice {
  /** Milliseconds that the first bytes may take. */
  readonly withinMs: number;
  /** It speaks HTTP/1: `first` was read of it. */
  readonly onHttp1: (first: Buffer) => void;
  /** It speaks HTTP/2; what was read is put back. */
  readonly onHttp2: () => void;
}

/**
 * Reads as much of a connection as it takes to tell whether it begins with the preface of HTTP/2, however many packets
 * that comes in. A connection that says too little in time is ended.
 */
export function chooseProtocol(socket: Socket, { withinMs, onHttp1, onHttp2 }: ProtocolChoice): void {
  let read: Buffer = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), withinMs);
  const stop = (): void => {
    clearTimeout(timer);
    socket.off('data', onData).off('error', ignore).off('close', stop).off('end', onEnd);
  };
  const onData = (bytes: Buffer): void => {
    read = read.length === 0 ? bytes : Buffer.concat([read, bytes]);
    const length = Math.min(read.length, clientPreface.length);
    const isPreface = clientPreface.compare(read, 0, length, 0, length) === 0;
    if (isPreface && length < clientPreface.length) return;
    stop();
    if (!isPreface) {
      onHttp1(read);
      return;
    }
    socket.pause();
    socket.unshift(read);
    onHttp2();
  };
  const onEnd = (): void => {
    socket.destroy();
  };
  // Of a connection that nobody serves yet a reset would end the process.
  socket.on('error', ignore).on('close', stop).on('end', onEnd).on('data', onData);
}

const ignore = (): void => undefined;
