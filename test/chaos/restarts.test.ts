import t from 'tap';
import { linesOf, restartUnderLoad } from './restarts.js';

t.test(
  'reloads and ends of a proxy leave no request without a response, on kept connections and fresh ones',
  async (t) => {
    const report = await restartUnderLoad(t, {
      restarts: 2,
      reloadsBetween: 3,
      requests: 400,
      delay: '0s',
      callers: 20,
    });
    for (const line of linesOf(report)) t.comment(line);
    t.same(report.lost, []);
    t.same(report.exits, [0, 0]);
    t.equal(report.ranTwice, 0);
  },
);
