import { PassThrough } from 'node:stream';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import type { ReservationScope } from '../../../src/decision/reservation-scope.js';
import { announcedLength, outcomeField } from '../../../src/proxy/reserving/collected-answer.js';
import { createPending } from '../../../src/proxy/reserving/pending.js';
import { createSettlements, type Settlements, type SettlementLimits } from '../../../src/proxy/reserving/settlements.js';
import type { Settling } from '../../../src/proxy/reserving/settling.js';
import { createBufferBudget, readWhole } from '../../../src/proxy/reserving/whole-body.js';
import { createSlots, shareSlot } from '../../../src/proxy/slots.js';
import { until } from '../../support/until.js';
import { manualTime, type ManualTime } from '../../adapters/manual-time.js';
import { collectingLog } from '../../adapters/store-world.js';
import { createFaultyStore, down, type FaultyStore } from './faulty-store.js';

t.test('REPLAY 5: a caller has a hundred places for writes; one write has one, however often it is asked for', (t) => {
  const pending = createPending();
  const scope = (principal: string, operation: string | null, token: string | null = null): ReservationScope => ({ principal, operation, token });
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
  const pending = createPending(2);
  for (let round = 0; round < 3; round += 1) {
    const leaves = ['x', 'y'].map((operation) => pending.enter({ principal: 'a', operation, token: null }));
    t.equal(pending.size(), 2);
    for (const leave of leaves) leave?.();
    t.equal(pending.size(), 0);
  }
  t.end();
});

t.test('R-40, R-42: bodies that are read whole share a budget', async (t) => {
  const budget = createBufferBudget(10);
  const bodies: string[] = [];
  let callers = 0;
  const read = (onOverload: () => void = () => t.fail('too much')): { readonly stream: PassThrough; readonly give: () => void } => {
    const stream = new PassThrough();
    callers += 1;
    return { stream, give: readWhole(stream, budget.open(`caller ${callers}`), { onWhole: (body) => bodies.push(body.toString()), onOverload }) };
  };
  const first = read();
  first.stream.write('abc');
  first.stream.end('def');
  await until('the first body', () => bodies.length === 1);
  t.equal(budget.taken(), 6, 'held until it is not needed any more');
  let overloads = 0;
  const second = read(() => {
    overloads += 1;
  });
  second.stream.write('abcd');
  await until('four more', () => budget.taken() === 10);
  second.stream.write('e');
  await until('the overload', () => overloads === 1);
  t.ok(second.stream.destroyed);
  second.give();
  first.give();
  first.give();
  t.equal(budget.taken(), 0);
  const third = read();
  third.stream.end('0123456789');
  await until('a body of all there is', () => bodies.length === 2);
  t.same(bodies, ['abcdef', '0123456789']);
  third.give();
});

t.test('R-40: a caller with several bodies has a quarter of the budget, with one body all of it', (t) => {
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
  t.end();
});

t.test('a place that two share is free when both let go', (t) => {
  const slots = createSlots(1);
  const [one, other] = shareSlot(slots.take('protected'));
  one();
  one();
  t.equal(slots.taken(), 1);
  other();
  t.equal(slots.taken(), 0);
  other();
  t.equal(slots.taken(), 0);
  t.end();
});

t.test('what a receiver says of the outcome, and of its length', (t) => {
  const outcomes: readonly (readonly [readonly string[], string | null])[] = [
    [[], null],
    [['idempotency-outcome', ' Committed '], 'committed'],
    [['Idempotency-Outcome', 'not-applied'], 'not-applied'],
    [['Idempotency-Outcome', 'not-applied', 'Idempotency-Outcome', 'committed'], 'committed'],
    [['X', 'committed'], null],
  ];
  for (const [headers, expected] of outcomes) t.equal(outcomeField(headers), expected);
  t.equal(announcedLength(['Content-Length', '12']), 12);
  t.equal(announcedLength([]), 0);
  t.end();
});

interface Bench {
  readonly time: ManualTime;
  readonly store: FaultyStore;
  readonly settlements: Settlements;
  readonly results: string[];
  readonly lines: readonly string[];
  readonly settling: (change?: Partial<Settling>) => Settling;
  /** Moves on until that many calls were made. */
  readonly untilCalls: (calls: number) => Promise<void>;
}

