import t from 'tap';
import { createLanePool, type LanePool } from '../../../../src/adapters/redis/client/wait-pool.js';
import type { Lane } from '../../../../src/adapters/redis/client/node-connection.js';

interface Bench {
  readonly pool: LanePool;
  readonly opened: Lane[];
  readonly usable: Set<Lane>;
  readonly closed: Set<Lane>;
}

/** A pool whose lanes are usable once a test says so. */
function bench(): Bench {
  const [opened, usable, closed]: [Lane[], Set<Lane>, Set<Lane>] = [[], new Set(), new Set()];
  const open = (): Lane => {
    const unasked = (): never => {
      throw new Error('a pool asks nothing of a lane');
    };
    const lane: Lane = {
      facts: unasked,
      run: unasked,
      look: unasked,
      renew: unasked,
      close: () => void closed.add(lane),
    };
    opened.push(lane);
    return lane;
  };
  return { pool: createLanePool(open, (lane) => usable.has(lane)), opened, usable, closed };
}

/** Longer than any test. */
const longMs = 600_000;

t.test('four lanes are opened at once, each lent to one; who finds none waits for the next, in turn', async (t) => {
  const { pool, opened, usable } = bench();
  t.equal(opened.length, 4);
  t.same(pool.lanes(), opened);
  for (const lane of opened) usable.add(lane);
  const lent = await Promise.all([1, 2, 3, 4].map(async () => pool.take(longMs)));
  t.equal(new Set(lent).size, 4);
  t.notOk(lent.includes(null));
  t.equal(opened.length, 4);
  const order: string[] = [];
  const first = pool.take(longMs).then((lane) => {
    order.push('first');
    return lane;
  });
  const second = pool.take(longMs).then((lane) => {
    order.push('second');
    return lane;
  });
  t.equal(opened.length, 6, 'and one more is opened for each');
  const [a, b] = lent;
  if (a === null || a === undefined || b === null || b === undefined) return t.fail('nothing was lent');
  pool.give(a);
  t.equal(await first, a);
  t.same(order, ['first']);
  pool.give(b);
  t.equal(await second, b);
  pool.give(a);
  t.equal(await pool.take(longMs), a, 'what nobody waits for is free');
  const last = opened[5];
  if (last === undefined) return t.fail('it was not opened');
  usable.add(last);
  t.equal(await pool.take(longMs), last);
  pool.close();
  return undefined;
});

t.test('a lane that is not usable is lent to nobody until it is', async (t) => {
  const { pool, opened, usable } = bench();
  const waiting = [pool.take(longMs), pool.take(longMs), pool.take(longMs)];
  pool.offer();
  const [one, other] = opened;
  if (one === undefined || other === undefined) return t.fail('nothing was opened');
  usable.add(one);
  usable.add(other);
  pool.offer();
  t.equal(await waiting[0], one);
  t.equal(await waiting[1], other);
  pool.close();
  t.equal(await waiting[2], null, 'at the end whoever waits gets none');
  return undefined;
});

t.test('who waits too long gets none, and what comes later goes to others; there are sixteen at most', async (t) => {
  const { pool, opened, usable, closed } = bench();
  t.same(
    await Promise.all(Array.from({ length: 20 }, async () => pool.take(1))),
    Array.from({ length: 20 }, () => null),
  );
  t.equal(opened.length, 16);
  const [one] = opened;
  if (one === undefined) return t.fail('nothing was opened');
  usable.add(one);
  pool.offer();
  t.equal(await pool.take(longMs), one);
  pool.close();
  t.equal(closed.size, 16);
  return undefined;
});
