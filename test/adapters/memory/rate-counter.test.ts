import t from 'tap';
import { createRateCounter } from '../../../src/adapters/memory/rate-counter.js';
import { manualTime } from '../manual-time.js';

const rate = { perSecond: 1, burst: 2, shared: false };
const key = (principal: string, scope = 's'): { principal: string; scope: string } => ({ principal, scope });

t.test('each caller and each scope has a bucket', (t) => {
  const { clock, advance } = manualTime();
  const { take } = createRateCounter(clock);
  t.same([take(key('a'), rate), take(key('a'), rate), take(key('a'), rate)], [0, 0, 1_000]);
  t.same([take(key('b'), rate), take(key('a', 'other'), rate)], [0, 0]);
  advance(1_000);
  t.same([take(key('a'), rate), take(key('a'), rate)], [0, 1_000]);
  t.end();
});

t.test('memory is bounded: full buckets are forgotten, and beyond the limit those that asked least recently', (t) => {
  const { clock, advance } = manualTime();
  const { take, size } = createRateCounter(clock, 100);
  for (let i = 0; i < 10_000; i += 1) {
    take(key(`caller-${String(i)}`), rate);
    t.ok(size() <= 100, String(size()));
  }
  t.equal(size(), 100);
  const { take: takeAgain, size: left } = createRateCounter(clock, 1_000);
  for (let i = 0; i < 500; i += 1) takeAgain(key(`caller-${String(i)}`), rate);
  advance(999);
  takeAgain(key('busy'), rate);
  t.equal(left(), 501, 'none is full');
  advance(1);
  for (const expected of [499, 497]) {
    takeAgain(key('busy'), rate);
    t.equal(left(), expected, 'the oldest two are');
  }
  advance(10_000);
  for (let i = 0; i < 500; i += 1) takeAgain(key('busy'), rate);
  t.equal(left(), 1, 'only the one that still asks');
  t.end();
});

t.test('who asked least recently is forgotten first', (t) => {
  const { clock } = manualTime();
  const { take } = createRateCounter(clock, 2);
  const one = { ...rate, burst: 1 };
  t.same(
    ['a', 'b', 'a', 'c', 'a', 'b'].map((name) => take(key(name), one)),
    [0, 0, 1_000, 0, 1_000, 0],
  );
  t.end();
});
