import t from 'tap';
import { usualWorkers } from '../support/proxy-process.js';
import { linesOf } from './restarts.js';
import { restartInTurn } from './rolling-restarts.js';

// Many processes have to be started, each of them with as many workers.
t.setTimeout(60_000 * usualWorkers);

t.test('two proxies behind HAProxy are restarted in turn, and no request fails', async (t) => {
  const report = await restartInTurn(t, { restarts: 2, requests: 150, delay: '2s', reuse: 'safe', callers: 20 });
  for (const line of linesOf(report)) t.comment(line);
  t.same(
    [...report.outcomes.keys()].filter((name) => !/ (200|101)$/.test(name)),
    [],
  );
  t.same(report.exits, [0, 0]);
  t.equal(report.ranTwice, 0);
});
