import t from 'tap';
import { readRetryAfter } from '../../../src/decision/egress/retry-after.js';

t.test('seconds or a date, as RFC 9110 §10.2.3 has them', async (t) => {
  const nowMs = Date.parse('2026-01-31T12:00:00Z');
  const cases = [
    ['0', 0],
    ['120', 120_000],
    ['Sat, 31 Jan 2026 12:00:30 GMT', 30_000],
    ['Sat, 31 Jan 2026 11:00:00 GMT', 0],
    ['', null],
    ['-1', null],
    ['1.5', null],
    ['1234567890', null],
    ['soon', null],
    ['2026-01-31T12:00:30Z', null],
    ['Sat, 31 Foo 2026 12:00:30 GMT', null],
    ['Saturday, 31-Jan-26 12:00:30 GMT', null],
  ] as const;
  for (const [value, ms] of cases) t.equal(readRetryAfter(value, nowMs), ms, value);
});
