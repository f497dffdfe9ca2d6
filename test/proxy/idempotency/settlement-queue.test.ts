import t from 'tap';
import { createMemoryStore } from '../../../src/adapters/memory/reservation-store.js';
import { accept } from '../../../src/lib/result.js';
import {
  createSettlements,
  type Settlements,
  type SettlementLimits,
} from '../../../src/proxy/idempotency/settlement-queue.js';
import type { Settling } from '../../../src/proxy/idempotency/settlement-queue.js';
import { manualTime, type ManualTime } from '../../adapters/manual-time.js';
import { collectingLog, markOf } from '../../adapters/store-commands.js';
import { until } from '../../support/until.js';
import { createFaultyStore, down, gate, type FaultyStore } from './faulty-store.js';
import { silentReservationMetrics } from '../../support/reservation-metrics.js';

interface Bench {
  readonly time: ManualTime;
  readonly store: FaultyStore;
  readonly settlements: Settlements;
  readonly results: string[];
  /** How long calls of the store took. */
  readonly took: string[];
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
  const took: string[] = [];
  const settlements = createSettlements(
    {
      store: store.store,
      clock: time.clock,
      timers: time.timers,
      log,
      metrics: {
        ...silentReservationMetrics,
        reservation: (result) => results.push(result),
        storeCall: (operation, ms) => took.push(`${operation} ${ms}`),
        offeredAgain: (count) => results.push(`again ${String(count)}`),
      },
    },
    limits,
  );
  let operations = 0;
  return {
    time,
    store,
    settlements,
    results,
    took,
    lines: log.lines,
    settling: (change) => {
      operations += 1;
      const response = { status: 200, headers: [], body: Buffer.alloc(100) };
      return {
        scope: { principal: 'p', operation: `o${operations}`, token: null },
        recordId: `p.o${operations}`,
        deduplicates: false,
        write: {
          kind: 'complete',
          command: { attempt: 'a', fence: 1, fingerprint: 'f', state: 'completed', response, retentionMs: 60_000 },
        },
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

t.test('a settlement that fails is tried again, at longer and longer pauses, until its time is over', async (t) => {
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
  for (const limits of [
    { maxWaiting: 3, maxBytes: 1_000_000 },
    { maxWaiting: 100, maxBytes: 300 },
    { maxWaiting: 100, maxBytes: 399 },
  ]) {
    const { time, store, settlements, lines, settling, results, untilCalls } = bench(t, limits);
    store.behaveAll(down);
    for (let i = 0; i < 5; i += 1) await settlements.settle(settling());
    t.equal(settlements.open(), 3);
    t.match(lines, [/p\.o1/, /p\.o2/]);
    t.equal(time.due().length, 3, 'what was given up is not tried again');
    store.behaveAll(null);
    await untilCalls(8);
    await until('the rest', () => results.length === 3);
    t.equal(settlements.open(), 0);
  }
});

t.test('a thousand settlements wait, with 64 MiB of responses', async (t) => {
  const byNumber = bench(t);
  byNumber.store.behaveAll(down);
  const release = { kind: 'release', command: { attempt: 'a' }, wasSent: false } as const;
  for (let i = 0; i < 1_001; i += 1) await byNumber.settlements.settle(byNumber.settling({ write: release }));
  t.equal(byNumber.settlements.open(), 1_000);
  t.match(byNumber.lines, [/p\.o1"/]);

  const byBytes = bench(t);
  byBytes.store.behaveAll(down);
  const answer = (bytes: number): Partial<Settling> => {
    const response = { status: 200, headers: [], body: new Uint8Array(bytes) };
    return {
      write: {
        kind: 'complete',
        command: { attempt: 'a', fence: 1, fingerprint: 'f', state: 'completed', response, retentionMs: 60_000 },
      },
    };
  };
  await byBytes.settlements.settle(byBytes.settling(answer(64 * 1024 * 1024 - 1)));
  await byBytes.settlements.settle(byBytes.settling(answer(1)));
  t.equal(byBytes.settlements.open(), 2);
  await byBytes.settlements.settle(byBytes.settling(answer(1)));
  t.equal(byBytes.settlements.open(), 2);
  t.match(byBytes.lines, [/p\.o1"/]);

  const withoutRoom = bench(t, { maxWaiting: 1, maxBytes: 0 });
  withoutRoom.store.behaveAll(down);
  await withoutRoom.settlements.settle(
    withoutRoom.settling({ write: { kind: 'release', command: { attempt: 'a' }, wasSent: false } }),
  );
  t.equal(withoutRoom.settlements.open(), 1, 'a release has no answer to keep');
});

t.test('a settlement whose next try would come when its time is over is given up', async (t) => {
  for (const [patienceMs, waits] of [
    [300, 0],
    [301, 1],
  ] as const) {
    const { time, store, settlements, lines, settling } = bench(t);
    store.behaveAll(down);
    await settlements.settle(settling({ untilMs: time.clock.monotonic() + patienceMs }));
    time.advance(100);
    await until(
      'the second try, and its end',
      () => store.calls.length === 2 && (lines.length > 0 || time.due().length > 0),
    );
    t.equal(settlements.open(), waits);
    t.equal(lines.length, 1 - waits);
  }
});

t.test('a settlement that was given up while it was tried again is told of once', async (t) => {
  const { time, store, settlements, lines, settling } = bench(t, { maxWaiting: 1, maxBytes: 1_000 });
  store.behaveAll(down);
  await settlements.settle(settling());
  const held = gate();
  store.behave('complete', async () => held.fault(async () => down(async () => accept(null))));
  time.advance(100);
  await until('the second try', () => held.waiting() === 1);
  await settlements.settle(settling({ write: { kind: 'release', command: { attempt: 'a' }, wasSent: false } }));
  t.match(lines, [/p\.o1/], 'a newer one has its place');
  held.open();
  await until('its end', () => held.waiting() === 0);
  await settlements.settle(settling({ write: { kind: 'mark', command: markOf('a', 1) } }));
  t.match(lines, [/p\.o1/, /p\.o2/]);
  t.equal(lines.length, 2);
  t.equal(settlements.open(), 1);
});

t.test('a settlement that fails while the end comes is tried once more, and each call is timed', async (t) => {
  const { time, store, settlements, lines, settling, took } = bench(t);
  const held = gate();
  store.behaveAll(async () => held.fault(async () => down(async () => accept(null))));
  const settled = settlements.settle(settling());
  await until('the first try', () => held.waiting() === 1);
  time.advance(7);
  const closed = settlements.close();
  held.open();
  await Promise.all([settled, closed]);
  t.same(took, ['complete 7', 'complete 0']);
  t.match(lines, [/^error .*p\.o1/]);
  t.equal(settlements.open(), 0);
});

t.test('at the end what waits is tried once more, and what is being written is waited for', async (t) => {
  const { store, settlements, lines, settling, results } = bench(t);
  store.behaveAll(down);
  await settlements.settle(settling());
  await settlements.settle(settling({ write: { kind: 'release', command: { attempt: 'a' }, wasSent: false } }));
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
  const owned = markOf('a', 1);
  await settlements.settle(settling({ write: { kind: 'mark', command: owned } }));
  t.match(lines, [/^error the store had lost the reservation of a write/], 'there was no record to mark');
  await settlements.settle(settling());
  t.same(results, ['repaired', 'repaired']);
  t.match(lines[1], /^error the store had lost a reservation/);
  store.behave('complete', async () => ({ ok: true, value: 'unsupported' }));
  await settlements.settle(settling());
  t.match(lines[2], /^warn .*unsupported/);
});
