import t from 'tap';
import { readPathSegment } from '../../../src/decision/http/request-target.js';

/** Segments that are read, and what is read from them. */
const read: { input: string; text: string; encodedSlash?: boolean; parameters?: boolean }[] = [
  { input: '', text: '' },
  { input: 'plain', text: 'plain' },
  { input: '%20a%20', text: ' a ' },
  { input: 'a%20b%5Bc', text: 'a b[c' },
  { input: '%25', text: '%' },
  { input: '%25zz', text: '%zz' },
  { input: '%252', text: '%2' },
  { input: '%252g', text: '%2g' },
  { input: '%25g2', text: '%g2' },
  { input: '%2F', text: '%2F', encodedSlash: true },
  { input: 'a%2fb%20c', text: 'a%2fb c', encodedSlash: true },
  { input: '%20a%2F.b%20', text: ' a%2F.b ', encodedSlash: true },
  { input: 'a;b=c', text: 'a;b=c', parameters: true },
  { input: 'a;', text: 'a;', parameters: true },
  { input: 'a%2fb;c', text: 'a%2fb;c', encodedSlash: true, parameters: true },
  { input: '...;a', text: '...;a', parameters: true },
  { input: 'a;.b', text: 'a;.b', parameters: true },
  { input: 'a%2f...', text: 'a%2f...', encodedSlash: true },
  { input: '%c2%a0', text: '\u00a0' },
  { input: '%c3%80', text: '\u00c0' },
  { input: '%C3%BF', text: '\u00ff' },
  { input: '%df%bf', text: '\u07ff' },
  { input: '%e0%a0%80', text: '\u0800' },
  { input: '%ed%9f%bf', text: '\ud7ff' },
  { input: '%ee%80%80', text: '\ue000' },
  { input: '%ef%bf%bf', text: '\uffff' },
  { input: '%f0%90%80%80', text: '\u{10000}' },
  { input: '%f4%8f%bf%bf', text: '\u{10ffff}' },
  { input: '%e2%82%ac%f0%9f%98%80x%c3%a9', text: '\u20ac\u{1f600}x\u00e9' },
];

/** Those that are not read whatever stands around them, unless it is `whole` that they have to be. */
const refused: { name: string; inputs: readonly string[]; whole?: true }[] = [
  { name: 'an empty name before parameters', inputs: [';', ';a', ';a%20'], whole: true },
  { name: 'dots where parameters are dropped', inputs: ['.;', '..;', '..;a', 'a;..', 'a;.', 'a;..;b'], whole: true },
  {
    name: 'dots where slashes are decoded',
    inputs: ['..%2f', '%2F..', 'a%2f..', '.%2Fa', 'a%2f.%2fb', 'a%2f..;b'],
    whole: true,
  },
  {
    name: 'nothing, or dots, where blanks are cut off',
    inputs: ['%20', '%20%20', '.%20', '%20..', '%20%2F%20', 'a%2f%20', 'a;.%20'],
    whole: true,
  },
  {
    name: 'an escape that is none',
    inputs: [
      '%',
      '%2',
      'a%',
      '%zz',
      '%2:',
      '%2@',
      '%2`',
      '%2G',
      '%1g',
      '%3G',
      '%:2',
      '%g0',
      '% 0',
      '%+1',
      '%0x',
      '%%20',
    ],
  },
  { name: 'what decodes to an escape again', inputs: ['%252e', '%25ff', 'a%2541', '%25AF', '%2500'] },
  { name: 'what needs no escape', inputs: ['%41', '%7a', '%30', '%2e', '%2D', '%5f', '%7E'] },
  { name: 'what ends or splits a path', inputs: ['%5c', '%3b', '%3F', '%23'] },
  { name: 'controls', inputs: ['%00', '%0a', '%1f', '%7f', '%c2%80', '%c2%9f'] },
  {
    name: 'a byte that begins no character',
    inputs: ['%80', '%bf', '%bf%bf', '%80%80%80', '%f8%90%80%80', '%f8%88%80%80%80', '%fe', '%ff', '%ff%bf'],
  },
  {
    name: 'a character that is not complete',
    inputs: ['%c3', '%c3x', '%c3x80', '%e2%82', '%e2%82xac', '%e2%82%2', '%f0%9f%98', '%c3%a'],
  },
  {
    name: 'a byte that continues no character',
    inputs: ['%c3%7f', '%c3%c0', '%c3%20', '%e2%82%7f', '%e2%c0%ac', '%f0%9f%98%c0'],
  },
  {
    name: 'a longer form than is needed',
    inputs: [
      '%c0%80',
      '%c0%a0',
      '%c0%af',
      '%c1%bf',
      '%e0%80%af',
      '%e0%82%a0',
      '%e0%9f%bf',
      '%f0%80%80%a0',
      '%f0%8f%bf%bf',
    ],
  },
  { name: 'surrogates', inputs: ['%ed%a0%80', '%ed%bf%bf', '%ed%a0%bd%ed%b8%80'] },
  { name: 'beyond the last code point', inputs: ['%f4%90%80%80', '%f5%80%80%80', '%f7%bf%bf%bf'] },
];

t.test('a segment is decoded once, but for encoded slashes', (t) => {
  for (const { input, text, encodedSlash = false, parameters = false } of read) {
    t.same(readPathSegment(input), { text, encodedSlash, parameters }, JSON.stringify(input));
  }
  t.end();
});

t.test('what two readers may read differently is not read', (t) => {
  for (const { name, inputs, whole } of refused) {
    const segments =
      whole === true ? inputs : inputs.flatMap((input) => [input, `a${input}`, `${input}x`, `%20${input}`]);
    for (const segment of segments) t.equal(readPathSegment(segment), null, `${name}: ${segment}`);
  }
  t.end();
});
