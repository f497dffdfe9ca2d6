import t from 'tap';
import { failoverCases } from './failover-deployments.js';
import { measureFailovers } from './failovers.js';

t.setTimeout(1_200_000);

for (const row of failoverCases) {
  t.test(
    `${row.topology}, replicas: ${String(row.replicas)}, ${row.how}: what ran twice is counted, and most is brought back before`,
    async (t) => {
      const cost = await measureFailovers(t, row, 1);
      t.comment(JSON.stringify({ ...cost, oddRetries: [...cost.oddRetries] }));
      t.ok(cost.writes > 100, String(cost.writes));
      t.ok(cost.noticed >= 2, 'both proxies notice');
      t.ok(
        cost.duplicates >= cost.ranTwice,
        `${String(cost.ranTwice)} ran twice, ${String(cost.duplicates)} were counted`,
      );
      if (/PAUSE|store failover/.test(row.how)) {
        t.same([cost.ranTwice, cost.lost], [0, 0], 'held first, nothing is lost');
      }
    },
  );
}
