/**
 * What a caller of HTTP/2 may send without end, frame by frame. Sources: CVE-2023-44487 (rapid reset), CVE-2025-8671
 * (made you reset), CVE-2024-27983 and VU#421644 (CONTINUATION), CVE-2019-9511 to 9518 (the other floods).
 */
import { fieldBlock, flags, frame, frameTypes, headers, uint32, type FrameClient } from '../http2-frames.js';

/** Error codes of RFC 9113 §7. */
export const codes = {
  noError: 0,
  protocolError: 1,
  internalError: 2,
  flowControlError: 3,
  streamClosed: 5,
  refusedStream: 7,
  cancel: 8,
  compressionError: 9,
  enhanceYourCalm: 11,
} as const;

export interface Http2Flood {
  readonly name: string;
  /**
   * The code that ends the connection, any of them: INTERNAL_ERROR is of Node (20 says it where 24 says the code of
   * RFC 9113), ENHANCE_YOUR_CALM of ours, and for PRIORITY of nghttp2 on Node 24.
   */
  readonly endsWith: readonly number[];
  /** What is sent in turn `turn`, counted from 0; `fields` are those of a request that is let through. */
  readonly frames: (turn: number, fields: readonly string[]) => Buffer;
}

const streamOf = (turn: number): number => 2 * turn + 1;

const repeated = (count: number, one: (index: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_none, index) => one(index)));

/** A stream with each turn, which is opened and then ended by what `then` returns. */
const opened =
  (then: (stream: number) => Buffer, endStream = false) =>
  (turn: number, fields: readonly string[]): Buffer => {
    const stream = streamOf(turn);
    return Buffer.concat([headers(stream, fields, endStream), then(stream)]);
  };

const { enhanceYourCalm, flowControlError, internalError, protocolError, streamClosed } = codes;

