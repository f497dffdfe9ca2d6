/** The measurement of the calling side still works. */
import t from 'tap';
import { egressTable, measureEgress } from './egress.js';

t.setTimeout(120_000);

t.test('each way is asked, and a body is held', { timeout: 120_000 }, async (t) => {
  const measured = await measureEgress(t, { seconds: 0.5, rounds: 1, connections: 4, wrk: false });
  for (const { name, cpuUs } of measured.ways) {
    // Nothing of ours is on the direct way.
    t.equal(cpuUs > 0, name !== 'direct', name);
  }
  t.equal(measured.ways.length, 6);
  t.ok(measured.heldKib > 0);
  t.match(egressTable(measured), /^\| way \|.*\n.*\n\| answering side alone \| \d+ \| 1\.00 \|/);
});
