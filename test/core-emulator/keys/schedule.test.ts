import t from 'tap';
import {
  activeConfig,
  nextKeyDueMs,
  nextSignsFromMs,
  unexpired,
  type ScheduledKey,
} from '../../../src/core-emulator/keys/schedule.js';

const weekMs = 604_800_000;
const schedule = { rotateEveryMs: weekMs, overlapMs: 7_200_000 };

function key(signsFromMs: number, createdMs = signsFromMs): ScheduledKey {
  return { createdMs, signsFromMs };
}

t.test('the newest key whose time has come signs', (t) => {
  const [next, current, before] = [key(2000), key(1000), key(0)];
  t.equal(activeConfig([next, current, before], 999), before);
  t.equal(activeConfig([next, current, before], 1000), current);
  t.equal(activeConfig([next, current, before], 1999), current);
  t.equal(activeConfig([next, current, before], 2000), next);
  t.notOk(activeConfig<ScheduledKey>([], 0));
  t.end();
});

t.test('a replaced key is published until the last of its tokens has expired', (t) => {
  const [next, current, before] = [key(weekMs), key(1000), key(0)];
  t.same(unexpired([next, current, before], schedule, 1000 + 7_199_999), [next, current, before]);
  t.same(unexpired([next, current, before], schedule, 1000 + 7_200_000), [next, current]);
  t.same(unexpired([next], schedule, 0), [next], 'one that waits alone');
  t.end();
});

t.test('the key set stays small however often the key changes', (t) => {
  const keys = Array.from({ length: 100 }, (_, index) => key(100 - index));
  t.same(unexpired(keys, schedule, 100), keys.slice(0, 13), 'one that signs, twelve replaced');
  t.end();
});

t.test('the next key is published a minute ahead, or half the interval', (t) => {
  t.equal(nextKeyDueMs([key(0)], schedule), weekMs - 60_000);
  t.equal(nextKeyDueMs([key(0)], { ...schedule, rotateEveryMs: 4000 }), 2000);
  t.equal(nextKeyDueMs([], schedule), 0);
  t.equal(nextSignsFromMs([key(0)], schedule, weekMs - 60_000), weekMs);
  t.equal(nextSignsFromMs([key(0)], schedule, weekMs - 1), weekMs + 59_999, 'late, it signs late');
  t.equal(nextSignsFromMs([], schedule, 5), 5, 'the first one at once');
  t.end();
});
