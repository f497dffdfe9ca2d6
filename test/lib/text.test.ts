import t from 'tap';
import { isB64Token, isVisibleAscii, oneLine, unusedText, withoutCase } from '../../src/lib/text.js';

t.test('what breaks or disguises a line is escaped, and reads back as it was', async (t) => {
  const texts = ['plain', 'é ü 漢', '\u2028', '\u2029a', '\x7f\x85\x9f', 'a\u202eb\u2066c\u200f'];
  for (const text of texts) {
    const line = oneLine(JSON.stringify({ text }));
    t.same(JSON.parse(line), { text });
    t.notMatch(line, /[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
  }
  t.equal(oneLine('"é"'), '"é"', 'the rest stays');
});

t.test('what may go to a header and a log line', (t) => {
  const cases: { name: string; input: unknown; expected: boolean }[] = [
    { name: 'one character', input: 'a', expected: true },
    { name: 'the first visible one', input: '!', expected: true },
    { name: 'the last visible one', input: '~', expected: true },
    { name: 'as long as may be', input: 'abcd', expected: true },
    { name: 'one too long', input: 'abcde', expected: false },
    { name: 'empty', input: '', expected: false },
    { name: 'a space', input: 'a b', expected: false },
    { name: 'DEL', input: 'a\x7f', expected: false },
    { name: 'a newline at the end', input: 'a\n', expected: false },
    { name: 'a NUL', input: '\0', expected: false },
    { name: 'beyond ASCII', input: 'é', expected: false },
    { name: 'a number', input: 1, expected: false },
    { name: 'an array that prints alike', input: ['a'], expected: false },
    { name: 'null', input: null, expected: false },
    { name: 'undefined', input: undefined, expected: false },
  ];
  for (const { name, input, expected } of cases) t.equal(isVisibleAscii(input, 4), expected, name);
  t.end();
});

t.test('what can be a bearer token', (t) => {
  const cases: { name: string; input: string; expected: boolean }[] = [
    { name: 'every character of it', input: 'AZaz09-._~+/', expected: true },
    { name: 'padded', input: 'a==', expected: true },
    { name: 'empty', input: '', expected: false },
    { name: 'padding alone', input: '==', expected: false },
    { name: 'padding inside', input: 'a=b', expected: false },
    { name: 'two that were joined', input: 'a,b', expected: false },
    { name: 'a blank', input: 'a b', expected: false },
    { name: 'a newline at the end', input: 'a\n', expected: false },
    { name: 'beyond ASCII', input: 'é', expected: false },
  ];
  for (const { name, input, expected } of cases) t.equal(isB64Token(input), expected, name);
  t.end();
});

t.test('a name without case', (t) => {
  for (const name of ['skid', 'SKid', '\u017f\u212aid']) t.equal(withoutCase(name), 'skid');
  t.not(withoutCase('sk\u0130d'), 'skid');
  t.end();
});

t.test('a text that nobody uses is as near as can be', (t) => {
  t.equal(
    unusedText('a', () => false),
    'a',
  );
  const used = new Set(['a', 'ax', 'axxx']);
  t.equal(
    unusedText('a', (text) => used.has(text)),
    'axx',
  );
  t.end();
});
