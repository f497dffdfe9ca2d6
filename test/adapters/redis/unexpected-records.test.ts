import t from 'tap';
import { createUnexpectedRecords } from '../../../src/adapters/redis/reservation-store.js';
import { manualTime } from '../manual-time.js';
import { collectingLog } from '../store-commands.js';

t.test('what is not ours is told at once, and then every ten seconds at most', (t) => {
  const { clock, advance } = manualTime();
  const log = collectingLog();
  const odd = createUnexpectedRecords({ clock, log });
  for (const [ms, key, lines] of [
    [0, 'a', 1],
    [0, 'b', 1],
    [9_999, 'c', 1],
    [1, 'd', 2],
    [9_999, 'e', 2],
    [1, 'f', 3],
  ] as const) {
    advance(ms);
    odd.tell(key, 'why');
    t.equal(log.lines.length, lines, key);
  }
  t.match(log.lines, [
    /^error .*unexpected data under our key prefix.*"key":"a","reason":"why"/,
    /"key":"d"/,
    /"key":"f"/,
  ]);
  t.end();
});
