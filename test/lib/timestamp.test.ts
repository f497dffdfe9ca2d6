import t from 'tap';
import { timestamp } from '../../src/lib/timestamp.js';

t.test('a time is written in UTC with milliseconds', (t) => {
  t.equal(timestamp(1_700_000_000_123), '2023-11-14T22:13:20.123Z');
  t.end();
});

t.test('a number that is no time is said to be none', (t) => {
  t.equal(timestamp(Number.NaN), 'not known');
  t.equal(timestamp(9e15, 'no time'), 'no time');
  t.end();
});
