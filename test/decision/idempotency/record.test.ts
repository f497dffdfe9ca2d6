import t from 'tap';
import {
  complete,
  current,
  inDoubtAfterLease,
  longestAheadMs,
  mark,
  recordVersion,
  refusalOf,
  release,
  reserve,
  resolve,
  withdrawalMs,
  type Complete,
  type Mark,
  type RecordState,
  type ReservationRecord,
  type Reserve,
  type Slot,
  type StoredResponse,
} from '../../../src/decision/idempotency/record.js';

const now = 1_800_000_000_000;
const response: StoredResponse = { status: 201, fields: ['ETag', '"1"'], body: Buffer.from('made') };
const noResponse: StoredResponse = { status: 0, fields: [], body: new Uint8Array() };
const states: readonly RecordState[] = ['pending', 'completed', 'tombstone', 'unknown'];

function recordOf(change: Partial<ReservationRecord> = {}): ReservationRecord {
  return {
    version: recordVersion,
    state: 'pending',
    fingerprint: 'f',
    route: 'create-order',
    owner: 'mine',
    fence: now - 500,
    takenOver: false,
    createdAtMs: now - 500,
    leaseEndsAtMs: now + 1_000,
    response: null,
    expiresAtMs: now + 60_000,
    ...change,
  };
}

function slotOf(change: Partial<ReservationRecord> | null, marker: string | null = null): Slot {
  return {
    record: change === null ? null : recordOf(change),
    marker: marker === null ? null : { attempt: marker, expiresAtMs: now + 10_000 },
    withdrawals: [],
    freed: null,
  };
}

/** A free key that some attempts have withdrawn from. */
function withdrawnBy(...attempts: readonly string[]): Slot {
  return { ...slotOf(null), withdrawals: attempts.map((attempt) => ({ attempt, expiresAtMs: now + 1 })) };
}

function reserveBy(
  attempt: string,
  key: Partial<NonNullable<Reserve['key']>> | null = {},
  markerTtlMs: number | null = null,
): Reserve {
  const asked = {
    fingerprint: 'f',
    route: 'create-order',
    leaseMs: 5_000,
    retentionMs: 60_000,
    takesOver: false,
    ...key,
  };
  return { attempt, key: key === null ? null : asked, markerTtlMs };
}

function completeBy(attempt: string, fence: number, change: Partial<Complete> = {}): Complete {
  return { attempt, fence, fingerprint: 'f', state: 'completed', response, retentionMs: 90_000, ...change };
}

/** A free key whose last holder had this fence. */
function freedBy(attempt: string, fence: number): Slot {
  return { ...slotOf(null), freed: { attempt, fence, expiresAtMs: Math.max(now, fence) + withdrawalMs } };
}

function markBy(attempt: string, fence: number): Mark {
  return { attempt, fence, fingerprint: 'f', route: 'create-order', retentionMs: 90_000 };
}

const acquiredNow = { kind: 'acquired', fence: now, takenOver: false };

