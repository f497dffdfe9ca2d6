import { createHash } from 'node:crypto';
import { digestOf } from '../../lib/digest.js';

/** What makes two requests the same request under one key. */
export interface FingerprintInput {
  readonly method: string;
  readonly operation: string;
  /** Path and query as they came: two spellings are two requests. */
  readonly path: string;
  readonly query: string | null;
  readonly contentType: string | null;
  readonly contentEncoding: string | null;
  readonly body: Uint8Array;
  /** Values of the headers that the route lists, in the route's order; `null` where the request has none. */
  readonly headers: readonly { readonly name: string; readonly value: string | null }[];
}

/** Headers that may never be part of a fingerprint: they differ between honest retries. */
export const volatileHeaders: ReadonlySet<string> = new Set([
  'authorization',
  'dpop',
  'date',
  'traceparent',
  'tracestate',
  'baggage',
  'x-request-id',
  'idempotency-key',
  'via',
  'forwarded',
]);

/**
 * Names a request by what it asks for.
 *
 * @returns SHA-256 in base64url.
 */
export function fingerprintOf(input: FingerprintInput): string {
  const body = createHash('sha256').update(input.body).digest();
  const headers = input.headers.flatMap(({ name, value }) => [name.toLowerCase(), ...optional(value)]);
  return digestOf('sallyport fingerprint 1', [
    input.method,
    input.operation,
    input.path,
    ...optional(input.query),
    ...optional(input.contentType),
    ...optional(input.contentEncoding),
    body,
    ...headers,
  ]);
}

/** An absent value and an empty one differ. */
function optional(value: string | null): readonly [string, string] {
  return value === null ? ['absent', ''] : ['present', value];
}