function bench(t: { readonly teardown: (close: () => unknown) => unknown }, limits?: SettlementLimits): Bench {
  const time = manualTime();
  const memory = createMemoryStore(time.clock);
  t.teardown(memory.close);
  const store = createFaultyStore(memory);
  const log = collectingLog();
  const results: string[] = [];
  const settlements = createSettlements({
    store: store.store, clock: time.clock, timers: time.timers, log,
    metrics: {
      reservation: (result) => results.push(result), storeCall: () => undefined, unknownOutcome: () => undefined, replicaShortfall: () => undefined,
    },
  }, limits);
  let operations = 0;
  return {
    time, store, settlements, results, lines: log.lines,
    settling: (change) => {
      operations += 1;
      const response = { status: 200, fields: [], body: Buffer.alloc(100) };
      return {
        scope: { principal: 'p', operation: `o${operations}`, token: null }, recordId: `p.o${operations}`, deduplicates: false,
        write: { kind: 'complete', command: { attempt: 'a', fence: 1, fingerprint: 'f', state: 'completed', response, retentionMs: 60_000 } },
        untilMs: time.clock.monotonic() + 60_000,
        ...change,
      };
    },
    untilCalls: async (calls) => {
      await until(`${calls} calls`, () => {
        if (store.calls.length < calls) time.advance(100);
        return store.calls.length >= calls;
      });
    },
  };
}

t.test('REPLAY 3: a settlement that fails is tried again, at longer and longer pauses, until its time is over', async (t) => {
  const { time, store, settlements, lines, settling, results } = bench(t);
  store.behaveAll(down);
  const startedMs = time.clock.monotonic();
  await settlements.settle(settling());
  const pauses: number[] = [];
  while (settlements.open() > 0) {
    pauses.push(time.due()[0] ?? -1);
    const calls = store.calls.length;
    time.advance(time.due()[0] ?? 0);
    await until('the next try', () => store.calls.length > calls);
    await until('its end', () => settlements.open() === 0 || time.due().length > 0);
  }
  t.same(pauses.slice(0, 7), [100, 200, 400, 800, 1_600, 2_000, 2_000]);
  t.ok(time.clock.monotonic() - startedMs < 60_000);
  t.ok(time.clock.monotonic() - startedMs >= 56_000);
  t.match(lines, [/^error a reservation could not be settled.*p\.o1.*sallyport record/]);
  t.same(results, []);
});

t.test('settlements that wait are bounded in number and in bytes: the oldest is given up, with a word', async (t) => {
  for (const limits of [{ maxWaiting: 3, maxBytes: 1_000_000 }, { maxWaiting: 100, maxBytes: 399 }]) {
    const { store, settlements, lines, settling, results, untilCalls } = bench(t, limits);
    store.behaveAll(down);
    for (let i = 0; i < 5; i += 1) await settlements.settle(settling());
    t.equal(settlements.open(), 3);
    t.match(lines, [/p\.o1/, /p\.o2/]);
    store.behaveAll(null);
    await untilCalls(8);
    await until('the rest', () => results.length === 3);
    t.equal(settlements.open(), 0);
  }
});

t.test('at the end what waits is tried once more, and what is being written is waited for', async (t) => {
  const { store, settlements, lines, settling, results } = bench(t);
  store.behaveAll(down);
  await settlements.settle(settling());
  await settlements.settle(settling({ write: { kind: 'release', command: { attempt: 'a' } } }));
  store.behave('release', null);
  await settlements.close();
  t.same(results, ['released']);
  t.match(lines, [/^error .*p\.o1/]);
  t.equal(settlements.open(), 0);

  store.behaveAll(null);
  const last = settlements.settle(settling());
  await settlements.close();
  t.equal(results.length, 2, 'it was written when the end came');
  await last;
});

t.test('what became of a settlement is counted and told', async (t) => {
  const { store, settlements, lines, settling, results } = bench(t);
  const owned = { attempt: 'a', fence: 1 };
  await settlements.settle(settling({ write: { kind: 'mark', command: owned } }));
  t.match(lines, [/^warn a reservation was not settled.*"answer":"kept"/], 'there is no record to mark');
  await settlements.settle(settling());
  t.same(results, ['repaired']);
  t.match(lines[1], /^error the store had lost a reservation/);
  store.behave('complete', async () => ({ ok: true, value: 'unsupported' }));
  await settlements.settle(settling());
  t.match(lines[2], /^warn .*unsupported/);
});

t.test('R-42: a body that was read whole is held once: its chunks are let go while its request goes on', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const stream = new PassThrough();
  const chunks: WeakRef<Buffer>[] = [];
  let size = 0;
  const give = readWhole(stream, createBufferBudget(8 * 1024 ** 2).open('caller'), {
    onWhole: (body) => (size = body.length), onOverload: () => t.fail('too much'),
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
