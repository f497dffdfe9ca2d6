import { createHash } from 'node:crypto';

/**
 * Hashes parts so that no two lists of parts can collide by joining: each part is preceded by its length in
 * bytes, as eight big-endian bytes, and the purpose is the first part, so that a value hashed for one purpose is
 * never equal to one hashed for another.
 *
 * @returns SHA-256 in base64url, 43 characters.
 */
export function digestOf(purpose: string, parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of [purpose, ...parts]) {
    const bytes = typeof part === 'string' ? Buffer.from(part, 'utf8') : part;
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(bytes.byteLength));
    hash.update(length).update(bytes);
  }
  return hash.digest('base64url');
}