const reserves: readonly { name: string; slot: Slot; command: Reserve; answer: object; writes: boolean }[] = [
  { name: 'ABSENT', slot: slotOf(null), command: reserveBy('other'), answer: acquiredNow, writes: true },
  {
    name: 'PENDING',
    slot: slotOf({}),
    command: reserveBy('other'),
    answer: { kind: 'in_progress', retryAfterMs: 1_000 },
    writes: false,
  },
  {
    name: 'PENDING, my own',
    slot: slotOf({}),
    command: reserveBy('mine'),
    answer: { kind: 'acquired', fence: now - 500, takenOver: false },
    writes: false,
  },
  {
    name: 'PENDING, in the last millisecond of the lease',
    slot: slotOf({ leaseEndsAtMs: now + 1 }),
    command: reserveBy('other'),
    answer: { kind: 'in_progress', retryAfterMs: 1 },
    writes: false,
  },
  {
    name: 'PENDING, its lease over',
    slot: slotOf({ leaseEndsAtMs: now }),
    command: reserveBy('other'),
    answer: { kind: 'unknown' },
    writes: false,
  },
  {
    name: 'PENDING, its lease over, taken over',
    slot: slotOf({ leaseEndsAtMs: now }),
    command: reserveBy('other', { takesOver: true }),
    answer: { kind: 'acquired', fence: now, takenOver: true },
    writes: true,
  },
  {
    name: 'PENDING is never taken over',
    slot: slotOf({}),
    command: reserveBy('other', { takesOver: true }),
    answer: { kind: 'in_progress' },
    writes: false,
  },
  {
    name: 'UNKNOWN',
    slot: slotOf({ state: 'unknown' }),
    command: reserveBy('other'),
    answer: { kind: 'unknown' },
    writes: false,
  },
  {
    name: 'UNKNOWN, to its owner',
    slot: slotOf({ state: 'unknown' }),
    command: reserveBy('mine'),
    answer: { kind: 'unknown' },
    writes: false,
  },
  {
    name: 'UNKNOWN, taken over: the fence grows, even where clocks went back',
    slot: slotOf({ state: 'unknown', fence: now + 7 }),
    command: reserveBy('other', { takesOver: true }),
    answer: { kind: 'acquired', fence: now + 8, takenOver: true },
    writes: true,
  },
  {
    name: 'COMPLETED',
    slot: slotOf({ state: 'completed', response }),
    command: reserveBy('other'),
    answer: { kind: 'replayed', response },
    writes: false,
  },
  {
    name: 'COMPLETED, to its owner',
    slot: slotOf({ state: 'completed', response }),
    command: reserveBy('mine'),
    answer: { kind: 'replayed' },
    writes: false,
  },
  {
    name: 'COMPLETED without a response',
    slot: slotOf({ state: 'completed' }),
    command: reserveBy('other'),
    answer: { kind: 'replayed', response: { status: 0 } },
    writes: false,
  },
  {
    name: 'TOMBSTONE',
    slot: slotOf({ state: 'tombstone', response }),
    command: reserveBy('other'),
    answer: { kind: 'tombstone', status: 201 },
    writes: false,
  },
  {
    name: 'TOMBSTONE without a status',
    slot: slotOf({ state: 'tombstone' }),
    command: reserveBy('other'),
    answer: { kind: 'tombstone', status: 0 },
    writes: false,
  },
  {
    name: 'over its retention',
    slot: slotOf({ state: 'completed', response, expiresAtMs: now }),
    command: reserveBy('other'),
    answer: acquiredNow,
    writes: true,
  },
  {
    name: 'in the last millisecond of its retention',
    slot: slotOf({ state: 'completed', response, expiresAtMs: now + 1 }),
    command: reserveBy('other'),
    answer: { kind: 'replayed' },
    writes: false,
  },
  {
    name: 'withdrawn, to others',
    slot: withdrawnBy('mine'),
    command: reserveBy('other'),
    answer: acquiredNow,
    writes: true,
  },
  {
    name: 'withdrawn, to the late one',
    slot: withdrawnBy('mine'),
    command: reserveBy('mine'),
    answer: { kind: 'unsupported' },
    writes: false,
  },
  {
    name: 'of another version',
    slot: slotOf({ version: 2 }),
    command: reserveBy('mine'),
    answer: { kind: 'unsupported' },
    writes: false,
  },
  { name: 'freed', slot: freedBy('mine', now - 500), command: reserveBy('other'), answer: acquiredNow, writes: true },
  {
    name: 'guard fence: freed, and the clock went back since',
    slot: freedBy('mine', now + 3_600_000),
    command: reserveBy('other'),
    answer: { kind: 'acquired', fence: now + 3_600_001, takenOver: false },
    writes: true,
  },
  {
    name: 'guard fence: freed in this millisecond',
    slot: freedBy('mine', now),
    command: reserveBy('other'),
    answer: { kind: 'acquired', fence: now + 1, takenOver: false },
    writes: true,
  },
];

