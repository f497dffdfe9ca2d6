/** Many callers at once before real receivers. */
import t from 'tap';
import { djangoOnGunicorn } from './receivers/django.js';
import { faultyReceiver } from './receivers/faulty.js';
import { holdReceiver, passTraffic } from './receivers/hold-receiver.js';
import { realReceivers } from './receivers/start.js';

t.setTimeout(600_000);

for (const receiver of realReceivers) {
  t.test(`${receiver.name}: each caller gets its own responses, and no write runs twice`, async (t) =>
    holdReceiver(t, receiver, { requests: 1_500 }),
  );
}

t.test(
  'an upstream that cuts answers, sends too much and hangs up at any moment harms nobody but whom it answers',
  async (t) => {
    await holdReceiver(t, faultyReceiver, { requests: 3_000, mayFail: true });
  },
);

t.test('the same traffic tells where answers go to others: connections that are used again at once', async (t) => {
  const config = { upstream: { reuse: 'always' }, receiver: { reads_bodies: true } };
  const found: string[] = [];
  // It is a matter of microseconds: some for each round, and hardly ever none.
  for (let round = 0; round < 10 && !found.some((what) => what.includes('POISON')); round += 1) {
    found.push(...(await passTraffic(t, djangoOnGunicorn, { requests: 3_000, config })).wrong);
  }
  t.ok(
    found.some((what) => what.includes('POISON')),
    JSON.stringify(found),
  );
});
