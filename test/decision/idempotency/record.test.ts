import t from 'tap';
import {
  complete,
  current,
  inDoubtAfterLease,
  longestAheadMs,
  mark,
  refusalOf,
  release,
  reserve,
  resolve,
  overtakingReleaseMs,
} from '../../../src/decision/idempotency/record.js';
import {
  completeBy,
  freedBy,
  markBy,
  noResponse,
  now,
  recordOf,
  reserveBy,
  response,
  slotOf,
  withdrawnBy,
} from './record-samples.js';

t.test('release: only what is pending, and only by its owner; its fence is kept', (t) => {
  const slot = slotOf({}, 'mine');
  const freed = { attempt: 'mine', fence: now - 500, expiresAtMs: now + overtakingReleaseMs };
  t.same(
    release(slot, { attempt: 'mine' }, now),
    { slot: { ...slot, record: null, freed }, reply: 'released' },
    'the token stays used',
  );
  t.same(
    release(slotOf({ leaseEndsAtMs: now - 1 }), { attempt: 'mine' }, now),
    { slot: { ...slotOf(null), freed }, reply: 'released' },
    'its lease over: that nothing was sent holds still',
  );
  for (const { name, change, attempt, reply } of [
    { name: "another's", change: {}, attempt: 'thief', reply: 'kept' },
    { name: "another's, its lease over", change: { leaseEndsAtMs: now }, attempt: 'thief', reply: 'kept' },
    { name: 'UNKNOWN', change: { state: 'unknown' as const }, attempt: 'mine', reply: 'kept' },
    { name: 'COMPLETED', change: { state: 'completed' as const, response }, attempt: 'mine', reply: 'kept' },
    { name: 'TOMBSTONE', change: { state: 'tombstone' as const, response }, attempt: 'mine', reply: 'kept' },
    { name: 'of another version', change: { version: 2 }, attempt: 'mine', reply: 'unsupported' },
  ]) {
    const kept = slotOf(change);
    const withdrawals = reply === 'kept' ? [{ attempt, expiresAtMs: now + overtakingReleaseMs }] : [];
    t.same(release(kept, { attempt }, now), { slot: { ...kept, withdrawals }, reply }, name);
  }
  t.end();
});

