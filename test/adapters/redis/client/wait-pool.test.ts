import t from 'tap';
import { createWaitPool, type WaitPool } from '../../../../src/adapters/redis/client/wait-pool.js';
import type { NodeConnection } from '../../../../src/adapters/redis/client/node-connection.js';

interface Bench {
  readonly pool: WaitPool;
  readonly opened: NodeConnection[];
  readonly usable: Set<NodeConnection>;
  readonly closed: Set<NodeConnection>;
}

/** A pool whose connections are usable once a test says so. */
function bench(): Bench {
  const [opened, usable, closed]: [NodeConnection[], Set<NodeConnection>, Set<NodeConnection>] = [
    [],
    new Set(),
    new Set(),
  ];
  const open = (): NodeConnection => {
    const unasked = (): never => {
      throw new Error('a pool asks nothing of a connection');
    };
    const connection: NodeConnection = {
      facts: unasked,
      run: unasked,
      look: unasked,
      renew: unasked,
      close: () => void closed.add(connection),
    };
    opened.push(connection);
    return connection;
  };
  return { pool: createWaitPool(open, (connection) => usable.has(connection)), opened, usable, closed };
}

/** Longer than any test. */
const longMs = 600_000;

t.test(
  'four connections are opened at once, each lent to one; who finds none waits for the next, in turn',
  async (t) => {
    const { pool, opened, usable } = bench();
    t.equal(opened.length, 4);
    t.same(pool.connections(), opened);
    for (const connection of opened) usable.add(connection);
    const lent = await Promise.all([1, 2, 3, 4].map(async () => pool.take(longMs)));
    t.equal(new Set(lent).size, 4);
    t.notOk(lent.includes(null));
    t.equal(opened.length, 4);
    const order: string[] = [];
    const first = pool.take(longMs).then((connection) => {
      order.push('first');
      return connection;
    });
    const second = pool.take(longMs).then((connection) => {
      order.push('second');
      return connection;
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
  },
);

t.test('a connection that is not usable is lent to nobody until it is', async (t) => {
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