t.test('reserve: ABSENT is taken, everything else is answered by its state', (t) => {
  for (const { name, slot, command, answer, writes } of reserves) {
    const step = reserve(slot, command, now);
    t.match(step.answer, answer, name);
    if (!writes) t.same(step.slot, slot, `${name}: nothing is written`);
  }
  const taken = reserve(slotOf(null), reserveBy('other'), now).slot.record;
  t.same(taken, {
    version: 1,
    state: 'pending',
    fingerprint: 'f',
    route: 'create-order',
    owner: 'other',
    fence: now,
    takenOver: false,
    createdAtMs: now,
    leaseEndsAtMs: now + 5_000,
    response: null,
    expiresAtMs: now + 65_000,
  });
  t.end();
});

t.test('guard fingerprint before state: whatever the state, another request is a mismatch and changes nothing', (t) => {
  for (const state of states) {
    for (const leaseEndsAtMs of [now - 1, now + 1]) {
      const slot = slotOf({ state, leaseEndsAtMs, response });
      const step = reserve(slot, reserveBy('other', { fingerprint: 'g', takesOver: true }), now);
      t.same(step, { slot, answer: { kind: 'mismatch' } }, state);
    }
  }
  t.same(
    reserve(slotOf({}), reserveBy('mine', { fingerprint: 'g' }), now).answer,
    { kind: 'mismatch' },
    "the owner's other request, too",
  );
  t.end();
});

t.test('guard marker: a token passes one attempt only, and what is refused before burns none', (t) => {
  const used = { attempt: 'thief', expiresAtMs: now + 10_000 };
  t.same(reserve(slotOf(null, 'thief'), reserveBy('mine', {}, 30_000), now), {
    slot: { record: null, marker: used, withdrawals: [], freed: null },
    answer: { kind: 'token_replayed' },
  });
  t.same(reserve(slotOf(null, 'thief'), reserveBy('mine', null, 30_000), now).answer, { kind: 'token_replayed' });
  t.same(reserve(slotOf({ version: 2 }, 'thief'), reserveBy('mine', {}, 30_000), now).answer, {
    kind: 'token_replayed',
  });
  const again = reserve(slotOf(null, 'mine'), reserveBy('mine', {}, 30_000), now);
  t.same(
    [again.answer, again.slot.marker],
    [acquiredNow, { attempt: 'mine', expiresAtMs: now + 10_000 }],
    'the same attempt, its marker as it was',
  );
  t.same(reserve(slotOf(null), reserveBy('mine', null, 30_000), now), {
    slot: { record: null, marker: { attempt: 'mine', expiresAtMs: now + 30_000 }, withdrawals: [], freed: null },
    answer: acquiredNow,
  });
  for (const state of ['pending', 'completed', 'unknown'] as const) {
    t.equal(
      reserve(slotOf({ state, response }), reserveBy('other', {}, 30_000), now).slot.marker?.attempt,
      'other',
      `${state}: the token was presented`,
    );
  }
  t.equal(reserve(slotOf({ version: 2 }), reserveBy('other', {}, 30_000), now).slot.marker, null);
  t.equal(reserve(withdrawnBy('mine'), reserveBy('mine', {}, 30_000), now).slot.marker, null);
  const over: Slot = { record: null, marker: { attempt: 'thief', expiresAtMs: now }, withdrawals: [], freed: null };
  t.same(reserve(over, reserveBy('mine', {}, 30_000), now).answer, acquiredNow, 'a marker that is over is none');
  t.equal(
    reserve(slotOf(null, 'thief'), reserveBy('mine'), now).slot.marker?.attempt,
    'thief',
    'a route without single use leaves it alone',
  );
  t.end();
});

