/** Values of Idempotency-Key: a token or a string of structured fields (RFC 8941 §3.3.3, §3.3.4), or neither. */
export interface KeyRow {
  readonly name: string;
  readonly value: string;
  /** The key that it is; `null` where it is none. */
  readonly expected: string | null;
}

export const idempotencyKeys: readonly KeyRow[] = [
  { name: 'a bare token', value: 'abc', expected: 'abc' },
  { name: 'a quoted string is the same key', value: '"abc"', expected: 'abc' },
  { name: 'every character of a bare token', value: 'AZaz09._:/+=~@-', expected: 'AZaz09._:/+=~@-' },
  { name: 'a UUID', value: '8e03978e-40d5-43dd-bc93-6894a57f9324', expected: '8e03978e-40d5-43dd-bc93-6894a57f9324' },
  { name: 'escapes', value: '"a\\"b\\\\c"', expected: 'a"b\\c' },
  { name: 'spaces and printables within quotes', value: '" !#~"', expected: ' !#~' },
  { name: '255 characters', value: 'x'.repeat(255), expected: 'x'.repeat(255) },
  { name: '255 characters within quotes', value: `"${'x'.repeat(255)}"`, expected: 'x'.repeat(255) },
  { name: '255 characters, each escaped', value: `"${'\\\\'.repeat(255)}"`, expected: '\\'.repeat(255) },
  { name: '256 characters', value: 'x'.repeat(256), expected: null },
  { name: '256 characters within quotes', value: `"${'x'.repeat(256)}"`, expected: null },
  { name: 'nothing', value: '', expected: null },
  { name: 'an empty string', value: '""', expected: null },
  { name: 'one quote', value: '"', expected: null },
  { name: 'no closing quote', value: '"abc', expected: null },
  { name: 'an escaped closing quote', value: '"abc\\"', expected: null },
  { name: 'a quote within', value: '"a"b"', expected: null },
  { name: 'a quote at the end only', value: 'abc"', expected: null },
  { name: 'an unknown escape', value: '"a\\b"', expected: null },
  { name: 'an escape of nothing', value: '"a\\', expected: null },
  { name: 'a parameter', value: '"abc";a=1', expected: null },
  { name: 'a list', value: '"a", "b"', expected: null },
  { name: 'a list of tokens', value: 'a,b', expected: null },
  { name: 'a space', value: 'a b', expected: null },
  { name: 'a tab within quotes', value: '"a\tb"', expected: null },
  { name: 'the last control within quotes', value: '"a\u001fb"', expected: null },
  { name: 'a delete character within quotes', value: '"a\u007fb"', expected: null },
  { name: 'what is not ASCII', value: 'ä', expected: null },
  { name: 'the same within quotes', value: '"ä"', expected: null },
  { name: 'bytes of another kind', value: ':YWJj:', expected: ':YWJj:' },
  { name: 'braces, which Redis would read as a hash tag', value: '{abc}', expected: null },
];

/** What every HTTP parser refuses before anybody asks what field it is in. */
export function isFieldText(value: string): boolean {
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value);
}
