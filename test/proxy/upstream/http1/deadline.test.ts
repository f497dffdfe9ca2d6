import t from 'tap';
import { Deadline } from '../../../../src/proxy/upstream/http1/deadline.js';
import { until } from '../../../support/until.js';

t.test('a limit passes once, and never early', async (t) => {
  let due = 0;
  const deadline = new Deadline(() => {
    due += 1;
  });
  t.teardown(() => deadline.end());
  t.equal(deadline.isDue(), false, 'none is set');
  const before = performance.now();
  deadline.set(30);
  t.equal(deadline.isDue(), false);
  await until('it is due', () => due > 0);
  t.ok(performance.now() - before >= 30);
  t.equal(deadline.isDue(), false, 'it is lifted by passing');
  deadline.set(5);
  await until('it is due again', () => due === 2);
});

t.test('the last limit counts: a longer one, a shorter one, none', async (t) => {
  const order: string[] = [];
  const limits = (['longer', 'shorter', 'lifted', 'ended', 'set again'] as const).map((name) => {
    const deadline = new Deadline(() => order.push(name));
    t.teardown(() => deadline.end());
    return deadline;
  });
  const [longer, shorter, lifted, ended, again] = limits;
  const before = performance.now();
  for (const deadline of limits) deadline.set(20);
  longer?.set(120);
  shorter?.set(1);
  lifted?.clear();
  ended?.end();
  again?.clear();
  again?.set(60);
  await until('the longest is due', () => order.includes('longer'));
  t.ok(performance.now() - before >= 120);
  t.same(order, ['shorter', 'set again', 'longer']);
});

t.test('limits set and lifted for each of a thousand requests cost one timer', (t) => {
  let armed = 0;
  const original = globalThis.setTimeout;
  t.intercept(globalThis, 'setTimeout', {
    value: (call: () => void, ms: number) => {
      armed += 1;
      return original(call, ms);
    },
  });
  const deadline = new Deadline(() => undefined);
  for (let i = 0; i < 1_000; i++) {
    deadline.set(30_000);
    deadline.set(30_000 + i);
    deadline.clear();
  }
  t.equal(armed, 1);
  deadline.set(4_000);
  t.equal(armed, 2, 'and another where it would fire too late');
  deadline.end();
  t.end();
});

t.test('it knows that the limit passed although its timer is late', (t) => {
  const deadline = new Deadline(() => undefined);
  t.teardown(() => deadline.end());
  deadline.set(1);
  const before = performance.now();
  while (performance.now() - before < 2);
  t.equal(deadline.isDue(), true);
  deadline.clear();
  t.equal(deadline.isDue(), false);
  t.end();
});
