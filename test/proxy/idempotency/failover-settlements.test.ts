import t from 'tap';
import type { SettleCommand } from '../../../src/proxy/idempotency/settlement-queue.js';
import { markOf } from '../../adapters/store-commands.js';
import { until } from '../../support/until.js';
import { bench, completion } from './failover-bench.js';
import { down, gate } from './faulty-store.js';

t.test('what was settled just before a fail-over is there again: results, doubts; and counted as lost', async (t) => {
  const { reserve, settle, counted, failOver, offered, state } = bench(t);
  await settle('done', completion('a', await reserve('done')));
  await settle('doubt', { kind: 'mark', command: markOf('a', await reserve('doubt')) });
  t.same(counted(), ['completed', 'in doubt']);
  failOver();
  t.match(await offered(), /^error .*"offered":2,"repaired":2,"ran_twice":0,"not_taken":0.*persistence/);
  t.same(counted(), ['repaired', 'repaired', 'again 2'], 'that it is in doubt was counted before');
  t.same([await state('done'), await state('doubt')], ['completed', 'unknown']);
});

t.test('what ran again before it was offered is counted as run twice, once, and named', async (t) => {
  const { reserve, settle, counted, failOver, offered, lines, state, store } = bench(t);
  await settle('done', completion('a', await reserve('done')));
  await settle('doubt', { kind: 'mark', command: markOf('a', await reserve('doubt')) });
  counted();
  const held = gate();
  store.behave('mark', held.fault);
  store.behave('complete', held.fault);
  failOver();
  await until('both are on their way', () => held.waiting() === 2);
  await reserve('done', 'b');
  await reserve('doubt', 'b');
  held.open();
  t.match(await offered(), /"offered":2,"repaired":0,"ran_twice":2,"not_taken":0/);
  t.same(counted(), ['fenced', 'fenced', 'again 2']);
  t.match(lines.filter((line) => line.includes('twice:')).sort(), [
    /^error a write may have run twice.*p\.doubt/,
    /^error a write ran twice.*p\.done/,
  ]);
  t.equal(await state('done'), 'pending');
  failOver(false);
  await new Promise((resolve) => setImmediate(resolve));
  t.same(counted(), [], 'it is not offered again');
});

t.test(
  'where nothing was lost nothing changes, and that is said; releases that were lost free their keys',
  async (t) => {
    const { reserve, settle, counted, failOver, offered, state, lines } = bench(t);
    await settle('done', completion('a', await reserve('done')));
    await settle('doubt', { kind: 'mark', command: markOf('a', await reserve('doubt')) });
    await settle('free', { kind: 'release', command: { attempt: 'a' }, wasSent: false }).then(async () => undefined);
    await reserve('free', 'x');
    counted();
    failOver(false);
    t.match(await offered(), /^info .*"offered":3,"repaired":0,"ran_twice":0,"not_taken":0/);
    t.same(counted(), ['again 3']);
    t.same(
      [await state('done'), await state('doubt'), await state('free')],
      ['completed', 'unknown', 'pending'],
      'what another attempt has is left to it',
    );
    t.notOk(lines.some((line) => line.includes('not settled')));
  },
);

t.test('the last 15 s are kept, the latest are offered first, and the time leaves no memory behind', async (t) => {
  const { time, reserve, settle, failOver, offered, state, store } = bench(t);
  await settle('old', completion('a', await reserve('old')));
  time.advance(1);
  await settle('young', completion('a', await reserve('young')));
  time.advance(1);
  await settle('last', completion('a', await reserve('last')));
  time.advance(14_998);
  const before = store.calls.length;
  failOver();
  t.match(await offered(), /"offered":2,"repaired":2/);
  t.same([await state('old'), await state('young'), await state('last')], [null, 'completed', 'completed']);
  t.equal(store.calls.length, before + 2);
  t.ok(time.due().length <= 1, 'one task at most');
  for (let left = 0; left < 4; left += 1) time.advance(15_000);
  t.same(time.due(), [], 'and none where nothing is kept');
});

