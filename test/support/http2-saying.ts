/** Requests of HTTP/1.1 as HTTP/2 says them (RFC 9113 §8.3.1), and which cannot be said so. */
import type { ExactRequest } from './http2-exact.js';

/** Why a request has no form in HTTP/2. */
export type Unsayable = keyof typeof unsayable;

/** What each of them means. */
export const unsayable = {
  'no request line': 'a first line that is none, a head that does not end, or lines that are no fields',
  'other version': 'HTTP/2 has no version in its heads',
  chunked: 'Transfer-Encoding frames the messages of HTTP/1.1 alone (RFC 9113 §8.2.2)',
  'of a connection': 'Connection, Upgrade and kin are malformed in HTTP/2 (RFC 9113 §8.2.2), which has tests of that',
  several: 'requests behind one another, or bytes behind the end of a body: HTTP/2 numbers its requests',
  'cut short': 'less of a body than its length says, with the connection held or half closed',
  'forbidden field':
    'a name or value with characters that RFC 9113 §8.2.1 forbids is left out by nghttp2 before anything reads it, ' +
    'where HTTP/1.1 is refused; the fuzz of heads over HTTP/2 holds what is left of such a request',
} as const;

/** What nghttp2 leaves out: no token in lower case as its name, or controls in its value. */
export function isForbidden(name: string, value: string): boolean {
  return !/^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name) || /[\0-\x08\x0a-\x1f\x7f]/.test(value);
}

/** Fields of a connection of HTTP/1.1. */
const connectionFields: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'upgrade',
  'http2-settings',
]);

/**
 * Reads one request and says it in HTTP/2: Host is `:authority`, names are in lower case, as RFC 9113 §8.2
 * asks for, and everything else is as it came, sound or not.
 */
export function sayInHttp2(bytes: Buffer, encrypted: boolean): ExactRequest | Unsayable {
  const text = bytes.toString('latin1');
  const headEnd = text.indexOf('\r\n\r\n');
  const [requestLine = '', ...lines] = text.slice(0, Math.max(headEnd, 0)).split('\r\n');
  const [, method, target, version] = /^([^ ]*) (.*) HTTP\/([0-9.]+)$/s.exec(requestLine) ?? [];
  if (method === undefined || target === undefined) return 'no request line';
  if (version !== '1.1') return 'other version';
  const fields = lines.map((line) => /^([^:]+):[ \t]*(.*?)[ \t]*$/s.exec(line)?.slice(1) ?? []);
  if (fields.some(([name = ' ']) => /^[ \t]/.test(name))) return 'no request line';
  const named = fields.map(([name = '', value = '']) => [name.toLowerCase(), value] as const);
  const why = whyNot(named, bytes.length - headEnd - 4);
  if (why !== null) return why;
  const hosts = named.filter(([name]) => name === 'host');
  // Two of them are said as such: `:authority` may have a Host of the same value beside it.
  const [host] = hosts.length === 1 ? hosts : [];
  const rest = named.filter((field) => field !== host);
  // A tunnel has no scheme and no path (RFC 9113 §8.5).
  const place = method === 'CONNECT' ? [] : [':scheme', encrypted ? 'https' : 'http', ':path', target];
  const authority = host === undefined ? [] : [':authority', host[1]];
  return {
    fields: [':method', method, ...place, ...authority, ...rest.flat()],
    body: headEnd + 4 === bytes.length ? null : bytes.subarray(headEnd + 4),
    isHead: method === 'HEAD',
  };
}

function whyNot(fields: readonly (readonly [string, string])[], bodyBytes: number): Unsayable | null {
  const valuesOf = (wanted: string): string[] => fields.filter(([name]) => name === wanted).map(([, value]) => value);
  if (valuesOf('transfer-encoding').length > 0) return 'chunked';
  const isOfConnection = fields.some(
    ([name, value]) => connectionFields.has(name) || (name === 'te' && value !== 'trailers'),
  );
  if (isOfConnection) return 'of a connection';
  if (fields.some(([name, value]) => name !== 'host' && isForbidden(name, value))) return 'forbidden field';
  const lengths = valuesOf('content-length');
  // Where its length is no length it is refused, whatever follows.
  if (lengths.some((length) => !/^[0-9]{1,15}$/.test(length)) || lengths.length > 1) return null;
  const length = Number(lengths[0] ?? 0);
  if (bodyBytes > length) return 'several';
  return bodyBytes < length ? 'cut short' : null;
}
