import fc from 'fast-check';
import t from 'tap';
import {
  createTraceparent,
  isTraceparent,
  traceIdOf,
  traceparentBytes,
  parentSpanOf,
  sampledTraceparent,
  withTraceparent,
} from '../../../src/decision/telemetry/trace-context.js';

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const parent = '00f067aa0ba902b7';

const cases = [
  { name: 'as in the specification', input: `00-${trace}-${parent}-01`, expected: true },
  { name: 'not sampled', input: `00-${trace}-${parent}-00`, expected: true },
  { name: 'unknown flags', input: `00-${trace}-${parent}-ff`, expected: true },
  { name: 'a later version', input: `01-${trace}-${parent}-01`, expected: true },
  { name: 'a later version that is longer', input: `cc-${trace}-${parent}-01-what-comes.next`, expected: true },
  { name: 'a later version with nothing after the hyphen', input: `cc-${trace}-${parent}-01-`, expected: true },
  { name: 'a later version, longer without a hyphen', input: `cc-${trace}-${parent}-01.x`, expected: false },
  {
    name: 'a later version that is far too long',
    input: `cc-${trace}-${parent}-01-${'x'.repeat(201)}`,
    expected: false,
  },
  { name: 'a later version with a blank', input: `cc-${trace}-${parent}-01-a b`, expected: false },
  { name: 'version 00 may not be longer', input: `00-${trace}-${parent}-01-x`, expected: false },
  { name: 'version 00 with a last hyphen', input: `00-${trace}-${parent}-01-`, expected: false },
  { name: 'version ff', input: `ff-${trace}-${parent}-01`, expected: false },
  { name: 'version fe', input: `fe-${trace}-${parent}-01`, expected: true },
  { name: 'version in upper case', input: `CC-${trace}-${parent}-01`, expected: false },
  { name: 'trace id in upper case', input: `00-${trace.toUpperCase()}-${parent}-01`, expected: false },
  { name: 'parent id in upper case', input: `00-${trace}-${parent.toUpperCase()}-01`, expected: false },
  { name: 'no trace id', input: `00-${'0'.repeat(32)}-${parent}-01`, expected: false },
  { name: 'no parent id', input: `00-${trace}-${'0'.repeat(16)}-01`, expected: false },
  { name: 'trace id too short', input: `00-${trace.slice(1)}-${parent}-01`, expected: false },
  { name: 'trace id too long', input: `00-${trace}0-${parent}-01`, expected: false },
  { name: 'parent id too short', input: `00-${trace}-${parent.slice(1)}-01`, expected: false },
  { name: 'flags too short', input: `00-${trace}-${parent}-1`, expected: false },
  { name: 'no hex digit', input: `00-${trace.slice(1)}g-${parent}-01`, expected: false },
  { name: 'underscores', input: `00_${trace}_${parent}_01`, expected: false },
  { name: 'two of them', input: `00-${trace}-${parent}-01, 00-${trace}-${parent}-01`, expected: false },
  { name: 'a blank behind', input: `00-${trace}-${parent}-01 `, expected: false },
  { name: 'a newline behind', input: `00-${trace}-${parent}-01\n`, expected: false },
  { name: 'empty', input: '', expected: false },
];

t.test('a traceparent is passed on as W3C Trace Context has it', (t) => {
  for (const { name, input, expected } of cases) t.equal(isTraceparent(input), expected, name);
  t.end();
});

t.test('a new traceparent is made of random bytes, says so and claims no sampling', (t) => {
  const bytes = Buffer.from(Array.from({ length: traceparentBytes }, (_, i) => i + 1));
  t.equal(createTraceparent(bytes.toString('hex')), '00-0102030405060708090a0b0c0d0e0f10-1112131415161718-02');
  t.equal(
    createTraceparent('0'.repeat(2 * traceparentBytes)),
    '00-00000000000000000000000000000001-0000000000000001-02',
    'ids are never zero',
  );
  const random = fc.uint8Array({ minLength: traceparentBytes, maxLength: traceparentBytes });
  t.doesNotThrow(() =>
    fc.assert(fc.property(random, (given) => isTraceparent(createTraceparent(Buffer.from(given).toString('hex'))))),
  );
  t.end();
});

t.test('the trace id is the second part, whatever the version', (t) => {
  for (const { name, input } of cases.filter(({ expected }) => expected)) t.equal(traceIdOf(input), trace, name);
  t.equal(traceIdOf(null), null);
  t.end();
});

t.test('a traceparent of ours takes the place of the one that came, or is added', (t) => {
  const own = sampledTraceparent('a'.repeat(32), 'b'.repeat(16), false);
  t.equal(own, `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`);
  t.match(sampledTraceparent('a'.repeat(32), 'b'.repeat(16), true), /-03$/);
  t.same(withTraceparent(['A', 'traceparent', 'traceparent', 'old', 'B', '2'], own), [
    'A',
    'traceparent',
    'traceparent',
    own,
    'B',
    '2',
  ]);
  t.same(withTraceparent(['A', '1'], own), ['A', '1', 'traceparent', own]);
  t.same(parentSpanOf(own), { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), isSampled: true });
  t.equal(parentSpanOf(own.replace(/1$/, '2')).isSampled, false);
  t.end();
});
