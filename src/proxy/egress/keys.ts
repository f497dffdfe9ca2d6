/** Idempotency keys that the calling side makes. */
import { createHash, randomUUID } from 'node:crypto';

/** A key for one write. */
export function newKey(): string {
  return randomUUID();
}

/**
 * The key of the operation that a caller names: the same whenever it names it again, of the same target, method and
 * path. SHA-256, so that nothing of the name is told.
 */
export function derivedKey(target: string, method: string, requestTarget: string, name: string): string {
  const digest = createHash('sha256').update(JSON.stringify([target, method, requestTarget, name]));
  return digest.digest('base64url');
}
