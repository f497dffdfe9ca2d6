/** Idempotency keys that the calling side makes. */
import { createHash, randomUUID } from 'node:crypto';

/** A key for one write. */
export function newKey(): string {
  return randomUUID();
}

/** What a key is made of. */
interface NamedOperation {
  readonly target: string;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Whose own token is exchanged; `null` where the workload itself calls. */
  readonly caller: string | null;
  readonly name: string;
}

/**
 * The key of the operation that a caller names: the same whenever it names it again, of the same target, method and
 * path. SHA-256, so that nothing of the name is told.
 */
export function derivedKey({ target, method, path, caller, name }: NamedOperation): string {
  const parts = [target, method, path, name, ...(caller === null ? [] : [caller])];
  const digest = createHash('sha256').update(JSON.stringify(parts));
  return digest.digest('base64url');
}
