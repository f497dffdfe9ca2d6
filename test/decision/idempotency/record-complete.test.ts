import t from 'tap';
import { complete, type Complete, type RecordSlot } from '../../../src/decision/idempotency/record.js';
import { completeBy, now, recordOf, response, slotOf, withdrawnBy } from './record-samples.js';

const completions: readonly { name: string; slot: RecordSlot; command: Complete; reply: string; writes: boolean }[] = [
  { name: 'PENDING', slot: slotOf({}), command: completeBy('mine', now - 500), reply: 'completed', writes: true },
  {
    name: 'PENDING, its lease over',
    slot: slotOf({ leaseEndsAtMs: now - 1 }),
    command: completeBy('mine', now - 500),
    reply: 'completed',
    writes: true,
  },
  {
    name: 'UNKNOWN',
    slot: slotOf({ state: 'unknown' }),
    command: completeBy('mine', now - 500),
    reply: 'completed',
    writes: true,
  },
  {
    name: 'COMPLETED before',
    slot: slotOf({ state: 'completed', response }),
    command: completeBy('mine', now - 500),
    reply: 'completed',
    writes: false,
  },
  {
    name: 'TOMBSTONE before',
    slot: slotOf({ state: 'tombstone', response }),
    command: completeBy('mine', now - 500),
    reply: 'completed',
    writes: false,
  },
  {
    name: "guard owner: another's",
    slot: slotOf({}),
    command: completeBy('thief', now - 500),
    reply: 'fenced',
    writes: false,
  },
  {
    name: "guard owner: another's result",
    slot: slotOf({ state: 'completed', response }),
    command: completeBy('thief', now - 500),
    reply: 'fenced',
    writes: false,
  },
  {
    name: 'guard fence: an older one',
    slot: slotOf({}),
    command: completeBy('mine', now - 501),
    reply: 'fenced',
    writes: false,
  },
  {
    name: 'guard fence: a newer one',
    slot: slotOf({}),
    command: completeBy('mine', now - 499),
    reply: 'fenced',
    writes: false,
  },
  {
    name: 'UNKNOWN, with the fence of an attempt that was released since',
    slot: slotOf({ state: 'unknown' }),
    command: completeBy('mine', now - 501),
    reply: 'completed',
    writes: true,
  },
  {
    name: 'COMPLETED before, with such a fence',
    slot: slotOf({ state: 'completed', response }),
    command: completeBy('mine', now - 501),
    reply: 'completed',
    writes: false,
  },
  {
    name: "guard owner: another's doubt",
    slot: slotOf({ state: 'unknown' }),
    command: completeBy('thief', now - 501),
    reply: 'fenced',
    writes: false,
  },
  {
    name: 'guard version',
    slot: slotOf({ version: 2 }),
    command: completeBy('mine', now - 500),
    reply: 'unsupported',
    writes: false,
  },
  { name: 'lost', slot: slotOf(null), command: completeBy('mine', 7), reply: 'repaired', writes: true },
  {
    name: 'over its retention',
    slot: slotOf({ expiresAtMs: now }),
    command: completeBy('mine', now - 500),
    reply: 'repaired',
    writes: true,
  },
  {
    name: 'withdrawn',
    slot: withdrawnBy('mine'),
    command: completeBy('mine', now - 500),
    reply: 'repaired',
    writes: true,
  },
];

t.test('complete: only the attempt that owns the record, and only once', (t) => {
  for (const { name, slot, command, reply, writes } of completions) {
    const step = complete(slot, command, now);
    t.equal(step.reply, reply, name);
    // Which route it was is not known to whoever writes down a result that the store had lost.
    const route = reply === 'repaired' ? null : 'create-order';
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
