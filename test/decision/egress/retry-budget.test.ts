import t from 'tap';
import { RetryBudget } from '../../../src/decision/egress/retry-budget.js';

function sent(budget: RetryBudget, requests: number): number {
  let retries = 0;
  for (let i = 0; i < requests; i += 1) {
    budget.onRequest();
    while (budget.hasRoom()) {
      budget.take();
      retries += 1;
    }
  }
  return retries;
}

t.test('of so many requests no more than their part is repeated, and a few', (t) => {
  const retries = sent(new RetryBudget(0.1), 10_000);
  t.ok(retries >= 1_000 && retries <= 1_010, String(retries));
  t.equal(sent(new RetryBudget(0), 10_000), 10, 'without a part only those');
  t.end();
});

t.test('what was not used in good times is no hoard', (t) => {
  const budget = new RetryBudget(0.5);
  for (let i = 0; i < 100_000; i += 1) budget.onRequest();
  let retries = 0;
  for (; budget.hasRoom(); retries += 1) budget.take();
  t.equal(retries, 10);
  budget.take();
  budget.onRequest();
  budget.onRequest();
  t.ok(budget.hasRoom(), 'nothing is owed');
  t.end();
});
