import fc from 'fast-check';
import t from 'tap';
import { schedule, violationsOf } from './schedule.js';

// That of the file, which is half a minute otherwise, as well as that of its tests.
t.setTimeout(3_600_000);

/** `SALLYPORT_SCHEDULES` runs more of them. */
const numRuns = Number(process.env['SALLYPORT_SCHEDULES'] ?? 10_000);

t.test(`every promise holds under ${numRuns} generated schedules`, { timeout: 3_600_000 }, async (t) => {
  await fc.assert(
    fc.asyncProperty(schedule, async (steps) => {
      const violations = await violationsOf(steps);
      if (violations.length > 0) throw new Error(violations.join('\n'));
    }),
    { numRuns },
  );
  t.pass('no schedule broke a property');
});
