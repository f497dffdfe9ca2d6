import t from 'tap';
import { readFraming, type Framing } from '../../../src/decision/http/framing.js';
import { badCodings, badLengths } from '../../support/attacks/framing.js';

type Input = Parameters<typeof readFraming>;

const accepted: readonly { name: string; input: Input; expected: Framing }[] = [
  { name: 'neither', input: [undefined, undefined, '1.1'], expected: { contentLength: null, chunked: false } },
  {
    name: 'neither, HTTP/1.0',
    input: [undefined, undefined, '1.0'],
    expected: { contentLength: null, chunked: false },
  },
  { name: 'an empty body', input: ['0', undefined, '1.1'], expected: { contentLength: 0, chunked: false } },
  { name: 'a length', input: ['42', undefined, '1.1'], expected: { contentLength: 42, chunked: false } },
  { name: 'a length in HTTP/1.0', input: ['42', undefined, '1.0'], expected: { contentLength: 42, chunked: false } },
  { name: 'leading zeros', input: ['0042', undefined, '1.1'], expected: { contentLength: 42, chunked: false } },
  {
    name: 'the largest safe length',
    input: ['9007199254740991', undefined, '1.1'],
    expected: { contentLength: 9007199254740991, chunked: false },
  },
  { name: 'chunks', input: [undefined, 'chunked', '1.1'], expected: { contentLength: null, chunked: true } },
  {
    name: 'chunks in another case',
    input: [undefined, 'CHUNKed', '1.1'],
    expected: { contentLength: null, chunked: true },
  },
];

const refused: readonly { name: string; input: Input }[] = [
  // The last ones only a value can be: on the wire they are another one, or none.
  ...[...badLengths(1), ...badLengths(3), ' 1', '1 ', '\u0661', '1\n'].map((length) => ({
    name: `length ${JSON.stringify(length.slice(0, 30))}`,
    input: [length, undefined, '1.1'] as Input,
  })),
  ...[...badCodings, ' chunked', 'chunked ', 'chun\u212aed'].map((encoding) => ({
    name: `encoding ${JSON.stringify(encoding)}`,
    input: [undefined, encoding, '1.1'] as Input,
  })),
  { name: 'both', input: ['5', 'chunked', '1.1'] },
  { name: 'both, with a length of 0', input: ['0', 'chunked', '1.1'] },
  { name: 'chunks in HTTP/1.0', input: [undefined, 'chunked', '1.0'] },
];

t.test('a length in digits, or chunks', (t) => {
  for (const { name, input, expected } of accepted) t.same(readFraming(...input), { ok: true, value: expected }, name);
  t.end();
});

t.test('no other transfer coding, never both, no length that readers differ about', (t) => {
  for (const { name, input } of refused) {
    t.same(readFraming(...input), { ok: false, error: { reason: 'framing' } }, name);
  }
  t.end();
});
