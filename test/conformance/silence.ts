import type { Test } from 'tap';
import type { World } from '../support/world.js';

/** The last test of each file: after all that was sent to this world, nothing secret is written anywhere. */
export function checkSilence(t: Test, world: World): void {
  t.test('no token, cookie, body or query in any log line, metric or status', async (t) => {
    t.same(await world.exposures(), []);
    t.equal(world.process.isRunning(), true, 'and the process is alive');
  });
}
