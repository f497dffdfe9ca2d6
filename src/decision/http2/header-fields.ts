/** Header sections as `node:http2` takes them. */
import { trimBlanks } from '../../lib/text.js';

/** An object of field names and values. */
type Http2Fields = Record<string, string | string[]>;

/**
 * Fields of which a section has one at most: `node:http2` refuses a list of values for them. All have one value by
 * their definition (RFC 9110, RFC 9111), and of several, which is an upstream's mistake, the first counts.
 */
const single: ReadonlySet<string> = new Set([
  'access-control-allow-credentials',
  'access-control-max-age',
  'access-control-request-method',
  'age',
  'authorization',
  'content-encoding',
  'content-language',
  'content-length',
  'content-location',
  'content-md5',
  'content-range',
  'content-type',
  'date',
  'dnt',
  'etag',
  'expires',
  'from',
  'host',
  'if-match',
  'if-modified-since',
  'if-none-match',
  'if-range',
  'if-unmodified-since',
  'last-modified',
  'location',
  'max-forwards',
  'proxy-authorization',
  'range',
  'referer',
  'retry-after',
  'tk',
  'upgrade-insecure-requests',
  'user-agent',
  'x-content-type-options',
]);

/** Fields of a connection of HTTP/1.1, which no message of HTTP/2 may have (RFC 9113 §8.2.2). */
const connectionFields: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Makes an object of names and values in turn: names in lower case, a list where one comes several times. What only a
 * connection of HTTP/1.1 has is left out. The object has no prototype, so that no name means anything else in it.
 */
export function http2Fields(fields: readonly string[]): Http2Fields {
  const out = Object.create(null) as Http2Fields;
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = (fields[i] ?? '').toLowerCase();
    if (connectionFields.has(name) || name.startsWith(':')) continue;
    // A field value neither begins nor ends with white space (RFC 9113 §8.2.1).
    const value = trimBlanks(fields[i + 1] ?? '');
    const earlier = out[name];
    if (earlier === undefined) out[name] = value;
    else if (Array.isArray(earlier)) earlier.push(value);
    else if (!single.has(name)) out[name] = [earlier, value];
  }
  return out;
}
