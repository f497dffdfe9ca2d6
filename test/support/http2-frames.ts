/** HTTP/2 by hand: frames of any form, for what no client sends (RFC 9113 §4, RFC 7541). */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Scope } from './scope.js';

export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = { endStream: 1, ack: 1, endHeaders: 4, padded: 8, priority: 32 } as const;

export const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** A frame as it came. */
export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export function frame(type: number, flag: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flag, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A number of four bytes. */
export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Names and values in turn as literals that nobody indexes, one byte for each character (RFC 7541 §6.2.2). */
export function fieldBlock(fields: readonly string[]): Buffer {
  const pieces: Buffer[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    pieces.push(Buffer.from([0]), text(fields[i] ?? ''), text(fields[i + 1] ?? ''));
  }
  return Buffer.concat(pieces);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  while (rest >= 128) {
    length.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  length.push(rest);
  return Buffer.concat([Buffer.from(length), bytes]);
}

/** A whole head in one frame. */
export function headers(stream: number, fields: readonly string[], endStream = true): Buffer {
  return frame(frameTypes.headers, flags.endHeaders + (endStream ? flags.endStream : 0), stream, fieldBlock(fields));
}

export interface FrameClient {
  readonly socket: Socket;
  readonly write: (bytes: Buffer) => void;
  /** All that came. */
  readonly frames: Frame[];
  /** Waits for one that came or comes; rejects when the connection ends before. */
  readonly next: (title: string, isIt: (frame: Frame) => boolean) => Promise<Frame>;
  /** Resolves when the connection has ended, however. */
  readonly closed: Promise<void>;
}

/** Opens a connection and says the preface, with settings of its own: pairs of identifier and value. */
export async function connectFrames(
  scope: Scope,
  port: number,
  settings: readonly (readonly [number, number])[] = [],
  localAddress = '127.0.0.1',
): Promise<FrameClient> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  scope.teardown(() => socket.destroy());
  await once(socket, 'connect');
  const frames: Frame[] = [];
  let rest = Buffer.alloc(0);
  const waiting = new Set<() => void>();
  socket.on('data', (bytes: Buffer) => {
    rest = Buffer.concat([rest, bytes]);
    while (rest.length >= 9) {
      const length = rest.readUIntBE(0, 3);
      if (rest.length < 9 + length) break;
      frames.push({
        type: rest.readUInt8(3),
        flags: rest.readUInt8(4),
        stream: rest.readUInt32BE(5) & 0x7fffffff,
        payload: rest.subarray(9, 9 + length),
      });
      rest = rest.subarray(9 + length);
    }
    for (const look of waiting) look();
  });
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => resolve());
  });
  const payload = settings.map(([id, value]) => {
    const bytes = Buffer.alloc(6);
    bytes.writeUInt16BE(id, 0);
    bytes.writeUInt32BE(value, 2);
    return bytes;
  });
  socket.write(Buffer.concat([preface, frame(frameTypes.settings, 0, 0, Buffer.concat(payload))]));
  return {
    socket,
    frames,
    closed,
    write: (bytes) => {
      if (!socket.destroyed) socket.write(bytes);
    },
    next: (title, isIt) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = frames.find(isIt);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
        void closed.then(() => {
          look();
          reject(new Error(`the connection ended before ${title}`));
        });
      }),
  };
}
