import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import type { ReservationScope } from '../../../src/decision/idempotency/scope.js';
import { createPendingWrites } from '../../../src/proxy/idempotency/pending-limit.js';
import { createBufferBudget, readWhole } from '../../../src/proxy/idempotency/body-buffer.js';
import { Lease } from '../../../src/proxy/exchange/admission-control.js';
import { createSlots, strangers } from '../../../src/proxy/exchange/concurrency.js';
import { until } from '../../support/until.js';

t.test('a caller has a hundred places for writes; one write has one, however often it is asked for', (t) => {
  const pending = createPendingWrites();
  const scope = (principal: string, operation: string | null, token: string | null = null): ReservationScope => ({
    principal,
    operation,
    token,
  });
  const leaves = Array.from({ length: 100 }, (_, i) => pending.enter(scope('a', `o${i}`)));
  t.notOk(leaves.includes(null));
  t.equal(pending.enter(scope('a', 'o100')), null);
  t.equal(pending.enter(scope('a', null, 'token')), null);
  const again = pending.enter(scope('a', 'o0'));
  t.type(again, 'function', 'the same write');
  t.type(pending.enter(scope('b', 'o100')), 'function', 'another caller');
  leaves[0]?.();
  leaves[0]?.();
  t.equal(pending.enter(scope('a', 'o100')), null, 'o0 is still asked for');
  again?.();
  t.type(pending.enter(scope('a', null, 'o0')), 'function');
  t.equal(pending.enter(scope('a', 'o0')), null, 'a token is no key');
  t.equal(pending.size(), 101);
  t.end();
});

t.test('pending places are given back whole', (t) => {
  const pending = createPendingWrites(2);
  for (let round = 0; round < 3; round += 1) {
    const leaves = ['x', 'y'].map((operation) => pending.enter({ principal: 'a', operation, token: null }));
    t.equal(pending.size(), 2);
    leaves[1]?.();
    const other = pending.enter({ principal: 'a', operation: 'z', token: null });
    t.type(other, 'function');
    t.equal(pending.enter({ principal: 'a', operation: 'w', token: null }), null, 'x is still counted');
    for (const leave of [...leaves, other]) leave?.();
    t.equal(pending.size(), 0);
  }
  t.end();
});

/** One kibibyte of each character: less than that is held as much. */
function kibibytes(text: string): Buffer {
  return Buffer.from(text.replace(/./g, (character) => character.repeat(1024)));
}

function textOf(body: Buffer): string {
  return body.toString().replace(/(.)\1{1023}/g, '$1');
}

t.test('bodies that are read whole share a budget', async (t) => {
  const budget = createBufferBudget(10 * 1024);
  const bodies: string[] = [];
  let callers = 0;
  const read = (
    onOverload: () => void = () => t.fail('too much'),
  ): { readonly stream: PassThrough; readonly give: () => void } => {
    const stream = new PassThrough();
    callers += 1;
    return {
      stream,
      give: readWhole(stream, budget.open(`caller ${callers}`), {
        expectedBytes: null,
        onWhole: (body) => bodies.push(textOf(body)),
        onOverload,
      }),
    };
  };
  const first = read();
  first.stream.write(kibibytes('abc'));
  first.stream.end(kibibytes('def'));
  await until('the first body', () => bodies.length === 1);
  t.equal(budget.taken(), 6 * 1024, 'held until it is not needed any more');
  let overloads = 0;
  const second = read(() => {
    overloads += 1;
  });
  second.stream.write(kibibytes('abcd'));
  await until('four more', () => budget.taken() === 10 * 1024);
  second.stream.write(kibibytes('e'));
  await until('the overload', () => overloads === 1);
  t.ok(second.stream.destroyed);
  second.give();
  first.give();
  first.give();
  t.equal(budget.taken(), 0);
  const third = read();
  third.stream.end(kibibytes('0123456789'));
  await until('a body of all there is', () => bodies.length === 2);
  t.same(bodies, ['abcdef', '0123456789']);
  third.give();
});

t.test('a caller with several bodies has a quarter of the budget, with one body all of it', (t) => {
  const budget = createBufferBudget(100);
  const first = budget.open('a');
  t.ok(first.take(60), 'one body');
  const second = budget.open('a');
  t.notOk(second.take(1), 'another of the same caller');
  const other = budget.open('b');
  t.ok(other.take(15));
  t.ok(budget.open('b').take(10), 'two within the quarter');
  t.notOk(budget.open('b').take(1));
  t.notOk(other.take(16), 'the budget is there for all together');
  first.give();
  first.give();
  t.ok(second.take(25));
  t.equal(budget.taken(), 50);
  t.ok(budget.open('c').take(1), 'the smallest body counts');
  const third = budget.open('c');
  t.notOk(third.take(25));
  t.ok(third.take(10));
  t.notOk(third.take(15), 'a body counts with all that came of it');
  t.ok(third.take(14));
  t.equal(budget.taken(), 75);
  t.end();
});

t.test('a lease that two hold is free when both let go, and its place among all before that where one says so', (t) => {
  const slots = createSlots(1);
  const take = (): (() => void) => slots.take(strangers) ?? (t.fail('there is a place') as never);
  let left = 0;
  const leave = (): void => void (left += 1);
  const lease = new Lease(take(), leave);
  lease.retain();
  lease.release();
  t.same([slots.taken(), left], [1, 0]);
  lease.release();
  t.same([slots.taken(), left], [0, 1]);
  const early = new Lease(take(), leave);
  early.releaseGlobal();
  t.same([slots.taken(), left], [0, 1]);
  take();
  early.release();
  t.same([slots.taken(), left], [1, 2], "and never another's");
  t.end();
});

t.test('a body that was read whole is held once: its chunks are let go while its request goes on', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const stream = new PassThrough();
  const chunks: WeakRef<Buffer>[] = [];
  let size = 0;
  const give = readWhole(stream, createBufferBudget(8 * 1024 ** 2).open('caller'), {
    expectedBytes: null,
    onWhole: (body) => (size = body.length),
    onOverload: () => t.fail('too much'),
  });
  for (let i = 0; i < 4; i += 1) {
    const chunk = Buffer.alloc(64 * 1024);
    chunks.push(new WeakRef(chunk));
    stream.write(chunk);
    await new Promise(setImmediate);
  }
  stream.end();
  await until('the whole body', () => size === 4 * 64 * 1024);
  await until('nobody holds the chunks', () => {
    collect();
    // The stream itself may still hold its last one.
    return chunks.filter((chunk) => chunk.deref() !== undefined).length <= 1;
  });
  give();
});
