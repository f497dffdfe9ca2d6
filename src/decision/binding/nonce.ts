/** Nonces that proofs have to repeat (RFC 9449 §9): made of the time and a key, so that nobody has to remember them. */
import { createHmac, timingSafeEqual } from 'node:crypto';

/** Keys of nonces: the first makes them, and all are taken. */
export type NonceKeys = readonly [Buffer, ...Buffer[]];

/** For so long one nonce is handed out, milliseconds. */
const stepMs = 60_000;

/** How many steps ago a nonce that is taken may have been made: 5 to 6 minutes, of which a client has to use some. */
const stepsTaken = 5;

/** Proxies that share a key may have clocks that are apart. */
const stepsAhead = 1;

/**
 * How long after it was made a nonce is taken at most, milliseconds: those steps, the step that it was made in, and one
 * more where the clock of its maker is ahead.
 */
export const nonceLifetimeMs = (stepsAhead + 1 + stepsTaken) * stepMs;

const stepBytes = 6;
const macBytes = 16;

/** Returns the nonce of this time. */
export function nonceAt(nowMs: number, [key]: NonceKeys): string {
  return nonceOf(Math.floor(nowMs / stepMs), key);
}

/** Whether a nonce was made with one of the keys, and not too long ago. */
export function isNonce(nonce: string, nowMs: number, keys: NonceKeys): boolean {
  // As UTF-8: other characters, cut down to one byte each, could become those of a nonce of ours.
  const given = Buffer.from(nonce, 'utf8');
  const step = Buffer.from(nonce, 'base64url').subarray(0, stepBytes);
  if (step.length < stepBytes) return false;
  const made = step.readUIntBE(0, stepBytes);
  const now = Math.floor(nowMs / stepMs);
  if (made < now - stepsTaken || made > now + stepsAhead) return false;
  return keys.some((key) => {
    const expected = Buffer.from(nonceOf(made, key), 'latin1');
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}

function nonceOf(step: number, key: Buffer): string {
  const bytes = Buffer.alloc(stepBytes);
  bytes.writeUIntBE(step, 0, stepBytes);
  const mac = createHmac('sha256', key).update('sallyport dpop nonce 1').update(bytes).digest().subarray(0, macBytes);
  return Buffer.concat([bytes, mac]).toString('base64url');
}

/** Bytes of a key, at least. */
const leastKeyBytes = 32;

/**
 * Reads the keys of a file: a line for each, base64 or hex of 32 bytes or more. What is wrong is said without what it
 * holds.
 */
export function readNonceKeys(text: string): NonceKeys | string {
  const lines = text.split(/\r?\n/).filter((line) => line !== '');
  const keys: Buffer[] = [];
  for (const [index, line] of lines.entries()) {
    const key = /^(?:[0-9a-fA-F]{2})+$/.test(line) ? Buffer.from(line, 'hex') : base64Of(line);
    if (key === null || key.length < leastKeyBytes) {
      return `line ${String(index + 1)} is no base64 or hex of 32 bytes or more`;
    }
    keys.push(key);
  }
  const [first, ...more] = keys;
  return first === undefined ? 'it holds no key' : [first, ...more];
}

function base64Of(line: string): Buffer | null {
  return /^[A-Za-z0-9+/_-]+={0,2}$/.test(line) ? Buffer.from(line, 'base64') : null;
}
