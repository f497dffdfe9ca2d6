/** Header sections as `node:http2` takes them. */
import { trimBlanks } from '../../lib/text.js';
import { connectionHeaders, oneLineHeaders } from './header-names.js';

/** An object of header names and values. */
type Http2Headers = Record<string, string | string[]>;

/**
 * Makes an object of names and values in turn: names in lower case, a list where one comes several times. What only a
 * connection of HTTP/1.1 has is left out, and of several lines of a header that has one, the first counts: more are an
 * upstream's mistake. The object has no prototype, so that no name means anything else in it.
 */
export function http2Headers(headers: readonly string[]): Http2Headers {
  const out = Object.create(null) as Http2Headers;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = (headers[i] ?? '').toLowerCase();
    if (connectionHeaders.has(name) || name.startsWith(':')) continue;
    // A field value neither begins nor ends with white space (RFC 9113 §8.2.1).
    const value = trimBlanks(headers[i + 1] ?? '');
    const earlier = out[name];
    if (earlier === undefined) out[name] = value;
    else if (Array.isArray(earlier)) earlier.push(value);
    else if (!oneLineHeaders.has(name)) out[name] = [earlier, value];
  }
  return out;
}
