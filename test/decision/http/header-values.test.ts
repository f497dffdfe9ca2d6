import t from 'tap';
import { combine, isFieldValue, listElements } from '../../../src/decision/http/header-values.js';
import { trimBlanks } from '../../../src/lib/text.js';

t.test('of all characters, a header value holds visible ones, blanks and bytes beyond ASCII', (t) => {
  for (let code = 0; code < 0x200; code++) {
    const expected = code === 9 || (code >= 32 && code <= 255 && code !== 127);
    if (isFieldValue(`a${String.fromCharCode(code)}b`) !== expected) t.fail(`character ${code}`);
  }
  t.equal(isFieldValue(''), true);
  t.equal(isFieldValue('\u212a'), false);
  t.end();
});

t.test('lines of a header are combined with a comma', (t) => {
  t.equal(combine(undefined, 'a'), 'a');
  t.equal(combine('a', 'b'), 'a, b');
  t.equal(combine('', 'b'), ', b');
  t.end();
});

t.test('elements of a list', (t) => {
  t.same(listElements('a, B,\tc\t ,, ,d'), ['a', 'b', 'c', 'd']);
  t.same(listElements(''), []);
  t.same(listElements('\u00a0'), ['\u00a0'], 'a no-break space is no blank');
  t.equal(listElements(' '.repeat(1_000_000)).length, 0, 'a long run of blanks');
  t.end();
});

t.test('blanks at both ends are removed, and only they', (t) => {
  const rows = [
    ['', ''],
    [' \t', ''],
    [' a ', 'a'],
    ['\ta b\t', 'a b'],
    ['a', 'a'],
    ['\u00a0a\u00a0', '\u00a0a\u00a0'],
    ['\na', '\na'],
  ] as const;
  for (const [input, expected] of rows) t.equal(trimBlanks(input), expected, JSON.stringify(input));
  t.end();
});
