/** The measurement beside a flood still works: few tokens, a fraction of a second. */
import t from 'tap';
import { tempDir } from '../support/temp-dir.js';
import { floodTable, measureFlood } from './flood.js';

t.test('requests with a remembered token are timed alone and beside each flood', async (t) => {
  const measured = await measureFlood(t, {
    dir: tempDir(t),
    tokens: 50,
    seconds: 0.3,
    rounds: 1,
    connections: 2,
    wrk: false,
  });
  t.equal(measured.length, 4);
  const [alone, ...beside] = measured;
  t.equal(alone?.perSecond, 0);
  for (const { name, perSecond, p50Ms, p99Ms, p999Ms } of beside) {
    t.ok(perSecond > 0 && p50Ms > 0 && p50Ms <= p99Ms && p99Ms <= p999Ms, name);
  }
  t.match(floodTable(measured), /^\| beside it \|.*\n.*\n\| nothing else \| 0 \| \d/);
});
