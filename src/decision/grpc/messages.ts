/** How messages stand in a body: a byte that says whether it is compressed, four for its length, and the message. */

const prefixBytes = 5;

/**
 * Tells whether a whole body holds exactly one message: what a call of a unary method sends. Whether it is compressed
 * does not matter; its length counts as it was sent.
 *
 * @param maxMessageBytes longest message, without its prefix.
 */
export function isOneMessage(body: Uint8Array, maxMessageBytes: number): boolean {
  const [flag, a, b, c, d] = body;
  if (flag === undefined || a === undefined || b === undefined || c === undefined || d === undefined) return false;
  const length = a * 0x1_00_00_00 + b * 0x1_00_00 + c * 0x1_00 + d;
  return flag <= 1 && length <= maxMessageBytes && body.byteLength === prefixBytes + length;
}

/** Puts the prefix before a message that is not compressed. */
export function frameMessage(message: Uint8Array): Uint8Array {
  const frame = Buffer.alloc(prefixBytes + message.byteLength);
  frame.writeUInt32BE(message.byteLength, 1);
  frame.set(message, prefixBytes);
  return frame;
}
