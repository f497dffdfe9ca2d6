import fc from 'fast-check';
import t from 'tap';
import { schedule, violationsOf } from './schedule.js';

t.test('every promise holds under 500 generated schedules', async (t) => {
  await fc.assert(
    fc.asyncProperty(schedule, async (steps) => {
      const violations = await violationsOf(steps);
      if (violations.length > 0) throw new Error(violations.join('\n'));
    }),
    { numRuns: 500 },
  );
  t.pass('no schedule broke a property');
});
