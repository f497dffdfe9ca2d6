import t from 'tap';
import { findDisagreements, generateRequests, startAgreementProxy } from './agreement.js';

t.setTimeout(1_800_000);

const count = 10_000;

t.test('explain, test and serve agree on 10,000 generated requests', async (t) => {
  const proxy = await startAgreementProxy(t);
  const seed = Date.now() % 1_000_000;
  t.comment(`seed ${seed}`);
  t.same(await findDisagreements(proxy, generateRequests(count, seed), 20), []);
});