export const http2Floods: readonly Http2Flood[] = [
  {
    name: 'streams that are reset at once with CANCEL',
    endsWith: [enhanceYourCalm, internalError],
    frames: opened((stream) => frame(frameTypes.reset, 0, stream, uint32(codes.cancel)), true),
  },
  {
    name: 'streams that are reset at once with NO_ERROR',
    endsWith: [enhanceYourCalm, internalError],
    frames: opened((stream) => frame(frameTypes.reset, 0, stream, uint32(codes.noError)), true),
  },
  {
    name: 'streams that end by a WINDOW_UPDATE of 0',
    endsWith: [internalError, protocolError],
    frames: opened((stream) => frame(frameTypes.windowUpdate, 0, stream, uint32(0)), true),
  },
  {
    name: 'streams that end by a window that overflows',
    endsWith: [internalError, flowControlError],
    frames: opened((stream) => frame(frameTypes.windowUpdate, 0, stream, uint32(2 ** 31 - 1)), true),
  },
  {
    name: 'streams that end by DATA behind their end',
    endsWith: [enhanceYourCalm, streamClosed, protocolError],
    frames: opened((stream) => frame(frameTypes.data, 0, stream, Buffer.from('more')), true),
  },
  {
    name: 'streams that end by more DATA than Content-Length says',
    endsWith: [enhanceYourCalm, internalError],
    frames: (turn, fields) =>
      Buffer.concat([
        headers(streamOf(turn), [...fields, 'content-length', '1'], false),
        frame(frameTypes.data, flags.endStream, streamOf(turn), Buffer.from('more')),
      ]),
  },
  {
    name: 'streams that depend on themselves',
    endsWith: [enhanceYourCalm, protocolError],
    frames: opened(
      (stream) => frame(frameTypes.priority, 0, stream, Buffer.concat([uint32(stream), Buffer.from([1])])),
      true,
    ),
  },
  {
    name: 'streams whose priority is cut short',
    endsWith: [enhanceYourCalm, protocolError, 6],
    frames: opened((stream) => frame(frameTypes.priority, 0, stream, uint32(0)), true),
  },
  {
    name: 'CONTINUATION without end',
    endsWith: [enhanceYourCalm, internalError, protocolError],
    frames: (turn, fields) =>
      turn === 0
        ? frame(frameTypes.headers, flags.endStream, 1, fieldBlock(fields))
        : repeated(16, () => frame(frameTypes.continuation, 0, 1, fieldBlock(['x-more', 'a'.repeat(1_000)]))),
  },
  {
    name: 'empty CONTINUATION without end',
    endsWith: [enhanceYourCalm, internalError, protocolError],
    frames: (turn, fields) =>
      turn === 0
        ? frame(frameTypes.headers, flags.endStream, 1, fieldBlock(fields))
        : repeated(100, () => frame(frameTypes.continuation, 0, 1)),
  },
  {
    name: 'SETTINGS',
    endsWith: [enhanceYourCalm, internalError],
    frames: () => repeated(100, () => frame(frameTypes.settings, 0, 0, Buffer.from([0, 4, 0, 0, 255, 255]))),
  },
  {
    name: 'PING',
    endsWith: [enhanceYourCalm],
    frames: () => repeated(100, () => frame(frameTypes.ping, 0, 0, Buffer.alloc(8))),
  },
  {
    name: 'PRIORITY',
    endsWith: [enhanceYourCalm],
    frames: (turn) =>
      repeated(1_000, (index) =>
        frame(
          frameTypes.priority,
          0,
          2 * ((turn * 1_000 + index) % 100_000) + 1,
          Buffer.concat([uint32(0), Buffer.from([1])]),
        ),
      ),
  },
  {
    name: 'empty DATA',
    endsWith: [enhanceYourCalm, internalError],
    frames: (turn, fields) =>
      turn === 0 ? headers(1, postOf(fields), false) : repeated(1_000, () => frame(frameTypes.data, 0, 1)),
  },
  {
    name: 'DATA of nothing but padding',
    endsWith: [enhanceYourCalm, flowControlError],
    frames: (turn, fields) =>
      turn === 0
        ? headers(1, postOf(fields), false)
        : repeated(100, () =>
            frame(frameTypes.data, flags.padded, 1, Buffer.concat([Buffer.from([200]), Buffer.alloc(200)])),
          ),
  },
  {
    name: 'WINDOW_UPDATE',
    endsWith: [enhanceYourCalm, flowControlError],
    frames: () => repeated(1_000, () => frame(frameTypes.windowUpdate, 0, 0, uint32(1))),
  },
  {
    name: 'frames of an unknown type',
    endsWith: [enhanceYourCalm],
    frames: () => repeated(10, () => frame(0xfa, 0, 0, Buffer.alloc(16_000))),
  },
];

/** The same request with a body to come. */
export function postOf(fields: readonly string[]): readonly string[] {
  return fields.map((text, index) => (fields[index - 1] === ':method' ? 'POST' : text));
}

/** How long a flood goes on at most; milliseconds. */
const limitMs = 30_000;

/**
 * Sends a flood as fast as it is taken, until the connection ends.
 *
 * @returns the code of the last GOAWAY, `null` where none came, in how many turns it was sent, and whether the
 *   connection ended.
 */
export async function flood(
  client: FrameClient,
  { frames }: Http2Flood,
  fields: readonly string[],
): Promise<{ readonly code: number | null; readonly turns: number; readonly ended: boolean }> {
  const until = performance.now() + limitMs;
  let turns = 0;
  const connection = { ended: false };
  void client.closed.then(() => {
    connection.ended = true;
  });
  client.write(frame(frameTypes.settings, flags.ack, 0));
  while (!connection.ended && performance.now() < until) {
    for (let i = 0; i < 10; i += 1) client.write(frames(turns++, fields));
    if (client.socket.writableNeedDrain) {
      await Promise.race([client.closed, new Promise((resolve) => client.socket.once('drain', resolve))]);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  const last = client.frames.findLast(({ type }) => type === frameTypes.goAway);
  return { code: last === undefined ? null : last.payload.readUInt32BE(4), turns, ended: connection.ended };
}