t.test('the 15 s count back from when the store was last there, however long a fail-over takes', async (t) => {
  for (const awayMs of [12_000, 32_000, 290_000]) {
    const { time, reserve, settle, failOver, offered, state, isUp } = bench(t);
    await settle('old', completion('a', await reserve('old')));
    time.advance(15_000);
    await settle('doubt', { kind: 'mark', command: markOf('a', await reserve('doubt')) });
    time.advance(5_000);
    await settle('done', completion('a', await reserve('done')));
    time.advance(200);
    isUp(false);
    time.advance(awayMs);
    isUp(true);
    failOver();
    t.match(await offered(), /"offered":2,"repaired":2/, String(awayMs));
    t.same([await state('old'), await state('doubt'), await state('done')], [null, 'unknown', 'completed']);
    isUp(true);
    for (let left = 0; left < 4; left += 1) time.advance(15_000);
    t.same(time.due(), [], 'and then they age again');
  }
});

t.test(
  'of a store that stays away nothing is kept for longer than 5 min, nor beyond the bound of memory',
  async (t) => {
    const { time, reserve, settle, failOver, offered, state, isUp } = bench(t, { lastMs: 15_000, maxBytes: 5_000 });
    await settle('one', completion('a', await reserve('one'), 1_000));
    isUp(false);
    time.advance(299_000);
    for (const operation of ['two', 'three', 'four']) {
      await settle(operation, completion('a', await reserve(operation), 1_000));
    }
    time.advance(2_000);
    failOver();
    t.match(await offered(), /"offered":2,/);
    t.same(
      [await state('one'), await state('two'), await state('three'), await state('four')],
      [null, null, 'completed', 'completed'],
    );
    await settle('five', completion('a', await reserve('five'), 1_000));
    time.advance(301_000);
    t.same(time.due(), []);
  },
);

t.test('a shutdown while the store is away offers all that may be lost', async (t) => {
  const { time, reserve, settle, settlements, forget, isUp, state } = bench(t);
  await settle('old', completion('a', await reserve('old')));
  time.advance(6_000);
  await settle('young', completion('a', await reserve('young')));
  isUp(false);
  time.advance(20_000);
  forget();
  await settlements.close();
  t.same([await state('old'), await state('young')], ['completed', 'completed']);
});

t.test('where a part of the store is away, what was settled in the others ages', async (t) => {
  const { time, reserve, settle, failOver, offered, state, isUp } = bench(t, { lastMs: 15_000, maxBytes: 5_000 });
  await settle('dead:one', completion('a', await reserve('dead:one'), 1_000));
  isUp(false, 'dead');
  for (const operation of ['there:1', 'there:2', 'there:3', 'there:4']) {
    await settle(operation, completion('a', await reserve(operation), 1_000));
    time.advance(15_000);
  }
  isUp(true, 'dead');
  failOver();
  t.match(await offered(), /"offered":1,"repaired":1/);
  t.same([await state('dead:one'), await state('there:4')], ['completed', null]);
});

t.test('a doubt whose key an operator has freed is not kept any longer', async (t) => {
  for (const comesLate of [true, false]) {
    const { time, reserve, settle, failOver, offered, state, isUp, free, lines } = bench(t);
    const write: SettleCommand = { kind: 'mark', command: markOf('a', await reserve('doubt')) };
    await settle('doubt', write);
    isUp(false);
    time.advance(60_000);
    await free('doubt');
    time.advance(180_000);
    if (comesLate) await settle('doubt', write);
    failOver(false);
    t.match(await offered(), /"offered":1,"repaired":0/);
    time.advance(160_000);
    const before = lines.length;
    failOver(false);
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(await state('doubt'), null, 'it was freed 340 s ago, and is known no more');
    t.equal(lines.length, before);
  }
});

t.test('their memory is bounded: the oldest give way', async (t) => {
  const { reserve, settle, failOver, offered, state } = bench(t, { lastMs: 15_000, maxBytes: 5_000 });
  for (const operation of ['one', 'two', 'three']) {
    await settle(operation, completion('a', await reserve(operation), 1_000));
  }
  failOver();
  t.match(await offered(), /"offered":2,/);
  t.same([await state('one'), await state('two'), await state('three')], [null, 'completed', 'completed']);
});

