const visibleAscii = /^[\x21-\x7e]+$/;

/**
 * Tells whether a value is a string of 1 to `maxLength` visible ASCII characters (RFC 5234 `VCHAR`): what may go to a
 * header field and a log line without being able to forge either.
 */
export function isVisibleAscii(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value.length <= maxLength && visibleAscii.test(value);
}
