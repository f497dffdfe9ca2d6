import t from 'tap';
import { findDisagreements, generateRequests, startAgreementWorld } from './agreement.js';

/** `agreement.long.test.ts` asks 10,000. */
const count = 200;

t.test('explain, test and serve agree on generated requests', async (t) => {
  const world = await startAgreementWorld(t);
  const requests = generateRequests(count, 7);
  t.same(await findDisagreements(world, requests, 10), []);
  const reasons = new Set(world.logs().map((line) => line['reason']));
  t.ok(reasons.size > 20, `${reasons.size} reasons were met: ${[...reasons].join(' ')}`);
});
