import t from 'tap';
import { systemClock, systemTimers } from '../../../src/adapters/system/clock.js';
import { until } from '../../support/until.js';

t.test('the clocks count milliseconds', (t) => {
  const before = Date.now();
  t.ok(systemClock.now() >= before);
  const first = systemClock.monotonic();
  t.ok(systemClock.monotonic() >= first);
  t.end();
});

t.test('timers run once, unless they are called off', async (t) => {
  const ran: string[] = [];
  const callOff = systemTimers.after(1, () => ran.push('called off'));
  callOff();
  systemTimers.after(-5, () => ran.push('overdue'));
  systemTimers.after(2 ** 40, () => ran.push('in 30 years'));
  systemTimers.after(5, () => ran.push('soon'));
  await until('the timer runs', () => ran.includes('soon'));
  t.same(ran, ['overdue', 'soon']);
});
