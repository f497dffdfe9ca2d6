import fc from 'fast-check';
import t from 'tap';
import { isCanonicalBase64Url } from '../../src/lib/base64url.js';

const cases = [
  { name: 'empty', input: '', expected: false },
  { name: 'one character encodes nothing', input: 'A', expected: false },
  { name: 'one byte', input: 'YQ', expected: true },
  { name: 'one byte with a trailing bit set', input: 'YR', expected: false },
  { name: 'one byte with the highest trailing bit set', input: 'YY', expected: false },
  { name: 'two bytes', input: 'YWE', expected: true },
  { name: 'two bytes with a trailing bit set', input: 'YWF', expected: false },
  { name: 'three bytes', input: 'YWFh', expected: true },
  { name: 'three bytes end in any character', input: 'YWF_', expected: true },
  { name: 'five characters', input: 'YWFhY', expected: false },
  { name: 'padding', input: 'YQ==', expected: false },
  { name: 'the other alphabet', input: 'YW+h', expected: false },
  { name: 'the other alphabet, slash', input: 'YW/h', expected: false },
  { name: 'a space', input: 'YW h', expected: false },
  { name: 'a newline at the end', input: 'YWFh\n', expected: false },
  { name: 'a letter beyond ASCII', input: 'YWF\u00e9', expected: false },
];

t.test('each byte string has one base64url spelling', (t) => {
  for (const { name, input, expected } of cases) t.equal(isCanonicalBase64Url(input), expected, name);
  t.end();
});

t.test('canonical is what re-encoding gives back', (t) => {
  const spelling = fc.string({ unit: fc.constantFrom(...Array.from('AEQgwYVabc019-_+/= \n')), maxLength: 12 });
  fc.assert(
    fc.property(spelling, (text) => {
      const reencoded = Buffer.from(text, 'base64url').toString('base64url');
      return isCanonicalBase64Url(text) === (text !== '' && reencoded === text);
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), (bytes) =>
      isCanonicalBase64Url(Buffer.from(bytes).toString('base64url')),
    ),
  );
  t.end();
});
