import { randomBytes, randomUUID } from 'node:crypto';
import { createTraceparent, traceparentBytes } from '../../decision/telemetry/trace-context.js';

/**
 * Random bytes are had in bulk: asking for a few at a time costs more than a whole request's other work on identifiers.
 */
const pooledBytes = 6 * 1024;
let pool = '';
let used = 0;

/** So many random bytes, at most 6 KiB, in hexadecimal digits. */
export function randomHex(bytes: number): string {
  if (used + 2 * bytes > pool.length) {
    pool = randomBytes(pooledBytes).toString('hex');
    used = 0;
  }
  const start = used;
  used += 2 * bytes;
  return pool.slice(start, used);
}

/** Names a request that came without an id. */
export function newRequestId(): string {
  return randomUUID();
}

/** Starts a trace for a request that came without one. */
export function newTraceparent(): string {
  return createTraceparent(randomHex(traceparentBytes));
}

/** Bytes that name one attempt to run a write: 128 bits, so that no two are ever the same. */
const attemptBytes = 16;

/** Names one attempt to run a reserved write. */
export function newAttempt(): string {
  return randomBytes(attemptBytes).toString('base64url');
}
