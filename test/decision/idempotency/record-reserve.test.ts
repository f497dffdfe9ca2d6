import t from 'tap';
import { reserve, type Reserve, type RecordSlot } from '../../../src/decision/idempotency/record.js';
import { acquiredNow, freedBy, now, reserveBy, response, slotOf, states, withdrawnBy } from './record-samples.js';

const reserves: readonly { name: string; slot: RecordSlot; command: Reserve; reply: object; writes: boolean }[] = [
  { name: 'ABSENT', slot: slotOf(null), command: reserveBy('other'), reply: acquiredNow, writes: true },
  {
    name: 'PENDING',
    slot: slotOf({}),
    command: reserveBy('other'),
    reply: { kind: 'in_progress', retryAfterMs: 1_000 },
    writes: false,
  },
  {
    name: 'PENDING, my own',
    slot: slotOf({}),
    command: reserveBy('mine'),
    reply: { kind: 'acquired', fence: now - 500, takenOver: false },
    writes: false,
  },
  {
    name: 'PENDING, in the last millisecond of the lease',
    slot: slotOf({ leaseEndsAtMs: now + 1 }),
    command: reserveBy('other'),
    reply: { kind: 'in_progress', retryAfterMs: 1 },
    writes: false,
  },
  {
    name: 'PENDING, its lease over',
    slot: slotOf({ leaseEndsAtMs: now }),
    command: reserveBy('other'),
    reply: { kind: 'unknown' },
    writes: false,
  },
  {
    name: 'PENDING, its lease over, taken over',
    slot: slotOf({ leaseEndsAtMs: now }),
    command: reserveBy('other', { takesOver: true }),
    reply: { kind: 'acquired', fence: now, takenOver: true },
    writes: true,
  },
  {
    name: 'PENDING is never taken over',
    slot: slotOf({}),
    command: reserveBy('other', { takesOver: true }),
    reply: { kind: 'in_progress' },
    writes: false,
  },
  {
    name: 'UNKNOWN',
    slot: slotOf({ state: 'unknown' }),
    command: reserveBy('other'),
    reply: { kind: 'unknown' },
    writes: false,
  },
  {
    name: 'UNKNOWN, to its owner',
    slot: slotOf({ state: 'unknown' }),
    command: reserveBy('mine'),
    reply: { kind: 'unknown' },
    writes: false,
  },
  {
    name: 'UNKNOWN, taken over: the fence grows, even where clocks went back',
    slot: slotOf({ state: 'unknown', fence: now + 7 }),
    command: reserveBy('other', { takesOver: true }),
    reply: { kind: 'acquired', fence: now + 8, takenOver: true },
    writes: true,
  },
  {
    name: 'COMPLETED',
    slot: slotOf({ state: 'completed', response }),
    command: reserveBy('other'),
    reply: { kind: 'replayed', response },
    writes: false,
  },
  {
    name: 'COMPLETED, to its owner',
    slot: slotOf({ state: 'completed', response }),
    command: reserveBy('mine'),
    reply: { kind: 'replayed' },
    writes: false,
  },
  {
    name: 'COMPLETED without a response',
    slot: slotOf({ state: 'completed' }),
    command: reserveBy('other'),
    reply: { kind: 'replayed', response: { status: 0 } },
    writes: false,
  },
  {
    name: 'TOMBSTONE',
    slot: slotOf({ state: 'tombstone', response }),
    command: reserveBy('other'),
    reply: { kind: 'tombstone', status: 201 },
    writes: false,
  },
  {
    name: 'TOMBSTONE without a status',
    slot: slotOf({ state: 'tombstone' }),
    command: reserveBy('other'),
    reply: { kind: 'tombstone', status: 0 },
    writes: false,
  },
  {
    name: 'over its retention',
    slot: slotOf({ state: 'completed', response, expiresAtMs: now }),
    command: reserveBy('other'),
    reply: acquiredNow,
    writes: true,
  },
  {
    name: 'in the last millisecond of its retention',
    slot: slotOf({ state: 'completed', response, expiresAtMs: now + 1 }),
    command: reserveBy('other'),
    reply: { kind: 'replayed' },
    writes: false,
  },
  {
    name: 'withdrawn, to others',
    slot: withdrawnBy('mine'),
    command: reserveBy('other'),
    reply: acquiredNow,
    writes: true,
  },
  {
    name: 'withdrawn, to the late one',
    slot: withdrawnBy('mine'),
    command: reserveBy('mine'),
    reply: { kind: 'unsupported' },
    writes: false,
  },
  {
    name: 'of another version',
    slot: slotOf({ version: 2 }),
    command: reserveBy('mine'),
    reply: { kind: 'unsupported' },
    writes: false,
  },
  { name: 'freed', slot: freedBy('mine', now - 500), command: reserveBy('other'), reply: acquiredNow, writes: true },
  {
    name: 'guard fence: freed, and the clock went back since',
    slot: freedBy('mine', now + 3_600_000),
    command: reserveBy('other'),
    reply: { kind: 'acquired', fence: now + 3_600_001, takenOver: false },
    writes: true,
  },
  {
    name: 'guard fence: freed in this millisecond',
    slot: freedBy('mine', now),
    command: reserveBy('other'),
    reply: { kind: 'acquired', fence: now + 1, takenOver: false },
    writes: true,
  },
];

t.test('reserve: ABSENT is taken, everything else is answered by its state', (t) => {
  for (const { name, slot, command, reply, writes } of reserves) {
    const step = reserve(slot, command, now);
    t.match(step.reply, reply, name);
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
      t.same(step, { slot, reply: { kind: 'mismatch' } }, state);
    }
  }
  t.same(
    reserve(slotOf({}), reserveBy('mine', { fingerprint: 'g' }), now).reply,
    { kind: 'mismatch' },
    "the owner's other request, too",
  );
  t.end();
});

t.test('guard marker: a token passes one attempt only, and what is refused before burns none', (t) => {
  const used = { attempt: 'thief', expiresAtMs: now + 10_000 };
  t.same(reserve(slotOf(null, 'thief'), reserveBy('mine', {}, 30_000), now), {
    slot: { record: null, marker: used, withdrawals: [], freed: null },
    reply: { kind: 'token_replayed' },
  });
  t.same(reserve(slotOf(null, 'thief'), reserveBy('mine', null, 30_000), now).reply, { kind: 'token_replayed' });
  t.same(reserve(slotOf({ version: 2 }, 'thief'), reserveBy('mine', {}, 30_000), now).reply, {
    kind: 'token_replayed',
  });
  const again = reserve(slotOf(null, 'mine'), reserveBy('mine', {}, 30_000), now);
  t.same(
    [again.reply, again.slot.marker],
    [acquiredNow, { attempt: 'mine', expiresAtMs: now + 10_000 }],
    'the same attempt, its marker as it was',
  );
  t.same(reserve(slotOf(null), reserveBy('mine', null, 30_000), now), {
    slot: { record: null, marker: { attempt: 'mine', expiresAtMs: now + 30_000 }, withdrawals: [], freed: null },
    reply: acquiredNow,
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
  const over: RecordSlot = {
    record: null,
    marker: { attempt: 'thief', expiresAtMs: now },
    withdrawals: [],
    freed: null,
  };
  t.same(reserve(over, reserveBy('mine', {}, 30_000), now).reply, acquiredNow, 'a marker that is over is none');
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
    reply: acquiredNow,
  });
  t.same(reserve(slotOf({ version: 2 }), reserveBy('other', null, 30_000), now).reply, acquiredNow);
  t.end();
});
