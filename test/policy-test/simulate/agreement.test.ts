import t from 'tap';
import { findDisagreements, generateRequests, startAgreementProxy } from './agreement.js';

/** `agreement.long.test.ts` asks 10,000. */
const count = 200;

t.test('explain, test and serve agree on generated requests', async (t) => {
  const proxy = await startAgreementProxy(t);
  const requests = generateRequests(count, 7);
  t.same(await findDisagreements(proxy, requests, 10), []);
  const reasons = new Set(proxy.logs().map((line) => line['reason']));
  t.ok(reasons.size > 20, `${reasons.size} reasons were met: ${[...reasons].join(' ')}`);
});
