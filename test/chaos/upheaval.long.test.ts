import t from 'tap';
import { isOrphan, isTold, linesOf, upheave } from './upheaval.js';

t.setTimeout(600_000);

t.test(
  'cuts at random bytes, fail-overs, clock steps and restarts for two minutes: every violation is absent or told of',
  { timeout: 600_000 },
  async (t) => {
    const report = await upheave(t, { seconds: 120 });
    for (const line of linesOf(report)) t.comment(line);
    t.ok(report.writes > 100);
    t.same(
      report.breaches.filter((breach) => !isTold(breach) && !isOrphan(breach)),
      [],
    );
  },
);
