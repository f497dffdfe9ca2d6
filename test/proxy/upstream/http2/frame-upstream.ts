/** A receiver that writes HTTP/2 frames as it is told and nothing else: for what no HTTP/2 server would send. */
import type { ClientHttp2Session } from 'node:http2';
import { createServer, type Socket } from 'node:net';
import { listen } from '../../../support/listening.js';
import type { Scope } from '../../../support/scope.js';

/** Types of frames (RFC 9113 §6). */
export const frameType = {
  data: 0,
  headers: 1,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flag = { endStream: 0x1, ack: 0x1, endHeaders: 0x4 } as const;

/** Error codes (RFC 9113 §7). */
export const code = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  streamClosed: 5,
  frameSizeError: 6,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  connectError: 10,
  enhanceYourCalm: 11,
  inadequateSecurity: 12,
  http11Required: 13,
} as const;

/** Names of settings (RFC 9113 §6.5.2). */
export const setting = { maxConcurrentStreams: 3, initialWindowSize: 4 } as const;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
  readonly payload: Buffer;
}

/** One connection, as the receiver sees it. */
export interface Peer {
  readonly socket: Socket;
  /** The how manieth connection it is, from 1 on. */
  readonly number: number;
  /** All that came on it, in order. */
  readonly frames: Frame[];
  /** Writes frames in one piece. */
  readonly send: (...frames: readonly Buffer[]) => void;
}

export interface FrameUpstream {
  readonly url: string;
  readonly port: number;
  readonly peers: Peer[];
  /** Frames of this type that came, over all connections. */
  readonly came: (type: number) => readonly Frame[];
}

interface FrameUpstreamOptions {
  /** What it says of itself at first; nothing unless given. `null` sends no settings at all. */
  readonly settings?: readonly (readonly [number, number])[] | null;
  /** Whether it leaves PING frames unanswered, and settings but its first. */
  readonly ignoresPings?: boolean;
}

const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const headBytes = 9;

/** Starts one; `onRequest` hears of each whole request head, `onFrame` of every frame. */
export async function startFrameUpstream(
  t: Scope,
  onRequest: (streamId: number, peer: Peer) => void,
  { settings = [], ignoresPings = false }: FrameUpstreamOptions = {},
  onFrame: (frame: Frame, peer: Peer) => void = () => undefined,
): Promise<FrameUpstream> {
  const peers: Peer[] = [];
  const server = createServer((socket) => {
    const frames: Frame[] = [];
    const send: Peer['send'] = (...sent) => {
      if (!socket.destroyed) socket.write(Buffer.concat(sent));
    };
    const peer: Peer = { socket, number: peers.length + 1, frames, send };
    peers.push(peer);
    if (settings !== null) send(settingsFrame(settings));
    let rest = Buffer.alloc(0);
    let isBegun = false;
    let isAsked = false;
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      rest = Buffer.concat([rest, bytes]);
      if (!isBegun && rest.length >= preface.length) {
        isBegun = true;
        rest = rest.subarray(preface.length);
      }
      while (isBegun && rest.length >= headBytes && rest.length >= headBytes + rest.readUIntBE(0, 3)) {
        const length = rest.readUIntBE(0, 3);
        const frame = {
          type: rest[3] ?? 0,
          flags: rest[4] ?? 0,
          streamId: rest.readUInt32BE(5),
          payload: Buffer.from(rest.subarray(headBytes, headBytes + length)),
        };
        rest = rest.subarray(headBytes + length);
        frames.push(frame);
        const isAck = (frame.flags & flag.ack) !== 0;
        if (frame.type === frameType.settings && !isAck && !(ignoresPings && isAsked)) {
          isAsked = true;
          send(frameOf(frameType.settings, flag.ack, 0));
        }
        if (frame.type === frameType.ping && !isAck && !ignoresPings) {
          send(frameOf(frameType.ping, flag.ack, 0, frame.payload));
        }
        onFrame(frame, peer);
        if (frame.type === frameType.headers) onRequest(frame.streamId, peer);
      }
    });
  });
  const { port } = await listen(t, server);
  return {
    url: `http://127.0.0.1:${String(port)}`,
    port,
    peers,
    came: (type) => peers.flatMap(({ frames }) => frames.filter((frame) => frame.type === type)),
  };
}

export function frameOf(type: number, flags: number, streamId: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

export function settingsFrame(pairs: readonly (readonly [number, number])[]): Buffer {
  const payload = Buffer.alloc(6 * pairs.length);
  pairs.forEach(([name, value], index) => {
    payload.writeUInt16BE(name, 6 * index);
    payload.writeUInt32BE(value, 6 * index + 2);
  });
  return frameOf(frameType.settings, 0, 0, payload);
}

/** Literal fields without any table (RFC 7541 §6.2.2), of texts shorter than 127 bytes. */
export function fieldBlock(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    fields.map(([name, value]) =>
      Buffer.concat([
        Buffer.from([0, name.length]),
        Buffer.from(name, 'latin1'),
        Buffer.from([value.length]),
        Buffer.from(value, 'latin1'),
      ]),
    ),
  );
}

interface HeadOptions {
  readonly fields?: readonly (readonly [string, string])[];
  readonly end?: boolean;
}

/** A response head. */
export function head(streamId: number, status: number, { fields = [], end = false }: HeadOptions = {}): Buffer {
  const block = fieldBlock([[':status', String(status)], ...fields]);
  return frameOf(frameType.headers, flag.endHeaders | (end ? flag.endStream : 0), streamId, block);
}

export function trailerFrame(streamId: number, fields: readonly (readonly [string, string])[]): Buffer {
  return frameOf(frameType.headers, flag.endHeaders | flag.endStream, streamId, fieldBlock(fields));
}

export function data(streamId: number, bytes: string | Buffer, end = false): Buffer {
  return frameOf(frameType.data, end ? flag.endStream : 0, streamId, Buffer.from(bytes as string));
}

export function reset(streamId: number, errorCode: number): Buffer {
  return frameOf(frameType.rstStream, 0, streamId, uint32(errorCode));
}

export function goaway(lastId: number, errorCode: number): Buffer {
  return frameOf(frameType.goaway, 0, 0, Buffer.concat([uint32(lastId), uint32(errorCode)]));
}

export function windowUpdate(streamId: number, bytes: number): Buffer {
  return frameOf(frameType.windowUpdate, 0, streamId, uint32(bytes));
}

export function ping(payload = 'sallyprt'): Buffer {
  return frameOf(frameType.ping, 0, 0, Buffer.from(payload));
}

/** A whole answer. */
export function whole(streamId: number, body: string): Buffer {
  return Buffer.concat([head(streamId, 200), data(streamId, body, true)]);
}

/** Has the next stream of a session be of this id: Node has a method for it that its types do not know. */
export function setNextId(session: ClientHttp2Session, id: number): void {
  (session as ClientHttp2Session & { readonly setNextStreamID: (id: number) => void }).setNextStreamID(id);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