t.test('the headers of a response count: they may be longer than its body', async (t) => {
  const { reserve, settle, failOver, offered, state } = bench(t, { lastMs: 15_000, maxBytes: 25_000 });
  for (const operation of ['one', 'two', 'three']) {
    const write = completion('a', await reserve(operation), 0);
    if (write.kind !== 'complete') throw new Error('a completion');
    const headers = ['X-Long', 'x'.repeat(9_000)];
    await settle(operation, {
      ...write,
      command: { ...write.command, response: { ...write.command.response, headers } },
    });
  }
  failOver();
  t.match(await offered(), /"offered":2,/);
  t.same([await state('one'), await state('two'), await state('three')], [null, 'completed', 'completed']);
});

t.test('a small answer does not keep the memory that it is a part of', async (t) => {
  const { reserve, settle, store, failOver, offered } = bench(t);
  const write = completion('a', await reserve('part'), 10);
  if (write.kind !== 'complete') throw new Error('a completion');
  const body = Buffer.alloc(1_000_000, 'x').subarray(5, 15);
  await settle('part', { ...write, command: { ...write.command, response: { ...write.command.response, body } } });
  let held = 0;
  const inner = store.store.complete;
  Object.assign(store.store, {
    complete: (...[scope, command]: Parameters<typeof inner>) => {
      held = command.response.body.buffer.byteLength;
      t.same(Buffer.from(command.response.body), body);
      return inner(scope, command);
    },
  });
  failOver();
  await offered();
  t.equal(held, 10, 'nor that of the pool from which Node takes small buffers');
});

t.test('what was asked of the store when it failed over is offered again as soon as it is answered', async (t) => {
  const { reserve, settle, store, failOver, offered, counted, state } = bench(t);
  const fence = await reserve('done');
  const held = gate();
  // It ran on the old primary; the answer comes when that is no primary any more.
  store.behave('complete', async (run) => {
    const answer = await run();
    await held.fault(async () => answer);
    return answer;
  });
  const settled = settle('done', completion('a', fence));
  await until('it is on its way', () => held.waiting() === 1);
  store.behave('complete', null);
  failOver();
  held.open();
  await settled;
  await offered();
  t.same(counted(), ['completed', 'repaired', 'again 1']);
  t.equal(await state('done'), 'completed');
});

t.test('one fail-over after the other: what the first brought back may be lost with the second', async (t) => {
  const { reserve, settle, store, failOver, offered, counted, state } = bench(t);
  await settle('done', completion('a', await reserve('done')));
  counted();
  const held = gate();
  store.behave('complete', async (run) => {
    const answer = await run();
    await held.fault(async () => answer);
    return answer;
  });
  failOver();
  await until('it is brought back', () => held.waiting() === 1);
  store.behave('complete', null);
  failOver();
  held.open();
  t.match(await offered(), /"offered":1,"repaired":1/);
  t.same(counted(), ['repaired', 'again 1']);
  t.equal(await state('done'), 'completed');
});

