import { isFieldName } from '../http/header-names.js';
import { isFieldValue } from '../http/header-values.js';
import type { ResponseEnd } from '../grpc/status.js';
import type { StoredResponse } from './record.js';

/** Limits of what is kept of a response. */
export const maxStoredHeaderBytes = 8 * 1024;

/** Headers that are kept and shown again; a route may add others. */
const kept: ReadonlySet<string> = new Set([
  'content-type',
  'content-encoding',
  'content-language',
  'location',
  'content-location',
  'etag',
  'last-modified',
  'link',
  'retry-after',
]);

/** Trailers that are kept: how a gRPC call ended. A route may add others. */
const keptTrailers: ReadonlySet<string> = new Set(['grpc-status', 'grpc-message', 'grpc-status-details-bin']);

/** Headers that are never kept, even where a route adds them, and why. */
const neverKept: ReadonlyMap<string, string> = new Map([
  ...because('it is one caller’s credential', [
    'set-cookie',
    'set-cookie2',
    'cookie',
    'authorization',
    'www-authenticate',
    'authentication-info',
  ]),
  ...because('it belongs to one connection', [
    'connection',
    'keep-alive',
    'te',
    'trailer',
    'transfer-encoding',
    'upgrade',
  ]),
  ...because('it follows from the body', ['content-length']),
  ...because('it belongs to one moment', [
    'date',
    'age',
    'expires',
    'traceparent',
    'tracestate',
    'x-request-id',
    'retry-after-ms',
  ]),
  ...because('a shown result sets its own', [
    'cache-control',
    'idempotency-key',
    'idempotent-replayed',
    'idempotency-outcome',
  ]),
]);

/** The same by how their names begin. */
const neverKeptPrefixes: ReadonlyMap<string, string> = new Map([
  ...because('it belongs to one connection', ['proxy-']),
  ...because('it depends on where the request came from', ['access-control-']),
  ...because('it counts requests, and a shown result is none', ['ratelimit', 'x-ratelimit']),
]);

/**
 * Tells why a header may never be kept, in words that follow the name and a colon.
 *
 * @returns `null` where it may.
 */
export function whyNeverStored(name: string): string | null {
  const lower = name.toLowerCase();
  const why = neverKept.get(lower);
  if (why !== undefined) return why;
  for (const [prefix, reason] of neverKeptPrefixes) if (lower.startsWith(prefix)) return reason;
  return null;
}

/** Whether a route may ask for this header to be kept. */
export function mayBeStored(name: string): boolean {
  return whyNeverStored(name) === null;
}

/**
 * Picks the headers of the upstream's response that are kept, in their order.
 *
 * @param headers raw pairs: name, value, name, value.
 * @param added names that the route adds, lower-case.
 * @returns raw pairs, or `null` where they exceed 8 KiB: the response is then not replayable.
 */
export function storedHeaders(headers: readonly string[], added: ReadonlySet<string>): readonly string[] | null {
  return pickHeaders(headers, kept, added);
}

/**
 * Picks what is kept of how a gRPC call ended: of its trailers, or where the response is nothing but a head
 * (`Trailers-Only`) of that, so that both are shown again in one form.
 *
 * @param added names that the route adds, lower-case. Those of a head are kept with it.
 * @returns raw pairs, or `null` where they exceed 8 KiB.
 */
export function storedTrailers(
  { headers, trailers, hasBody }: Omit<ResponseEnd, 'status'>,
  added: ReadonlySet<string>,
): readonly string[] | null {
  const isHeadAlone = trailers.length === 0 && !hasBody;
  return isHeadAlone ? pickHeaders(headers, keptTrailers, new Set()) : pickHeaders(trailers, keptTrailers, added);
}

function pickHeaders(
  headers: readonly string[],
  usual: ReadonlySet<string>,
  added: ReadonlySet<string>,
): readonly string[] | null {
  const stored: string[] = [];
  let bytes = 0;
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? '';
    const value = headers[index + 1] ?? '';
    const lower = name.toLowerCase();
    if (!(usual.has(lower) || added.has(lower)) || !mayBeStored(lower)) continue;
    bytes += Buffer.byteLength(name, 'latin1') + Buffer.byteLength(value, 'latin1');
    stored.push(name, value);
  }
  return bytes > maxStoredHeaderBytes ? null : stored;
}

/**
 * Whether a response may end with this status. Those from 600 to 999 mean nothing (RFC 9110 §15), but callers see them
 * as they come, and what a caller saw is what a retry gets.
 */
export function isFinalStatus(status: number): boolean {
  return status >= 200 && status <= 999;
}

/**
 * Whether a response that a store hands back may be shown: one that the upstream can have given and that can be
 * written. A store may be damaged, or others may write to it.
 */
export function isShowable({ status, headers, trailers }: StoredResponse): boolean {
  return isFinalStatus(status) && areShowable(headers) && areShowable(trailers ?? []);
}

function areShowable(headers: readonly string[]): boolean {
  if (headers.length % 2 !== 0) return false;
  return headers.every((text, index) =>
    index % 2 === 1 ? isFieldValue(text) : isFieldName(text) && mayBeStored(text),
  );
}

/**
 * The headers of a replayed response. The body's length follows from its bytes.
 *
 * @param key the caller's `Idempotency-Key` as received, echoed.
 */
export function replayedHeaders(response: StoredResponse, key: string, requestId: string): string[] {
  return [
    'X-Request-Id',
    requestId,
    ...response.headers,
    'Cache-Control',
    'no-store',
    'Idempotency-Key',
    key,
    'Idempotent-Replayed',
    'true',
  ];
}

function because(why: string, names: readonly string[]): readonly (readonly [string, string])[] {
  return names.map((name) => [name, why]);
}
