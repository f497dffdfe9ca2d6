/** Which fields of a trailer section pass: a section that comes when everything else was judged and begun. */
import { lookAlikeKey } from './header-names.js';
import type { HeaderRules } from './header-rules.js';
import { isFieldValue } from './header-values.js';

/** What a trailer section is part of. */
interface TrailerContext {
  readonly rules: HeaderRules;
  /** Whether the next side said that it takes trailers (`TE: trailers`), which in HTTP/2 goes without saying. */
  readonly isAskedFor: boolean;
  /** Whether both sides speak HTTP/2 and the message is gRPC's: its applications name trailers as they like. */
  readonly isGrpcOverHttp2: boolean;
}

/** More fields than any honest trailer section has. */
const maxTrailers = 64;

/** What may pass of a section, characters of names and values together. */
const maxTrailerChars = 16 * 1024;

/**
 * Trailers whose standards let them be such, in lower case: how a gRPC call ended, digests of the content (RFC 9530 §2,
 * §3 and RFC 3230 before it), the entity tag and ranges of it (RFC 9110 §8.8.3, §14.3), and what the server took how
 * long for (W3C Server Timing).
 */
export const knownTrailers: ReadonlySet<string> = new Set([
  'accept-ranges',
  'content-digest',
  'digest',
  'etag',
  'grpc-message',
  'grpc-retry-pushback-ms',
  'grpc-status',
  'grpc-status-details-bin',
  'repr-digest',
  'server-timing',
]);

/** Those of them that a request may have. */
const knownRequestTrailers: ReadonlySet<string> = new Set(['content-digest', 'digest', 'repr-digest']);

/**
 * Fields that frame, route, condition, authenticate or say how content is to be read: of use only before the content
 * (RFC 9110 §6.5.1). Whoever merges trailers into headers would act on them all the same.
 */
const neverTrailers: ReadonlySet<string> = new Set(
  [
    'age',
    'alt-svc',
    'authentication-info',
    'authorization',
    'cache-control',
    'cdn-cache-control',
    'clear-site-data',
    'connection',
    'content-disposition',
    'content-encoding',
    'content-language',
    'content-length',
    'content-location',
    'content-range',
    'content-security-policy',
    'content-type',
    'cookie',
    'date',
    'expect',
    'expires',
    'forwarded',
    'front-token',
    'host',
    'idempotency-key',
    'if-match',
    'if-modified-since',
    'if-none-match',
    'if-range',
    'if-unmodified-since',
    'keep-alive',
    'last-modified',
    'link',
    'location',
    'max-forwards',
    'origin',
    'pragma',
    'priority',
    'proxy-authenticate',
    'proxy-authentication-info',
    'proxy-authorization',
    'range',
    'refresh',
    'retry-after',
    'set-cookie',
    'status',
    'strict-transport-security',
    'te',
    'traceparent',
    'tracestate',
    'trailer',
    'transfer-encoding',
    'upgrade',
    'vary',
    'via',
    'warning',
    'www-authenticate',
    'x-request-id',
  ].map(lookAlikeKey),
);

/** What may follow `grpc-` in metadata is for gRPC itself to say: of that only how the call ended passes. */
const grpcPrefix = 'grpc-';

/** Families that say who asks, or what a browser lets pages do. */
const neverPrefixes: readonly string[] = ['access-control-', 'sec-', 'st-', 'x-amz-', 'x-auth-'];

/** Names and values in turn of what goes on to the upstream; `null` where nothing does. */
export function requestTrailers(fields: readonly string[], context: TrailerContext): readonly string[] | null {
  const { rules } = context;
  return passed(fields, context, knownRequestTrailers, (name) => rules.requestKind(name) === 'passed');
}

/** Names and values in turn of what goes on to the caller; `null` where nothing does. */
export function responseTrailers(fields: readonly string[], context: TrailerContext): readonly string[] | null {
  const { rules } = context;
  // What would be removed from a caller's request is said by Sallyport alone, in either direction.
  return passed(
    fields,
    context,
    knownTrailers,
    (name) => rules.responseKind(name) === 'passed' && rules.requestKind(name) === 'passed',
  );
}

function passed(
  fields: readonly string[],
  { isAskedFor, isGrpcOverHttp2 }: TrailerContext,
  known: ReadonlySet<string>,
  isPassed: (name: string) => boolean,
): readonly string[] | null {
  if (!isAskedFor && !isGrpcOverHttp2) return null;
  const kept: string[] = [];
  let chars = 0;
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? '';
    const value = fields[i + 1] ?? '';
    const lowerCase = name.toLowerCase();
    const isKnown = known.has(lowerCase);
    if (!isKnown && !(isGrpcOverHttp2 && isMetadata(lowerCase))) continue;
    if (!isPassed(name) || !isFieldValue(value)) continue;
    chars += name.length + value.length;
    if (kept.length >= 2 * maxTrailers || chars > maxTrailerChars) break;
    kept.push(name, value);
  }
  return kept.length === 0 ? null : kept;
}

/** Whether an application of gRPC may name its trailing metadata so. */
function isMetadata(lowerCase: string): boolean {
  if (lowerCase.startsWith(grpcPrefix) || neverTrailers.has(lookAlikeKey(lowerCase))) return false;
  return !neverPrefixes.some((prefix) => lowerCase.startsWith(prefix));
}
