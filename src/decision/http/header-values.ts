import { trimBlanks } from '../../lib/text.js';

/** RFC 9110 §5.5: no controls but the tab, and nothing that is no byte. */
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Tells whether a text, one character for each byte, may be the value of a field. */
export function isFieldValue(text: string): boolean {
  return fieldValue.test(text);
}

/** Combines the lines of a field as a recipient may (RFC 9110 §5.3). */
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
