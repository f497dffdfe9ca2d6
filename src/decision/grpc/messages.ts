/** How messages stand in a body: a byte that says whether it is compressed, four for its length, and the message. */
import { accept, refuse, type Result } from '../../lib/result.js';
import type { GrpcCode } from './status.js';

const prefixBytes = 5;

/**
 * Tells whether a whole body holds exactly one message: what a call of a unary method sends. Whether it is compressed
 * does not matter; its length counts as it was sent.
 *
 * @param maxMessageBytes longest message, without its prefix.
 */
export function isOneMessage(body: Uint8Array, maxMessageBytes: number): boolean {
  const prefix = prefixOf(body);
  return (
    prefix !== null &&
    prefix.flag <= 1 &&
    prefix.length <= maxMessageBytes &&
    body.byteLength === prefixBytes + prefix.length
  );
}

/**
 * Reads the one message of a whole body. Refuses with the code of the call: `INTERNAL` for what is no message,
 * `UNIMPLEMENTED` for a compressed one, and for another number of them than one
 * (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md, /doc/compression.md).
 */
export function readOneMessage(body: Uint8Array): Result<Uint8Array, GrpcCode> {
  if (body.byteLength === 0) return refuse('UNIMPLEMENTED');
  const prefix = prefixOf(body);
  const endsAt = prefixBytes + (prefix?.length ?? 0);
  if (prefix === null || prefix.flag > 1 || body.byteLength < endsAt) return refuse('INTERNAL');
  if (prefix.flag === 1 || body.byteLength > endsAt) return refuse('UNIMPLEMENTED');
  return accept(body.subarray(prefixBytes));
}

function prefixOf(body: Uint8Array): { readonly flag: number; readonly length: number } | null {
  const [flag, a, b, c, d] = body;
  if (flag === undefined || a === undefined || b === undefined || c === undefined || d === undefined) return null;
  return { flag, length: a * 0x1_00_00_00 + b * 0x1_00_00 + c * 0x1_00 + d };
}

/** Puts the prefix before a message that is not compressed. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const frame = Buffer.alloc(prefixBytes + message.byteLength);
  frame.writeUInt32BE(message.byteLength, 1);
  frame.set(message, prefixBytes);
  return frame;
}
