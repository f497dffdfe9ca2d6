import type { StoredResponse } from './reservation.js';

/** Limits of what is kept of a response (REPLAY section 5). */
export const maxStoredHeaderBytes = 8 * 1024;

/** Fields that are kept and shown again; a route may add others. */
const kept: ReadonlySet<string> = new Set([
  'content-type', 'content-encoding', 'content-language', 'location', 'content-location', 'etag', 'last-modified', 'link', 'retry-after',
]);

/** Fields that are never kept, even where a route adds them: they belong to one caller, one moment or one connection. */
const neverKept: ReadonlySet<string> = new Set([
  'set-cookie', 'set-cookie2', 'cookie', 'authorization', 'www-authenticate', 'authentication-info', 'connection', 'keep-alive', 'te', 'trailer',
  'transfer-encoding', 'upgrade', 'content-length', 'date', 'age', 'traceparent', 'tracestate', 'x-request-id', 'retry-after-ms',
]);
const neverKeptPrefixes: readonly string[] = ['proxy-', 'access-control-', 'ratelimit', 'x-ratelimit'];

/** Whether a route may ask for this field to be kept. */
export function mayBeStored(name: string): boolean {
  const lower = name.toLowerCase();
  return !neverKept.has(lower) && !neverKeptPrefixes.some((prefix) => lower.startsWith(prefix));
}

/**
 * Picks the fields of the receiver's answer that are kept, in their order.
 *
 * @param fields raw pairs: name, value, name, value.
 * @param added names that the route adds, lower-case.
 * @returns raw pairs, or `null` where they exceed 8 KiB: the response is then not replayable.
 */
export function storedFields(fields: readonly string[], added: ReadonlySet<string>): readonly string[] | null {
  const stored: string[] = [];
  let bytes = 0;
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] ?? '';
    const value = fields[index + 1] ?? '';
    const lower = name.toLowerCase();
    if (!(kept.has(lower) || added.has(lower)) || !mayBeStored(lower)) continue;
    bytes += Buffer.byteLength(name, 'latin1') + Buffer.byteLength(value, 'latin1');
    stored.push(name, value);
  }
  return bytes > maxStoredHeaderBytes ? null : stored;
}

/**
 * The fields of a replayed answer. The body's length follows from its bytes.
 *
 * @param key the caller's `Idempotency-Key` as received, echoed.
 */
export function replayedFields(response: StoredResponse, key: string, requestId: string): string[] {
  return [
    ...response.fields,
    ...(response.body.byteLength > 0 ? ['Content-Length', String(response.body.byteLength)] : []),
    'Cache-Control', 'no-store',
    'Idempotency-Key', key,
    'Idempotent-Replayed', 'true',
    'X-Request-Id', requestId,
  ];
}
