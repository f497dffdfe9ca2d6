import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { ConnectionQueue, type Queued } from '../../../../src/proxy/upstream/pool/connection-queue.js';
import type { Scope } from '../../../support/scope.js';
import { until } from '../../../support/until.js';

interface Line {
  readonly line: ConnectionQueue<Queued>;
  /** Names of those that gave way. */
  readonly gaveWay: string[];
  /** Has one more call of this holder join. */
  readonly join: (name: string, holder?: string) => void;
  /** Has so many start; returns their names. */
  readonly start: (count: number) => string[];
}

/** A line before 16 connections: in overload 24 may wait. */
function lineUp(t: Scope, maxConnections = 16): Line {
  const names = new Map<Queued, string>();
  const nameOf = (call: Queued): string => names.get(call) ?? '';
  const gaveWay: string[] = [];
  const line = new ConnectionQueue<Queued>(maxConnections, (call) => gaveWay.push(nameOf(call)));
  t.teardown(() => line.takeAll());
  return {
    line,
    gaveWay,
    join: (name, holder = 'a') => {
      const call = { holder };
      names.set(call, name);
      line.join(call);
    },
    start: (count) => {
      const started: string[] = [];
      line.startInTurn(
        (call) => {
          line.leave(call);
          started.push(nameOf(call));
          return true;
        },
        () => started.length >= count,
      );
      return started;
    },
  };
}

/** Three calls join for each one that starts, until the line is cut; then it is as long as it may be. */
async function overload({ line, join, start, gaveWay }: Line): Promise<void> {
  let number = 0;
  await until('the line is cut', () => {
    for (let i = 0; i < 30; i += 1) join(`flood ${String(number++)}`);
    start(10);
    return gaveWay.length > 0;
  });
  while (line.length < 24) join(`flood ${String(number++)}`);
}

t.test('holders take turns, and calls of one are started as they came', (t) => {
  const { join, start } = lineUp(t);
  for (const name of ['a1', 'a2', 'a3', 'a4']) join(name);
  for (const name of ['b1', 'b2']) join(name, 'b');
  t.same(start(2), ['a1', 'b1']);
  t.same(start(9), ['a2', 'b2', 'a3', 'a4']);
  t.end();
});

t.test('who may not start keeps nobody else from it', (t) => {
  const { line, join } = lineUp(t);
  for (const [name, holder] of [
    ['a1', 'a'],
    ['b1', 'b'],
    ['a2', 'a'],
    ['b2', 'b'],
  ] as const) {
    join(name, holder);
  }
  let started = 0;
  line.startInTurn(
    (call) => {
      if (call.holder === 'a') return false;
      line.leave(call);
      started += 1;
      return true;
    },
    () => false,
  );
  t.equal(started, 2);
  t.equal(line.length, 2);
  t.end();
});

t.test('a burst waits, however long, where no more join than start', async (t) => {
  const burst = lineUp(t);
  for (let i = 0; i < 400; i += 1) burst.join(String(i));
  for (let i = 0; i < 30; i += 1) {
    await sleep(10);
    burst.start(2);
    if (i % 2 === 0) burst.join('one more');
  }
  t.same(burst.gaveWay, []);
});

function numbers(first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, i) => String(first + i));
}

t.test('until it is known for a burst the newest start first, and then all as they came', async (t) => {
  const burst = lineUp(t);
  for (const number of numbers(1, 48)) burst.join(number);
  t.same(burst.start(1), ['1'], 'twice what may wait in overload is in its order');
  for (const number of numbers(49, 60)) burst.join(number);
  t.equal(burst.line.length, 59);
  t.same(burst.start(2), ['13', '14']);
  await sleep(300);
  t.same(burst.start(100), [...numbers(2, 12), ...numbers(15, 60)]);
  t.same(burst.gaveWay, []);
});

