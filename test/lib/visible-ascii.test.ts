import t from 'tap';
import { isVisibleAscii } from '../../src/lib/visible-ascii.js';

t.test('R-16: what may go to a field and a log line', (t) => {
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
