import { hash } from 'node:crypto';

/** Bytes of the length before each part. */
const lengthBytes = 8;

/** What one of the two words of a length counts. */
const wordSize = 2 ** 32;

/**
 * Hashes parts so that no two lists of parts can collide by joining: each part is preceded by its length in
 * bytes, as eight big-endian bytes, and the purpose is the first part, so that a value hashed for one purpose is
 * never equal to one hashed for another. Parts are short: they are joined and hashed in one step, which takes less
 * than half of the time of a step for each.
 *
 * @returns SHA-256 in base64url, 43 characters.
 */
export function digestOf(purpose: string, parts: readonly (string | Uint8Array)[]): string {
  const pieces = [purpose, ...parts];
  const joined = Buffer.allocUnsafe(pieces.reduce((sum, piece) => sum + lengthBytes + bytesOf(piece), 0));
  let at = 0;
  for (const piece of pieces) {
    const bytes = bytesOf(piece);
    at = joined.writeUInt32BE(Math.floor(bytes / wordSize), at);
    at = joined.writeUInt32BE(bytes % wordSize, at);
    if (typeof piece === 'string') joined.write(piece, at, 'utf8');
    else joined.set(piece, at);
    at += bytes;
  }
  return hash('sha256', joined, 'base64url');
}

function bytesOf(piece: string | Uint8Array): number {
  return typeof piece === 'string' ? Buffer.byteLength(piece, 'utf8') : piece.byteLength;
}
