import { randomBytes, randomFillSync, randomUUID } from 'node:crypto';
import { createTraceparent, traceparentBytes } from '../decision/trace-context.js';

/** Random bytes are had in bulk: asking for a few at a time costs more than a whole request's other work on identifiers. */
const pool = new Uint8Array(traceparentBytes * 256);
let used = pool.length;

/** Names a request that came without an id. */
export function newRequestId(): string {
  return randomUUID();
}

/** Starts a trace for a request that came without one. */
export function newTraceparent(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.subarray(used, used + traceparentBytes);
  used += traceparentBytes;
  return createTraceparent(random);
}

/** Bytes that name one attempt to run a write: 128 bits, so that no two are ever the same. */
const attemptBytes = 16;

/** Names one attempt to run a reserved write. */
export function newAttempt(): string {
  return randomBytes(attemptBytes).toString('base64url');
}
