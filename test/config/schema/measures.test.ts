import fc from 'fast-check';
import t from 'tap';
import { durationMeasure, readTime, sizeMeasure } from '../../../src/config/schema/measures.js';
import { duration, size, time } from '../../../src/config/schema/scalars.js';

t.test('durations and sizes are what the schema reads, and what is none is nothing', (t) => {
  const { allowed, read } = durationMeasure('1s', '2h');
  t.equal(allowed, 'a duration from 1s to 2h, such as 5s, 15m');
  const rows: readonly (readonly [string, number | null])[] = [
    ['1s', 1_000],
    ['90s', 90_000],
    ['2h', 7_200_000],
    ['1000ms', 1_000],
    ['999ms', null],
    ['121m', null],
    ['', null],
    ['5', null],
    ['1.5s', null],
    ['-5s', null],
    [' 5s', null],
  ];
  for (const [text, ms] of rows) {
    t.equal(read(text), ms, text);
    t.equal(duration('1s', '2h').safeParse(text).success, ms !== null, `the schema, of ${text}`);
  }
  t.equal(sizeMeasure('1B', '1GiB').read('64KiB'), 65_536);
  t.equal(size('1B', '1GiB').parse('64KiB'), 65_536);
  t.end();
});

t.test('a time is one to arguments where it is one to the config', (t) => {
  const isTime = (text: string): boolean => time().safeParse(text).success;
  const texts = [
    '2026-01-31T12:00:00Z',
    '2026-01-31T12:00:00.123456Z',
    '2026-01-31T12:00:00+05:30',
    '2024-02-29T00:00:00Z',
    '2023-02-29T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-01-31T24:00:00Z',
    '2026-01-31T12:60:00Z',
    '2026-01-31T12:00:60Z',
    '2026-01-31T12:00Z',
    '2026-01-31',
    '2026-01-31 12:00:00Z',
    '2026-01-31T12:00:00',
    '2026-01-31t12:00:00z',
    '2026-01-31T12:00:00.Z',
    '2026-01-31T12:00:00+24:00',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59Z',
    '',
    'yesterday',
    '2026-01-31T12:00:00Z\n',
  ];
  for (const text of texts) t.equal(readTime(text) !== null, isTime(text), JSON.stringify(text));
  const two = fc.integer({ min: 0, max: 99 }).map((number) => String(number).padStart(2, '0'));
  fc.assert(
    fc.property(fc.tuple(two, two, two, two, two, two), ([century, month, day, hour, minute, second]) => {
      const text = `${century}24-${month}-${day}T${hour}:${minute}:${second}Z`;
      return (readTime(text) !== null) === isTime(text);
    }),
    { numRuns: 2_000 },
  );
  t.equal(readTime('2026-01-31T12:00:00+01:00'), Date.parse('2026-01-31T11:00:00Z'));
  t.end();
});
