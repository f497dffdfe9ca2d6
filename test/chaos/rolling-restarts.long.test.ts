import t from 'tap';
import { linesOf } from './restarts.js';
import { restartInTurn } from './rolling-restarts.js';

// That of the file, which is half a minute otherwise, as well as that of its tests.
t.setTimeout(2_000_000);

for (const reuse of ['safe', 'always'] as const) {
  t.test(
    `8 restarts in turn behind HAProxy with http-reuse ${reuse}, and no request fails`,
    { timeout: 900_000 },
    async (t) => {
      const report = await restartInTurn(t, { restarts: 8, requests: 500, delay: '2s', reuse, callers: 40 });
      for (const line of linesOf(report)) t.comment(line);
      t.same(
        [...report.outcomes.keys()].filter((name) => !/ (200|101)$/.test(name)),
        [],
      );
      t.equal(report.ranTwice, 0);
    },
  );
}