t.test('a request without a key takes the token only', (t) => {
  const slot = slotOf({});
  t.same(reserve(slot, reserveBy('other', null, 30_000), now), {
    slot: {
      record: slot.record,
      marker: { attempt: 'other', expiresAtMs: now + 30_000 },
      withdrawals: [],
      freed: null,
    },
    answer: acquiredNow,
  });
  t.same(reserve(slotOf({ version: 2 }), reserveBy('other', null, 30_000), now).answer, acquiredNow);
  t.end();
});

const completions: readonly { name: string; slot: Slot; command: Complete; answer: string; writes: boolean }[] = [
  { name: 'PENDING', slot: slotOf({}), command: completeBy('mine', now - 500), answer: 'completed', writes: true },
  {
    name: 'PENDING, its lease over',
    slot: slotOf({ leaseEndsAtMs: now - 1 }),
    command: completeBy('mine', now - 500),
    answer: 'completed',
    writes: true,
  },
  {
    name: 'UNKNOWN',
    slot: slotOf({ state: 'unknown' }),
    command: completeBy('mine', now - 500),
    answer: 'completed',
    writes: true,
  },
  {
    name: 'COMPLETED before',
    slot: slotOf({ state: 'completed', response }),
    command: completeBy('mine', now - 500),
    answer: 'completed',
    writes: false,
  },
  {
    name: 'TOMBSTONE before',
    slot: slotOf({ state: 'tombstone', response }),
    command: completeBy('mine', now - 500),
    answer: 'completed',
    writes: false,
  },
  {
    name: "guard owner: another's",
    slot: slotOf({}),
    command: completeBy('thief', now - 500),
    answer: 'fenced',
    writes: false,
  },
  {
    name: "guard owner: another's result",
    slot: slotOf({ state: 'completed', response }),
    command: completeBy('thief', now - 500),
    answer: 'fenced',
    writes: false,
  },
  {
    name: 'guard fence: an older one',
    slot: slotOf({}),
    command: completeBy('mine', now - 501),
    answer: 'fenced',
    writes: false,
  },
  {
    name: 'guard fence: a newer one',
    slot: slotOf({}),
    command: completeBy('mine', now - 499),
    answer: 'fenced',
    writes: false,
  },
  {
    name: 'guard version',
    slot: slotOf({ version: 2 }),
    command: completeBy('mine', now - 500),
    answer: 'unsupported',
    writes: false,
  },
  { name: 'lost', slot: slotOf(null), command: completeBy('mine', 7), answer: 'repaired', writes: true },
  {
    name: 'over its retention',
    slot: slotOf({ expiresAtMs: now }),
    command: completeBy('mine', now - 500),
    answer: 'repaired',
    writes: true,
  },
  {
    name: 'withdrawn',
    slot: withdrawnBy('mine'),
    command: completeBy('mine', now - 500),
    answer: 'repaired',
    writes: true,
  },
];

t.test('complete: only the attempt that owns the record, and only once', (t) => {
  for (const { name, slot, command, answer, writes } of completions) {
    const step = complete(slot, command, now);
    t.equal(step.answer, answer, name);
    // Which route it was is not known to whoever writes down a result that the store had lost.
    const route = answer === 'repaired' ? null : 'create-order';
    if (!writes) t.same(step.slot, slot, `${name}: nothing is written`);
    else {
      t.match(
        step.slot.record,
        { state: 'completed', fingerprint: 'f', route, owner: 'mine', response, expiresAtMs: now + 90_000 },
        name,
      );
    }
  }
  t.same(
    complete(slotOf({}), completeBy('mine', now - 500, { state: 'tombstone' }), now).slot.record,
    recordOf({ state: 'tombstone', response, expiresAtMs: now + 90_000 }),
    'only what changes is changed',
  );
  t.match(complete(slotOf(null), completeBy('mine', 7), now).slot.record, {
    version: 1,
    fence: 7,
    createdAtMs: now,
    leaseEndsAtMs: now,
  });
  t.end();
});