t.test(
  'guard fence: it is kept until the clock has passed it by some minutes, however far it is ahead within a month',
  (t) => {
    for (const [fence, lastsMs] of [
      [now, overtakingReleaseMs],
      [now + 1, overtakingReleaseMs + 1],
      [now + longestAheadMs, longestAheadMs + overtakingReleaseMs],
      [now + longestAheadMs + 1, longestAheadMs + overtakingReleaseMs],
    ] as const) {
      const { freed } = release(slotOf({ fence }), { attempt: 'mine' }, now).slot;
      t.same(freed, { attempt: 'mine', fence, expiresAtMs: now + lastsMs });
      t.same(resolve(slotOf({ fence, state: 'unknown' }), 'not-applied', now).slot.freed, freed);
    }
    const later = release(freedBy('mine', now), { attempt: 'late' }, now + 1).slot;
    t.match(
      later.freed,
      { attempt: 'mine', fence: now, expiresAtMs: now + 1 + overtakingReleaseMs },
      'a withdrawal makes it last as long',
    );
    t.match(
      release(freedBy('mine', now + 9), { attempt: 'late' }, now).slot.freed,
      { expiresAtMs: now + 9 + overtakingReleaseMs },
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
    t.same(again, { slot: taken.slot, reply: taken.reply }, 'the second reply says so as well');
    const released = release(again.slot, { attempt: 'taker' }, now + 2);
    t.match(released, { slot: { record: { state: 'unknown' } }, reply: 'kept' });
    t.same(reserve(released.slot, reserveBy('next'), now + 3).reply, { kind: 'unknown' });
    t.end();
  },
);

t.test('guard withdrawal: a release that finds nothing keeps the late reserve from taking the key', (t) => {
  const step = release(slotOf(null), { attempt: 'late' }, now);
  t.equal(step.reply, 'released');
  t.same(step.slot, { ...slotOf(null), withdrawals: [{ attempt: 'late', expiresAtMs: now + overtakingReleaseMs }] });
  t.same(release(step.slot, { attempt: 'late' }, now), step, 'sent again');
  t.same(
    release(step.slot, { attempt: 'later' }, now).slot.withdrawals.map(({ attempt }) => attempt),
    ['late', 'later'],
    'each its own',
  );
  t.same(reserve(step.slot, reserveBy('late'), now + overtakingReleaseMs - 1).reply, { kind: 'unsupported' });
  t.match(reserve(step.slot, reserveBy('late'), now + overtakingReleaseMs).reply, { kind: 'acquired' });
  t.match(reserve(step.slot, reserveBy('next'), now).reply, { kind: 'acquired' });
  t.end();
});

t.test('mark: the owner says that nobody knows', (t) => {
  for (const state of ['pending', 'unknown'] as const) {
    t.same(
      mark(slotOf({ state }), markBy('mine', now - 500), now),
      { slot: slotOf({ state: 'unknown' }), reply: 'unknown' },
      state,
    );
  }
  for (const { name, change, attempt, fence, reply } of [
    { name: 'guard owner', change: {}, attempt: 'thief', fence: now - 500, reply: 'fenced' },
    {
      name: 'guard owner: a result',
      change: { state: 'completed' as const, response },
      attempt: 'thief',
      fence: now - 500,
      reply: 'fenced',
    },
    { name: 'guard fence', change: {}, attempt: 'mine', fence: now - 501, reply: 'fenced' },
    {
      name: 'UNKNOWN, with the fence of an attempt that was released since',
      change: { state: 'unknown' as const },
      attempt: 'mine',
      fence: now - 501,
      reply: 'unknown',
    },
    {
      name: 'guard owner: a doubt',
      change: { state: 'unknown' as const },
      attempt: 'thief',
      fence: now - 500,
      reply: 'fenced',
    },
    {
      name: 'COMPLETED',
      change: { state: 'completed' as const, response },
      attempt: 'mine',
      fence: now - 500,
      reply: 'kept',
    },
    {
      name: 'TOMBSTONE',
      change: { state: 'tombstone' as const, response },
      attempt: 'mine',
      fence: now - 500,
      reply: 'kept',
    },
    { name: 'guard version', change: { version: 2 }, attempt: 'mine', fence: now - 500, reply: 'unsupported' },
  ]) {
    const slot = slotOf(change);
    t.same(mark(slot, markBy(attempt, fence), now), { slot, reply }, name);
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
    reply: 'repaired',
  });
  const withdrawn = withdrawnBy('late');
  t.same(mark(withdrawn, markBy('mine', now - 500), now), {
    slot: { ...withdrawn, record: repaired },
    reply: 'repaired',
  });
  const over = slotOf({ expiresAtMs: now });
  t.same(mark(over, markBy('mine', now - 500), now), { slot: { ...over, record: repaired }, reply: 'repaired' });
  t.same(mark(freedBy('other', now - 501), markBy('mine', now - 500), now).slot.record, repaired);
  t.same(
    mark(freedBy('other', now), markBy('mine', now - 500), now),
    { slot: { ...slotOf(null), record: { ...repaired, fence: now } }, reply: 'repaired' },
    'guard fence: one that was given since counts still',
  );
  t.same(mark(freedBy('mine', now - 501), markBy('mine', now - 500), now).reply, 'repaired');
  for (const [name, fence] of [
    ['freed', now - 500],
    ['freed once it was written anew, with the fence of an attempt that was released in between', now],
  ] as const) {
    const freed = freedBy('mine', fence);
    t.same(mark(freed, markBy('mine', now - 500), now), { slot: freed, reply: 'kept' }, name);
  }
  t.end();
});

t.test('resolve: an operator settles what is in doubt, and only that', (t) => {
  for (const change of [{ state: 'unknown' as const }, { leaseEndsAtMs: now }]) {
    t.same(resolve(slotOf(change, 'mine'), 'not-applied', now), {
      slot: {
        ...slotOf(null, 'mine'),
        freed: { attempt: 'mine', fence: now - 500, expiresAtMs: now + overtakingReleaseMs },
      },
      reply: 'resolved',
    });
    t.same(resolve(slotOf(change), 'committed', now), {
      slot: slotOf({ ...change, state: 'tombstone', response: noResponse }),
      reply: 'resolved',
    });
  }
  for (const { name, change, reply } of [
    { name: 'ABSENT', change: null, reply: 'absent' },
    { name: 'PENDING', change: { leaseEndsAtMs: now + 1 }, reply: 'not_in_doubt' },
    { name: 'COMPLETED', change: { state: 'completed' as const, response }, reply: 'not_in_doubt' },
    { name: 'TOMBSTONE', change: { state: 'tombstone' as const, response }, reply: 'not_in_doubt' },
    { name: 'guard version', change: { version: 2, state: 'unknown' as const }, reply: 'unsupported' },
  ]) {
    const slot = slotOf(change);
    t.same(resolve(slot, 'committed', now), { slot, reply }, name);
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
  t.same(current(freedBy('mine', now), now + overtakingReleaseMs - 1), freedBy('mine', now));
  t.same(current(freedBy('mine', now), now + overtakingReleaseMs), slotOf(null));
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
