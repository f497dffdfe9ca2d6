import t from 'tap';
import { waitUntil } from '../../src/lib/wait-until.js';

t.test('what holds at once, or after a while, holds', async (t) => {
  t.equal(await waitUntil(() => true, 0), true);
  let looks = 0;
  t.equal(await waitUntil(() => ++looks > 2, 60_000), true);
});

t.test('what does not hold in time does not', async (t) => {
  let looks = 0;
  t.equal(await waitUntil(() => ++looks < 0, 30), false);
  t.ok(looks > 1, 'it looked more than once');
});
