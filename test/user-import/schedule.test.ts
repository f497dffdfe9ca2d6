import t from 'tap';
import { createSchedule, type Schedule, type Scheduled } from '../../src/user-import/schedule.js';

function item(number: number, ...contacts: string[]): Scheduled {
  return {
    number,
    contacts,
    user: { kind: 'passwordless', contact: { kind: 'email', value: contacts[0] ?? '' }, add: null },
  };
}

/** A schedule past its slow start. */
function warm(concurrency: number, window = 100): Schedule {
  const schedule = createSchedule({ concurrency, window });
  for (let number = -concurrency; number < 0; number += 1) {
    schedule.offer(item(number));
    const taken = schedule.take();
    if (taken !== null) schedule.finish(taken);
  }
  return schedule;
}

t.test('users that share a contact go one after the other, in the order of the file', async (t) => {
  const schedule = warm(8);
  const items = [item(0, 'a', 'b'), item(1, 'b', 'c'), item(2, 'c'), item(3, 'd')];
  for (const one of items) schedule.offer(one);
  t.same(schedule.take()?.number, 0);
  t.same(schedule.take()?.number, 3, 'c is spoken for, though it is free');
  t.equal(schedule.take(), null);
  schedule.finish(items[0] ?? item(0));
  t.same(schedule.take()?.number, 1);
  t.equal(schedule.take(), null);
  schedule.finish(items[1] ?? item(1));
  t.same(schedule.take()?.number, 2);
});

t.test('no more in flight than allowed, and one by one at first', async (t) => {
  const schedule = createSchedule({ concurrency: 3, window: 100 });
  for (let number = 0; number < 10; number += 1) schedule.offer(item(number, String(number)));
  const first = schedule.take();
  t.equal(schedule.take(), null, 'one');
  if (first !== null) schedule.finish(first);
  t.same([schedule.take()?.number, schedule.take()?.number, schedule.take()], [1, 2, null], 'two');
  schedule.finish(item(1, '1'));
  schedule.finish(item(2, '2'));
  t.same(
    [0, 1, 2, 3].map(() => schedule.take()?.number ?? null),
    [3, 4, 5, null],
    'three and no more',
  );
});

t.test('nobody is further ahead than the window', async (t) => {
  const schedule = createSchedule({ concurrency: 2, window: 4 });
  t.equal(schedule.hasRoom(1_000), true, 'nothing is under way');
  schedule.offer(item(10, 'a'));
  t.equal(schedule.hasRoom(13), true);
  t.equal(schedule.hasRoom(14), false);
  const taken = schedule.take();
  t.equal(schedule.hasRoom(14), false, 'in flight is under way');
  if (taken !== null) schedule.finish(taken);
  t.equal(schedule.hasRoom(14), true);
});

t.test('those that wait can be forgotten', async (t) => {
  const schedule = createSchedule({ concurrency: 2, window: 4 });
  schedule.offer(item(0, 'a'));
  schedule.offer(item(1, 'a'));
  schedule.take();
  schedule.clear();
  schedule.finish(item(0, 'a'));
  t.equal(schedule.take(), null);
  t.equal(schedule.hasRoom(1_000), true);
});
