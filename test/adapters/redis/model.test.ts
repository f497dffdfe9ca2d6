import t from 'tap';
import { compareSchedules } from './schedules.js';

const count = Number(process.env['SALLYPORT_SCHEDULES'] ?? 300);

t.test('pure functions, memory store and Lua answer the same schedules alike', async (t) => {
  await compareSchedules(t, count);
  t.pass(`${String(count)} schedules`);
});
