/** Which idempotency key a request goes out with on the calling side. */
import { denial, type Denial } from '../denial.js';
import { safeMethods } from '../http/request-head.js';
import { readIdempotencyKey } from '../idempotency/key.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { parseStrictValue } from '../../lib/strict-json.js';

/**
 * What a target does for writes without `Idempotency-Key`.
 * - `generate`: gives each a key of its own, the same in each attempt
 * - `pass`: nothing
 * - `require`: refuses them
 */
export type MissingKeyPolicy = 'generate' | 'pass' | 'require';

/** Where a key is taken from that a caller which itself repeats would send again. */
export type IdempotencyKeySource =
  | { readonly kind: 'header'; readonly name: string }
  /** Reference tokens of a JSON Pointer (RFC 6901 §4) into the body. */
  | { readonly kind: 'json'; readonly path: readonly string[] };

/** What of a request a key depends on. */
interface KeyedRequest {
  readonly method: string;
  /** As received; `null` where the caller sent none. */
  readonly idempotencyKey: string | null;
}

/**
 * - `kept`: the request goes out as it is; `hasKey` tells whether with a key
 * - `generate`: it gets a new one
 * - `derive`: it gets one made of what `from` names
 */
export type KeyPlan =
  { readonly kind: 'kept'; readonly hasKey: boolean } | { readonly kind: 'generate' } | { readonly kind: 'derive' };

/** Longest value that a key is made of, characters: what is longer is no name of an operation. */
const maxNameCharacters = 1_024;

/**
 * Decides what becomes of a request's key. A caller's own is passed on and never replaced. Refusals are
 * `idempotency_key_missing` and `idempotency_key_malformed`.
 */
export function planKey(
  { method, idempotencyKey }: KeyedRequest,
  mode: MissingKeyPolicy,
  from: IdempotencyKeySource | null,
): Result<KeyPlan, Denial> {
  // A key that HTTP/2 dropped as malformed counts as none: the request is not repeated, or gets a key of ours.
  const own = readIdempotencyKey(idempotencyKey, 'optional', false);
  if (!own.ok) return own;
  if (own.value !== null) return accept({ kind: 'kept', hasKey: true });
  if (safeMethods.has(method) || (mode === 'pass' && from === null)) return accept({ kind: 'kept', hasKey: false });
  if (from !== null) return accept({ kind: 'derive' });
  return mode === 'require' ? refuse(denial('idempotency_key_missing')) : accept({ kind: 'generate' });
}

/** The value of a header that names the operation; `null` where there is none, or several. */
export function nameInHeaders(headers: readonly string[], name: string): string | null {
  let found: string | null = null;
  for (let i = 0; i < headers.length; i += 2) {
    if ((headers[i] ?? '').toLowerCase() !== name) continue;
    if (found !== null) return null;
    found = headers[i + 1] ?? '';
  }
  return asName(found);
}

/** Bodies of applications nest no deeper. */
const maxBodyDepth = 64;

/**
 * The text or whole number at a place of a JSON document (RFC 6901); `null` where there is none, or no JSON. What two
 * readers may read differently names nothing: a document with a member given twice (RFC 8259 §4), a number of which
 * several read alike (§6). Two writes would be taken for one.
 */
export function nameInJson(body: Uint8Array, path: readonly string[]): string | null {
  const read = parseStrictValue(body, { maxDepth: maxBodyDepth });
  if (!read.ok) return null;
  let value: unknown = read.value;
  for (const token of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return null;
    value = (value as Readonly<Record<string, unknown>>)[token];
  }
  return asName(Number.isSafeInteger(value) ? String(value) : value);
}

function asName(value: unknown): string | null {
  if (typeof value !== 'string' || value === '' || value.length > maxNameCharacters) return null;
  return value;
}