t.test('a store that is not there yet is waited for, for half a minute', async (t) => {
  for (const heals of [true, false]) {
    const { time, reserve, settle, store, failOver, offered, counted } = bench(t);
    await settle('done', completion('a', await reserve('done')));
    counted();
    store.behave('complete', down);
    const before = store.calls.length;
    failOver();
    await until('a first try', () => store.calls.length > before);
    if (heals) store.behave('complete', null);
    const line = offered();
    for (let half = 0; half < 61; half += 1) {
      time.advance(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
    t.match(
      await line,
      heals
        ? /"offered":1,"repaired":1,"ran_twice":0,"not_taken":0/
        : /"offered":0,"repaired":0,"ran_twice":0,"not_taken":/,
    );
    t.same(counted(), heals ? ['repaired', 'again 1'] : ['again 0']);
  }
});

t.test(
  'large responses are offered a few at once, since every proxy offers its own at the same time; none is left',
  async (t) => {
    const { reserve, settle, store, failOver, offered } = bench(t);
    for (let one = 0; one < 10; one += 1) {
      await settle(`o${String(one)}`, completion('a', await reserve(`o${String(one)}`), 300_000));
    }
    await settle('huge', completion('a', await reserve('huge'), 3_000_000));
    let [now, most, alone] = [0, 0, 0];
    store.behave('complete', async (run) => {
      now += 1;
      most = Math.max(most, now);
      const before = now;
      await new Promise((resolve) => setImmediate(resolve));
      if (store.calls.length === 23) alone = before;
      now -= 1;
      return run();
    });
    failOver();
    t.match(await offered(), /"offered":11,"repaired":11,"ran_twice":0,"not_taken":0/);
    t.equal(most, 3, 'of 300 kB');
    t.equal(alone, 1, 'one that is larger than what may go at once goes by itself, here as the first');
  },
);

t.test('in a shutdown what is taken is brought back, and what is left is told', async (t) => {
  for (const heals of [true, false]) {
    const { reserve, settle, settlements, store, failOver, lines, counted } = bench(t);
    for (const operation of ['one', 'two']) await settle(operation, completion('a', await reserve(operation)));
    counted();
    store.behave('complete', down);
    const before = store.calls.length;
    failOver();
    await until('a first try', () => store.calls.length === before + 2);
    await new Promise((resolve) => setImmediate(resolve));
    if (heals) store.behave('complete', null);
    await settlements.close();
    t.match(
      lines.at(-1),
      heals
        ? /"offered":2,"repaired":2,"ran_twice":0,"not_taken":0/
        : /"offered":0,"repaired":0,"ran_twice":0,"not_taken":2/,
    );
  }
});

t.test('a shutdown waits for a store that is slow to take them for a second', async (t) => {
  const { time, reserve, settle, settlements, store, failOver, lines } = bench(t);
  for (let one = 0; one < 40; one += 1) {
    await settle(`o${String(one)}`, completion('a', await reserve(`o${String(one)}`)));
  }
  const held = gate();
  store.behave('complete', held.fault);
  failOver();
  await until('as many as may be at once', () => held.waiting() === 16);
  const closed = settlements.close();
  await new Promise((resolve) => setImmediate(resolve));
  time.advance(1_001);
  held.open();
  await closed;
  t.match(lines.at(-1), /"offered":16,"repaired":16,"ran_twice":0,"not_taken":24/);
});

t.test('at level 2 a mark that was taken over is no alarm', async (t) => {
  const { reserve, settle, failOver, offered, counted } = bench(t);
  await settle('doubt', { kind: 'mark', command: markOf('a', await reserve('doubt')) }, { deduplicates: true });
  await reserve('doubt', 'b', { takesOver: true });
  counted();
  failOver(false);
  t.match(await offered(), /^info .*"offered":1,"repaired":0,"ran_twice":0/);
  t.same(counted(), ['again 1']);
});

t.test(
  'a shutdown brings back what a fail-over lost that nobody has noticed yet, and tells of what ran twice',
  async (t) => {
    const { time, reserve, settle, settlements, forget, lines, counted, state } = bench(t);
    await settle('old', completion('a', await reserve('old')));
    time.advance(5_001);
    for (const operation of ['lost', 'again', 'kept']) {
      await settle(operation, completion('a', await reserve(operation)));
    }
    forget();
    await settle('kept', completion('b', await reserve('kept', 'b')));
    await reserve('again', 'b');
    counted();
    await settlements.close();
    t.equal(await state('lost'), 'completed');
    t.equal(await state('old'), null, 'a fail-over since then would have been noticed');
    t.same([...counted()].sort(), ['again 4', 'fenced', 'fenced', 'repaired']);
    t.match(lines.at(-1), /^error .*during the shutdown.*"offered":4,"repaired":1,"ran_twice":2,"not_taken":0/);
    t.equal(lines.filter((line) => line.includes('a write ran twice')).length, 2);
  },
);

t.test(
  'a shutdown of a store that forgot nothing says nothing; one that is away is waited for a second, and what it did not take is told',
  async (t) => {
    for (const isAway of [false, true]) {
      const { time, reserve, settle, settlements, store, lines, counted } = bench(t);
      await settle('one', completion('a', await reserve('one')));
      counted();
      const before = [lines.length, store.calls.length] as const;
      if (isAway) store.behave('complete', down);
      const closed = settlements.close();
      if (isAway) {
        for (let tries = 1; tries <= 10; tries += 1) {
          await until('it was tried', () => store.calls.length === before[1] + tries);
          await new Promise((resolve) => setImmediate(resolve));
          time.advance(100);
        }
      }
      await closed;
      t.equal(store.calls.length, before[1] + (isAway ? 10 : 1));
      t.equal(lines.length, before[0] + (isAway ? 1 : 0));
      if (isAway) t.match(lines.at(-1), /^warn .*during the shutdown.*"offered":0,"not_taken":1/);
      t.same(counted(), []);
    }
  },
);
