/** What a response says of an attempt of the calling side. */
import { namesSallyport } from '../http/proxy-status.js';
import { readRetryAfter } from './retry-after.js';
import type { AttemptOutcome } from './retry.js';

export type ResponseOutcome = Extract<AttemptOutcome, { readonly kind: 'response' }>;

/** Longer waits are not waited for: milliseconds. */
const longestRetryAfterMs = 24 * 60 * 60_000;

const problemMediaType = /^application\/problem\+json *(?:;|$)/i;

/** Below this status the request was carried out, and no header is read. */
const firstRefusal = 400;

/** Reads the head of a response. What its problem document says is not known then. */
export function outcomeOf(status: number, rawHeaders: readonly string[], nowMs: number): ResponseOutcome {
  let isSallyports = false;
  let retryAfterMs: number | null = null;
  let nonce: string | null = null;
  for (let i = status < firstRefusal ? rawHeaders.length : 0; i < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase();
    const value = rawHeaders[i + 1] ?? '';
    if (name === 'proxy-status') isSallyports ||= namesSallyport(value);
    else if (name === 'retry-after') retryAfterMs ??= readRetryAfter(value, nowMs);
    else if (name === nonceName && status === 401 && isNonce(value)) nonce ??= value;
  }
  const waitMs = retryAfterMs === null ? null : Math.min(retryAfterMs, longestRetryAfterMs);
  const outcome = { kind: 'response', status, isSallyports, problemType: null, retryAfterMs: waitMs } as const;
  return nonce === null ? outcome : { ...outcome, nonce };
}

const nonceName = 'dpop-nonce';

/** The nonce for the next proof that a response gives (RFC 9449 §8.2); `null` where it gives none. */
export function nonceIn(rawHeaders: readonly string[]): string | null {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length !== nonceName.length || name.toLowerCase() !== nonceName) continue;
    const value = rawHeaders[i + 1] ?? '';
    return isNonce(value) ? value : null;
  }
  return null;
}

/** RFC 9449 §8.1, and no more than a proof has room for. */
function isNonce(value: string): boolean {
  return /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/.test(value);
}

/** Whether its body decides: a problem document of a 409, in which an attempt under way is told from all else. */
export function needsProblem({ status, isSallyports }: ResponseOutcome, rawHeaders: readonly string[]): boolean {
  if (status !== 409 || !isSallyports) return false;
  return rawHeaders.some(
    (name, i) => i % 2 === 0 && name.toLowerCase() === 'content-type' && problemMediaType.test(rawHeaders[i + 1] ?? ''),
  );
}

/** The `type` of a problem document (RFC 9457 §3.1.1); `null` where it is none. */
export function problemTypeIn(body: Uint8Array): string | null {
  try {
    const document: unknown = JSON.parse(Buffer.from(body).toString('utf8'));
    if (typeof document !== 'object' || document === null || !('type' in document)) return null;
    return typeof document.type === 'string' ? document.type : null;
  } catch {
    return null;
  }
}