t.test('release: only what is pending, and only by its owner; its fence is kept', (t) => {
  const slot = slotOf({}, 'mine');
  const freed = { attempt: 'mine', fence: now - 500, expiresAtMs: now + withdrawalMs };
  t.same(
    release(slot, { attempt: 'mine' }, now),
    { slot: { ...slot, record: null, freed }, answer: 'released' },
    'the token stays used',
  );
  t.same(
    release(slotOf({ leaseEndsAtMs: now - 1 }), { attempt: 'mine' }, now),
    { slot: { ...slotOf(null), freed }, answer: 'released' },
    'its lease over: that nothing was sent holds still',
  );
  for (const { name, change, attempt, answer } of [
    { name: "another's", change: {}, attempt: 'thief', answer: 'kept' },
    { name: "another's, its lease over", change: { leaseEndsAtMs: now }, attempt: 'thief', answer: 'kept' },
    { name: 'UNKNOWN', change: { state: 'unknown' as const }, attempt: 'mine', answer: 'kept' },
    { name: 'COMPLETED', change: { state: 'completed' as const, response }, attempt: 'mine', answer: 'kept' },
    { name: 'TOMBSTONE', change: { state: 'tombstone' as const, response }, attempt: 'mine', answer: 'kept' },
    { name: 'of another version', change: { version: 2 }, attempt: 'mine', answer: 'unsupported' },
  ]) {
    const kept = slotOf(change);
    const withdrawals = answer === 'kept' ? [{ attempt, expiresAtMs: now + withdrawalMs }] : [];
    t.same(release(kept, { attempt }, now), { slot: { ...kept, withdrawals }, answer }, name);
  }
  t.end();
});

t.test(
  'guard fence: it is kept until the clock has passed it by some minutes, however far it is ahead within a month',
  (t) => {
    for (const [fence, lastsMs] of [
      [now, withdrawalMs],
      [now + 1, withdrawalMs + 1],
      [now + longestAheadMs, longestAheadMs + withdrawalMs],
      [now + longestAheadMs + 1, longestAheadMs + withdrawalMs],
    ] as const) {
      const { freed } = release(slotOf({ fence }), { attempt: 'mine' }, now).slot;
      t.same(freed, { attempt: 'mine', fence, expiresAtMs: now + lastsMs });
      t.same(resolve(slotOf({ fence, state: 'unknown' }), 'not-applied', now).slot.freed, freed);
    }
    const later = release(freedBy('mine', now), { attempt: 'late' }, now + 1).slot;
    t.match(
      later.freed,
      { attempt: 'mine', fence: now, expiresAtMs: now + 1 + withdrawalMs },
      'a withdrawal makes it last as long',
    );
    t.match(
      release(freedBy('mine', now + 9), { attempt: 'late' }, now).slot.freed,
      { expiresAtMs: now + 9 + withdrawalMs },
      'and no shorter',
    );
    for (const step of [
      reserve(freedBy('mine', now), reserveBy('other'), now),
      complete(freedBy('mine', now), completeBy('mine', now), now),
    ]) {
      t.equal(step.slot.freed, null, 'a record has its own');
    }
    t.end();
  },
);

t.test(
  'guard doubt: what was taken over stays in doubt when its taker releases it, whose reserve may have been sent twice',
  (t) => {
    const taken = reserve(slotOf({ state: 'unknown', owner: 'first' }), reserveBy('taker', { takesOver: true }), now);
    const again = reserve(taken.slot, reserveBy('taker', { takesOver: true }), now + 1);
    t.same(again, { slot: taken.slot, answer: taken.answer }, 'the second answer says so as well');
    const released = release(again.slot, { attempt: 'taker' }, now + 2);
    t.match(released, { slot: { record: { state: 'unknown' } }, answer: 'kept' });
    t.same(reserve(released.slot, reserveBy('next'), now + 3).answer, { kind: 'unknown' });
    t.end();
  },
);

