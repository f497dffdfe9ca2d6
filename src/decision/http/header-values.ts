import { memoize } from '../../lib/memo.js';
import { trimBlanks } from '../../lib/text.js';
import { isIPv6 } from 'node:net';

/** RFC 9110 §5.5: no controls but the tab, and nothing that is no byte. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Tells whether a text, one character for each byte, may be the value of a header. */
export function isFieldValue(text: string): boolean {
  return fieldValue.test(text);
}

/** Combines the lines of a header as a recipient may (RFC 9110 §5.3). */
export function combine(earlier: string | undefined, value: string): string {
  return earlier === undefined ? value : `${earlier}, ${value}`;
}

/**
 * Elements of a comma-separated list without quoted strings, in lower case; empty ones count for nothing (RFC 9110
 * §5.6.1).
 */
export function listElements(value: string): readonly string[] {
  const elements: string[] = [];
  for (const part of value.split(',')) {
    const element = trimBlanks(part).toLowerCase();
    if (element !== '') elements.push(element);
  }
  return elements;
}

/**
 * `uri-host [ ":" port ]`. RFC 3986 §3.2.2 lets a name also hold escapes and sub-delimiters: no host has them, and in a
 * comma, semicolon or quote some reader of X-Forwarded-Host sees the end of the value.
 */
const hostAndPort = /^(?:[A-Za-z0-9._~-]+|\[([0-9A-Fa-f:.]+)\])(?::([0-9]{1,5}))?$/;

const largestPort = 65_535;

/**
 * Tells whether a text is a host with or without a port, as a Host header has it (RFC 9110 §7.2). User information is
 * none.
 */
export const isHost: (text: string) => boolean = memoize(
  (text) => {
    const match = hostAndPort.exec(text);
    if (match === null) return false;
    const [, address, port] = match;
    return (address === undefined || isIPv6(address)) && (port === undefined || Number(port) <= largestPort);
  },
  { maxNames: 64, maxLength: 255 },
);

/** Returns the values of a header, `name` in lower case, names and values in turn, in their order. */
export function valuesOf(rawHeaders: readonly string[], name: string): readonly string[] {
  const values: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    if ((rawHeaders[index] ?? '').toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '');
  }
  return values;
}
