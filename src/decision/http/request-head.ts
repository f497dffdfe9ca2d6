import { combine } from './header-values.js';
import { denial, type Denial } from '../denial.js';

/** A request as far as its head: what a decision is made from. */
export interface RequestHead {
  readonly method: string;
  /** The request target as it came, one character for each byte. */
  readonly target: string;
  /** `1.1` or `1.0`, as Node's parser gives it, or `2.0`. */
  readonly httpVersion: string;
  /** Of HTTP/2: whether no body follows. In HTTP/1 headers say so. */
  readonly endsStream?: boolean;
  /** Names and values in turn, as they came, one character for each byte. */
  readonly rawHeaders: readonly string[];
}

/** The lines of a header, combined; `null` where there are none. As they came: nobody has looked at them. */
export function headerValue({ rawHeaders }: RequestHead, lowerCaseName: string): string | null {
  let value: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) {
      value = combine(value, rawHeaders[i + 1] ?? '');
    }
  }
  return value ?? null;
}

/** `HTTP/1.1`, two spaces and a line end beside method and target, and the empty line at the end. */
const fixedBytes = 14;

/**
 * A colon and a space after each name, a line end after each value. White space beyond that is gone once it was parsed.
 */
const bytesBesideText = 2;

/** Bytes of the request line and the header section together, which `max_header_bytes` limits. */
export function headerBytes(head: RequestHead): number {
  let bytes = head.method.length + head.target.length + fixedBytes;
  for (const text of head.rawHeaders) bytes += text.length + bytesBesideText;
  return bytes;
}

/**
 * Methods that are none of a resource: CONNECT opens a tunnel past every later check, TRACE and TRACK echo credentials,
 * PRI starts an HTTP/2 connection (RFC 9113 §3.4).
 */
const refusedMethods: ReadonlySet<string> = new Set(['TRACE', 'TRACK', 'CONNECT', 'PRI']);

/** Methods that ask for nothing to be done, and may be repeated at will (RFC 9110 §9.2.1). */
export const safeMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** RFC 9110 §5.6.2 `token` without lower-case letters: methods are case-sensitive, and `get` is not GET. */
const upperCaseToken = /^[!#$%&'*+\-.^_`|~0-9A-Z]+$/;

/** Says why no request may have this method: `method_not_allowed`, `method_malformed`, or `null` where one may. */
export function readMethod(method: string): Denial | null {
  if (!upperCaseToken.test(method)) return denial('method_malformed');
  return refusedMethods.has(method) ? denial('method_not_allowed') : null;
}
