import t from 'tap';
import { createDoubtfulWrites } from '../../../src/app/store/doubtful-writes.js';
import type { RecordState } from '../../../src/decision/idempotency/record.js';
import type { ReservationStore } from '../../../src/ports/idempotency.js';
import { manualTime } from '../../adapters/manual-time.js';
import { until } from '../../support/until.js';

const [first, second, third] = ['a', 'b', 'c'].map((letter) => `${letter.repeat(43)}.${letter.repeat(43)}`) as [
  string,
  string,
  string,
];

/** A store that knows the states of some records. */
function setup(limit?: number) {
  const time = manualTime();
  const states = new Map<string, { state: RecordState }>();
  let asked = 0;
  let away = false;
  const show: ReservationStore['show'] = ({ principal, operation }) => {
    asked += 1;
    if (away) return Promise.resolve({ ok: false, error: { kind: 'unreachable', reason: 'away', mayHaveRun: false } });
    const found = states.get(`${principal}.${operation ?? ''}`);
    if (found === undefined) return Promise.resolve({ ok: true, value: null });
    const nowMs = time.clock.now();
    const record = {
      version: 1,
      fingerprint: '',
      route: null,
      owner: '',
      fence: 1,
      takenOver: false,
      createdAtMs: 0,
      leaseEndsAtMs: 0,
      response: null,
      expiresAtMs: nowMs + 1,
      state: found.state,
    };
    return Promise.resolve({ ok: true, value: { record, nowMs } });
  };
  const unknowns = createDoubtfulWrites({
    store: { show },
    clock: time.clock,
    timers: time.timers,
    ...(limit === undefined ? {} : { limit }),
  });
  return { ...time, states, unknowns, asked: () => asked, setAway: (value: boolean) => (away = value) };
}

t.test('the age of the oldest write in doubt, until it is resolved', async (t) => {
  const { states, unknowns, advance, due, asked } = setup();
  t.equal(unknowns.oldestMs(), null);
  states.set(first, { state: 'unknown' }).set(second, { state: 'unknown' });
  unknowns.add(first);
  advance(1_000);
  unknowns.add(second);
  unknowns.add(first);
  advance(2_000);
  t.equal(unknowns.oldestMs(), 3_000, 'from the first time on');
  advance(27_000);
  await until('it looked', () => due().length > 0);
  t.equal(asked(), 2);
  t.equal(unknowns.oldestMs(), 30_000, 'nobody resolved it');
  states.set(first, { state: 'tombstone' });
  advance(30_000);
  await until('it looked again', () => due().length > 0);
  t.equal(unknowns.oldestMs(), 59_000, 'the second one is left');
  states.delete(second);
  advance(30_000);
  await until('it looked once more', () => due().length > 0);
  t.equal(unknowns.oldestMs(), null);
  unknowns.close();
  t.same(due(), []);
});

t.test('what ends the doubt', async (t) => {
  const rows: readonly { state: RecordState; inDoubt: boolean }[] = [
    { state: 'unknown', inDoubt: true },
    { state: 'pending', inDoubt: true },
    { state: 'completed', inDoubt: false },
    { state: 'tombstone', inDoubt: false },
  ];
  for (const { state, inDoubt } of rows) {
    const { states, unknowns, advance, due } = setup();
    states.set(first, { state });
    unknowns.add(first);
    advance(30_000);
    await until('it looked', () => due().length > 0);
    t.equal(unknowns.oldestMs(), inDoubt ? 30_000 : null, state);
    unknowns.close();
  }
});

t.test('without the store nothing is forgotten, and one record is asked for', async (t) => {
  const { unknowns, advance, due, asked, setAway } = setup();
  setAway(true);
  unknowns.add(first);
  unknowns.add(second);
  advance(30_000);
  await until('it looked', () => due().length > 0);
  t.equal(asked(), 1);
  t.equal(unknowns.oldestMs(), 30_000);
  setAway(false);
  advance(30_000);
  await until('it looked again', () => due().length > 0);
  t.equal(unknowns.oldestMs(), null);
  unknowns.close();
});

t.test('the list is bounded and keeps the oldest', (t) => {
  const { unknowns, advance } = setup(2);
  for (const id of [first, second, third]) {
    unknowns.add(id);
    advance(1_000);
  }
  t.equal(unknowns.oldestMs(), 3_000);
  unknowns.close();
  t.end();
});
