import t from 'tap';
import { compareSchedules } from './schedules.js';

const count = Number(process.env['SALLYPORT_SCHEDULES'] ?? 10_000);

t.test('pure functions, memory store and Lua answer many schedules alike', async (t) => {
  await compareSchedules(t, count);
  t.pass(`${String(count)} schedules`);
});