t.test('guard withdrawal: a release that finds nothing keeps the late reserve from taking the key', (t) => {
  const step = release(slotOf(null), { attempt: 'late' }, now);
  t.equal(step.answer, 'released');
  t.same(step.slot, { ...slotOf(null), withdrawals: [{ attempt: 'late', expiresAtMs: now + withdrawalMs }] });
  t.same(release(step.slot, { attempt: 'late' }, now), step, 'sent again');
  t.same(
    release(step.slot, { attempt: 'later' }, now).slot.withdrawals.map(({ attempt }) => attempt),
    ['late', 'later'],
    'each its own',
  );
  t.same(reserve(step.slot, reserveBy('late'), now + withdrawalMs - 1).answer, { kind: 'unsupported' });
  t.match(reserve(step.slot, reserveBy('late'), now + withdrawalMs).answer, { kind: 'acquired' });
  t.match(reserve(step.slot, reserveBy('next'), now).answer, { kind: 'acquired' });
  t.end();
});

t.test('mark: the owner says that nobody knows', (t) => {
  for (const state of ['pending', 'unknown'] as const) {
    t.same(
      mark(slotOf({ state }), markBy('mine', now - 500), now),
      { slot: slotOf({ state: 'unknown' }), answer: 'unknown' },
      state,
    );
  }
  for (const { name, change, attempt, fence, answer } of [
    { name: 'guard owner', change: {}, attempt: 'thief', fence: now - 500, answer: 'fenced' },
    {
      name: 'guard owner: a result',
      change: { state: 'completed' as const, response },
      attempt: 'thief',
      fence: now - 500,
      answer: 'fenced',
    },
    { name: 'guard fence', change: {}, attempt: 'mine', fence: now - 501, answer: 'fenced' },
    {
      name: 'COMPLETED',
      change: { state: 'completed' as const, response },
      attempt: 'mine',
      fence: now - 500,
      answer: 'kept',
    },
    {
      name: 'TOMBSTONE',
      change: { state: 'tombstone' as const, response },
      attempt: 'mine',
      fence: now - 500,
      answer: 'kept',
    },
    { name: 'guard version', change: { version: 2 }, attempt: 'mine', fence: now - 500, answer: 'unsupported' },
  ]) {
    const slot = slotOf(change);
    t.same(mark(slot, markBy(attempt, fence), now), { slot, answer }, name);
  }
  t.end();
});

t.test('mark: what the store has lost is in doubt again; what was freed since is not', (t) => {
  const repaired = recordOf({
    state: 'unknown',
    fence: now - 500,
    createdAtMs: now,
    leaseEndsAtMs: now,
    expiresAtMs: now + 90_000,
  });
  t.same(mark(slotOf(null, 'mine'), markBy('mine', now - 500), now), {
    slot: { ...slotOf(null, 'mine'), record: repaired },
    answer: 'repaired',
  });
  const withdrawn = withdrawnBy('late');
  t.same(mark(withdrawn, markBy('mine', now - 500), now), {
    slot: { ...withdrawn, record: repaired },
    answer: 'repaired',
  });
  const over = slotOf({ expiresAtMs: now });
  t.same(mark(over, markBy('mine', now - 500), now), { slot: { ...over, record: repaired }, answer: 'repaired' });
  t.same(mark(freedBy('other', now - 501), markBy('mine', now - 500), now).slot.record, repaired);
  t.same(
    mark(freedBy('other', now), markBy('mine', now - 500), now),
    { slot: { ...slotOf(null), record: { ...repaired, fence: now } }, answer: 'repaired' },
    'guard fence: one that was given since counts still',
  );
  t.same(mark(freedBy('mine', now), markBy('mine', now - 500), now).answer, 'repaired');
  const freed = freedBy('mine', now - 500);
  t.same(mark(freed, markBy('mine', now - 500), now), { slot: freed, answer: 'kept' });
  t.end();
});

