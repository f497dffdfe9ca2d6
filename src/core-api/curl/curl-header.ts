import { accept, refuse, type Result } from '../../lib/result.js';

/** A header of every call. */
export interface CurlHeader {
  readonly name: string;
  /** Secret: it is never shown. */
  readonly value: string;
}

/** RFC 9110 §5.6.2 `token`, of a length that a name may have. */
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const fieldValue = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const maxValueLength = 8_192;

/** They belong to the connection or to the body, which are made here. */
const ours = new Set([
  'host',
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'accept-encoding',
  'range',
]);

/** Curl leaves them out where the file gives them no value. */
const removable = new Set(['accept', 'expect', 'user-agent', 'content-type']);

/** Bodies are JSON in UTF-8, which is what curl has to be told. */
const jsonType = /^application\/json(?:\s*;\s*charset="?utf-8"?)?$/i;

/**
 * Reads what follows `header`: `NAME: VALUE`. `null` is one that says what holds here anyway. Refuses, without showing
 * the value, what curl would read in another way: `@FILE`, `NAME:` and `NAME;`.
 */
export function readCurlHeader(text: string): Result<CurlHeader | null, string> {
  if (text.startsWith('@')) return refuse('`header` names another file; every header has to stand in this one');
  const colon = text.indexOf(':');
  const name = colon < 0 ? text.replace(/;$/, '') : text.slice(0, colon);
  if (!fieldName.test(name)) return refuse('`header` is not NAME: VALUE');
  // Without a colon what stands there may be the value.
  if (colon < 0) {
    return refuse(
      text.endsWith(';') ? '`header` sends an empty value' : '`header` is not NAME: VALUE; curl would not send it',
    );
  }
  const value = text.slice(colon + 1).replace(/^[\t ]+|[\t ]+$/g, '');
  const lowerName = name.toLowerCase();
  if (value === '') {
    return removable.has(lowerName) ? accept(null) : refuse(`the header ${name} has no value; curl would not send it`);
  }
  if (ours.has(lowerName)) return refuse(`the header ${name} belongs to the connection and cannot be set`);
  if (value.length > maxValueLength || !fieldValue.test(value)) {
    return refuse(
      `the value of the header ${name} is longer than ${String(maxValueLength)} characters or holds other ones than visible ASCII and spaces`,
    );
  }
  if (lowerName !== 'content-type') return accept({ name, value });
  return jsonType.test(value) ? accept(null) : refuse('the header Content-Type may be application/json only');
}