t.test('what is postponed starts behind all others, and one that floods postpones nobody else', (t) => {
  const burst = lineUp(t);
  burst.join('b1', 'b');
  for (const number of numbers(1, 60)) burst.join(number);
  t.same(burst.start(2), ['b1', '14']);
  t.same(burst.start(100), [...numbers(15, 60), ...numbers(1, 13)]);
  t.equal(burst.line.length, 0);
  t.end();
});

t.test('in overload what is postponed gives way, the oldest first', async (t) => {
  const flooded = lineUp(t);
  for (const number of numbers(1, 60)) flooded.join(number);
  await until('it gives way', () => {
    flooded.join('more');
    return flooded.gaveWay.length > 0;
  });
  t.same(flooded.gaveWay.slice(0, 36), numbers(1, 36));
  t.equal(flooded.line.length, 24);
});

t.test('what is postponed may leave, and is among all that are taken out', (t) => {
  const gaveWay: Queued[] = [];
  const line = new ConnectionQueue<Queued>(16, (call) => gaveWay.push(call));
  const calls = numbers(1, 60).map(() => ({ holder: 'a' }));
  for (const call of calls) line.join(call);
  const [first, ...others] = calls;
  if (first !== undefined) line.leave(first);
  t.equal(line.length, 59);
  const taken = line.takeAll();
  t.equal(taken.length, others.length);
  t.ok(taken.every((call, i) => call === others[i]));
  t.equal(line.length, 0);
  t.same(gaveWay, []);
  t.end();
});

t.test('a line that stands still waits', async (t) => {
  const still = lineUp(t, 1);
  for (let i = 0; i < 40; i += 1) still.join(String(i));
  await sleep(300);
  t.same(still.gaveWay, []);
});

t.test('in overload the line is cut, the oldest first, and each call that joins makes one give way', async (t) => {
  const flooded = lineUp(t);
  await overload(flooded);
  t.equal(flooded.line.length, 24);
  const before = flooded.gaveWay.length;
  flooded.join('last');
  t.equal(flooded.line.length, 24);
  t.equal(flooded.gaveWay.length, before + 1);
  const numbers = flooded.gaveWay.map((name) => Number(name.slice('flood '.length)));
  t.same(
    numbers,
    [...numbers].sort((one, other) => one - other),
  );
  t.same(flooded.start(100).at(-1), 'last');
});

t.test('one that floods makes nobody else give way', async (t) => {
  const flooded = lineUp(t);
  await overload(flooded);
  for (const name of ['b1', 'b2', 'b3']) flooded.join(name, 'b');
  for (let i = 0; i < 1_000; i += 1) flooded.join('more of the flood');
  t.notOk(flooded.gaveWay.some((name) => name.startsWith('b')));
  t.equal(flooded.line.length, 24);
  t.same(
    flooded.start(6).filter((name) => name.startsWith('b')),
    ['b1', 'b2', 'b3'],
    'and each has its turn',
  );
});

t.test('some time after the overload a burst waits again', async (t) => {
  const flooded = lineUp(t);
  await overload(flooded);
  flooded.start(100);
  const before = flooded.gaveWay.length;
  await until('a burst waits', async () => {
    await sleep(600);
    for (let i = 0; i < 100; i += 1) flooded.join(String(i));
    const isWhole = flooded.line.length === 100;
    flooded.start(100);
    return isWhole;
  });
  t.ok(flooded.gaveWay.length >= before);
});

t.test('an overload is over when nobody waits, so that bursts which can be served are served', async (t) => {
  const flooded = lineUp(t);
  await overload(flooded);
  flooded.start(100);
  // Shorter than what makes an overload end where calls wait: bursts that were cut would prolong it without end.
  await until('a burst waits', async () => {
    await sleep(120);
    const before = flooded.gaveWay.length;
    for (let i = 0; i < 60; i += 1) flooded.join(String(i));
    flooded.start(100);
    return flooded.gaveWay.length === before;
  });
});
