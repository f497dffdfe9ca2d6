/** The measurement of one and of three primaries still works, with a real Cluster. */
import t from 'tap';
import '../support/redis-server.js';
import { measurePrimaries, primariesTable } from './primaries.js';

t.test('writes are shared out to three primaries, each of which is asked', async (t) => {
  const measured = await measurePrimaries(t, { seconds: 0.5, rounds: 1, connections: 4 });
  const [one, three] = measured;
  t.same(
    measured.map(({ count }) => count),
    [1, 3],
  );
  t.equal(one?.cpuUs, one?.busiestUs);
  t.ok(three !== undefined && three.busiestUs < three.cpuUs, 'the busiest has not all of them');
  for (const { writesPerS, capacity } of measured) t.ok(writesPerS > 0 && capacity > 0);
  t.match(primariesTable(measured), /^\| primaries \|.*\n.*\n\| 1 \| \d+ \| .* \| 1\.00 \|\n\| 3 \|/);
});