t.test('resolve: an operator settles what is in doubt, and only that', (t) => {
  for (const change of [{ state: 'unknown' as const }, { leaseEndsAtMs: now }]) {
    t.same(resolve(slotOf(change, 'mine'), 'not-applied', now), {
      slot: { ...slotOf(null, 'mine'), freed: { attempt: 'mine', fence: now - 500, expiresAtMs: now + withdrawalMs } },
      answer: 'resolved',
    });
    t.same(resolve(slotOf(change), 'committed', now), {
      slot: slotOf({ ...change, state: 'tombstone', response: noResponse }),
      answer: 'resolved',
    });
  }
  for (const { name, change, answer } of [
    { name: 'ABSENT', change: null, answer: 'absent' },
    { name: 'PENDING', change: { leaseEndsAtMs: now + 1 }, answer: 'not_in_doubt' },
    { name: 'COMPLETED', change: { state: 'completed' as const, response }, answer: 'not_in_doubt' },
    { name: 'TOMBSTONE', change: { state: 'tombstone' as const, response }, answer: 'not_in_doubt' },
    { name: 'guard version', change: { version: 2, state: 'unknown' as const }, answer: 'unsupported' },
  ]) {
    const slot = slotOf(change);
    t.same(resolve(slot, 'committed', now), { slot, answer }, name);
  }
  t.end();
});

t.test('what has expired is dropped, record and marker each for itself', (t) => {
  const slot = slotOf({ expiresAtMs: now + 5 }, 'mine');
  t.same(current(slot, now + 4), slot);
  t.same(current(slot, now + 5), { ...slot, record: null });
  t.same(current(slot, now + 9_999), { ...slot, record: null });
  t.same(current(slot, now + 10_000), slotOf(null));
  t.same(current(withdrawnBy('mine'), now), withdrawnBy('mine'));
  t.same(current(withdrawnBy('mine'), now + 1), slotOf(null));
  t.same(current(freedBy('mine', now), now + withdrawalMs - 1), freedBy('mine', now));
  t.same(current(freedBy('mine', now), now + withdrawalMs), slotOf(null));
  t.same(current(slotOf(null), now), slotOf(null));
  t.end();
});

t.test('what a record says of a write', (t) => {
  t.equal(inDoubtAfterLease(recordOf(), now + 999).state, 'pending');
  t.equal(inDoubtAfterLease(recordOf(), now + 1_000).state, 'unknown');
  t.equal(inDoubtAfterLease(recordOf({ state: 'completed' }), now + 1_000).state, 'completed');
  t.end();
});

t.test('who finds a key taken is told to come back within 1 to 5 s, and of which record', (t) => {
  for (const [leftMs, retryAfterS] of [
    [0, 1],
    [1, 1],
    [1_000, 1],
    [1_001, 2],
    [4_001, 5],
    [5_001, 5],
    [60_000, 5],
  ] as const) {
    t.same(
      refusalOf({ kind: 'in_progress', retryAfterMs: leftMs }, 'p.o'),
      { reason: 'idempotency_in_progress', retryAfterS, record: 'p.o' },
      String(leftMs),
    );
  }
  t.same(refusalOf({ kind: 'unknown' }, 'p.o'), { reason: 'idempotency_outcome_unknown', record: 'p.o' });
  t.same(refusalOf({ kind: 'tombstone', status: 200 }, 'p.o'), { reason: 'idempotency_not_replayable', record: 'p.o' });
  t.same(refusalOf({ kind: 'unknown' }, null), { reason: 'idempotency_outcome_unknown' });
  // Another request than the first, and another token's, learn of no record.
  t.same(refusalOf({ kind: 'mismatch' }, 'p.o'), { reason: 'idempotency_key_reused' });
  t.same(refusalOf({ kind: 'token_replayed' }, 'p.o'), { reason: 'token_replayed' });
  t.same(refusalOf({ kind: 'unsupported' }, 'p.o'), { reason: 'store_unavailable' });
  t.end();
});
