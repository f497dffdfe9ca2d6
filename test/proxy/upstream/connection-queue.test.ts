import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { WaitingLine } from '../../../src/proxy/upstream/connection-queue.js';
import type { CallInLine } from '../../../src/proxy/upstream/call.js';
import type { Scope } from '../../support/scope.js';
import { until } from '../../support/until.js';

interface Line {
  readonly line: WaitingLine;
  /** Names of those that gave way. */
  readonly gaveWay: string[];
  /** Has one more call of this holder join. */
  readonly join: (name: string, holder?: string) => void;
  /** Has so many start; returns their names. */
  readonly start: (count: number) => string[];
}

/** A line before 16 connections: in overload 24 may wait. */
function lineUp(t: Scope, maxConnections = 16): Line {
  const names = new Map<CallInLine, string>();
  const nameOf = (call: CallInLine): string => names.get(call) ?? '';
  const gaveWay: string[] = [];
  const line = new WaitingLine(maxConnections, (call) => gaveWay.push(nameOf(call)));
  t.teardown(() => line.takeAll());
  return {
    line,
    gaveWay,
    join: (name, holder = 'a') => {
      const call = {
        holder,
        request: {},
        isAlone: false,
        start: () => undefined,
        refuse: () => undefined,
      } as unknown as CallInLine;
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

t.test('a place can always be had before the overload, however many are taken', async (t) => {
  const { line, join } = lineUp(t);
  for (let i = 0; i < 1_000; i += 1) t.type(line.takePlace('a'), 'function');
  for (let i = 0; i < 100; i += 1) join(String(i));
  t.type(line.takePlace('a'), 'function', 'a burst is none');
});

t.test('in overload there is a place for each connection, and each given back is given again', async (t) => {
  const flooded = lineUp(t);
  await overload(flooded);
  const places = Array.from({ length: 16 }, () => flooded.line.takePlace('a'));
  t.notOk(places.includes(null));
  t.equal(flooded.line.takePlace('a'), null);
  places[0]?.();
  places[0]?.();
  t.type(flooded.line.takePlace('a'), 'function');
  t.equal(flooded.line.takePlace('a'), null, 'twice given back is once');
});

t.test('while nobody waits there is always a place', async (t) => {
  const flooded = lineUp(t);
  await overload(flooded);
  for (let i = 0; i < 16; i += 1) flooded.line.takePlace('a');
  t.equal(flooded.line.takePlace('a'), null);
  flooded.start(24);
  t.type(flooded.line.takePlace('a'), 'function');
});

t.test('one that takes all places keeps nobody else from some, and each has its part then', async (t) => {
  const flooded = lineUp(t);
  await overload(flooded);
  const of = (holder: string): number => {
    let count = 0;
    while (count < 100 && flooded.line.takePlace(holder) !== null) count += 1;
    return count;
  };
  t.equal(of('a'), 16);
  t.equal(of('b'), 8);
  t.equal(of('c'), 6);
  t.same([of('a'), of('b'), of('c')], [0, 0, 0]);
  t.same(
    Array.from({ length: 10 }, (_, i) => of(`other ${String(i)}`)),
    [2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    'and there are at most twice as many',
  );
});

t.test(
  'as long as places are refused it stays overload, and some time after that every place can be had again',
  async (t) => {
    const flooded = lineUp(t);
    await overload(flooded);
    flooded.start(20);
    for (let i = 0; i < 16; i += 1) flooded.line.takePlace('a');
    for (let i = 0; i < 8; i += 1) {
      await sleep(100);
      t.equal(flooded.line.takePlace('a'), null);
    }
    await until('a place can be had', async () => {
      await sleep(600);
      return flooded.line.takePlace('a') !== null;
    });
  },
);

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
