import t from 'tap';
import type { SettleCommand } from '../../../src/proxy/idempotency/settlement-queue.js';
import type { ManualTime } from '../../adapters/manual-time.js';
import { markOf } from '../../adapters/store-commands.js';
import { until } from '../../support/until.js';
import { bench, completion } from './failover-bench.js';
import { answerLost, down, gate, type Fault, type Gate } from './faulty-store.js';

/** Goes on in steps, so that what comes due may do its work. */
async function pass(time: ManualTime, ms: number, stepMs = 500): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += stepMs) {
    time.advance(stepMs);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The command runs at once; its answer waits. */
function answersLate(held: Gate): Fault {
  return async (run) => {
    const answer = await run();
    await held.fault(async () => answer);
    return answer;
  };
}

t.test(
  'what was not taken within half a minute is offered each second, or after the next fail-over, for 5 min',
  async (t) => {
    for (const [laterMs, isOffered] of [
      [0, true],
      [200_000, true],
      [300_000, false],
    ] as const) {
      for (const failsOver of [false, true]) {
        const { time, reserve, settle, store, failOver, lines, state } = bench(t);
        await settle('done', completion('a', await reserve('done')));
        time.advance(200);
        await settle('last', completion('a', await reserve('last')));
        store.behave('complete', down);
        failOver();
        await pass(time, 30_000);
        const told = lines.length;
        t.match(lines.at(-1), /"not_taken":2/);
        await pass(time, laterMs);
        t.equal(lines.length, told + (isOffered ? 0 : 1), 'that is told once, and once that it is given up');
        t.match(lines.at(-1), /^error .*did not take all.*"offered":0,.*"not_taken":2/);
        store.behave('complete', null);
        if (failsOver) failOver();
        await pass(time, 1_500);
        if (isOffered) t.match(lines.at(-1), /"offered":2,"repaired":2,"ran_twice":0,"not_taken":0/);
        const found = isOffered ? 'completed' : null;
        t.same([await state('done'), await state('last')], [found, found], String(laterMs));
        for (let left = 0; left < 4; left += 1) time.advance(15_000);
        t.same(time.due(), []);
      }
    }
  },
);

t.test('a shutdown while it is offered so offers it once more', async (t) => {
  for (const heals of [true, false]) {
    const { time, reserve, settle, settlements, store, failOver, lines, state } = bench(t);
    await settle('done', completion('a', await reserve('done')));
    store.behave('complete', down);
    failOver();
    await pass(time, 30_500);
    const held = gate();
    store.behave('complete', async (run) => {
      await held.fault(run);
      return down(run);
    });
    time.advance(1_000);
    await until('it is on its way', () => held.waiting() === 1);
    const told = lines.length;
    const closed = settlements.close();
    store.behave('complete', heals ? null : down);
    held.open();
    const isClosed = closed.then(() => true);
    const isOpen = new Promise<false>((resolve) => setImmediate(resolve, false));
    for (let tries = 0; tries < 20 && !(await Promise.race([isClosed, isOpen])); tries += 1) {
      time.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await closed;
    t.equal(await state('done'), 'completed');
    if (!heals) t.match(lines.slice(told), [/^warn .*during the shutdown.*"offered":0,"not_taken":1/]);
  }
});

t.test(
  'one fail-over after the other does not keep a doubt beyond the 5 min for which a freed key is known',
  async (t) => {
    const { time, reserve, settle, store, failOver, free, state } = bench(t);
    await settle('doubt', { kind: 'mark', command: markOf('a', await reserve('doubt')) });
    await free('doubt');
    store.behave('mark', down);
    for (let half = 0; half < 620; half += 1) {
      if (half % 40 === 0) failOver(false);
      time.advance(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
    store.behave('mark', null);
    time.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(await state('doubt'), null);
  },
);

t.test('a process that was stopped hears of a fail-over before anything ages', async (t) => {
  const { time, reserve, settle, failOver, offered, state } = bench(t);
  await settle('old', completion('a', await reserve('old')));
  time.advance(16_000);
  await settle('done', completion('a', await reserve('done')));
  time.advance(1_000);
  time.stop(60_000);
  time.advance(4_000);
  failOver();
  t.match(await offered(), /"offered":1,"repaired":1/);
  t.same([await state('old'), await state('done')], [null, 'completed']);
  time.stop(60_000);
  time.advance(25_000);
  t.same(time.due(), [], 'and then it ages again');
});

t.test('the time for which a machine was suspended counts, though the monotonic clock stood still', async (t) => {
  for (const [suspendedMs, offers] of [
    [240_000, 1],
    [300_000, 0],
  ] as const) {
    const { time, reserve, settle, failOver, store } = bench(t);
    await settle('doubt', { kind: 'mark', command: markOf('a', await reserve('doubt')) });
    time.advance(2_000);
    time.suspend(suspendedMs);
    const before = store.calls.length;
    failOver(false);
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(store.calls.length, before + offers);
  }
});

t.test('a part of the store that is away holds up none of what is offered to the others', async (t) => {
  const { reserve, settle, store, failOver, state, isUp } = bench(t);
  await settle('there:1', completion('a', await reserve('there:1')));
  for (let one = 0; one < 40; one += 1) {
    await settle(`dead:${String(one)}`, completion('a', await reserve(`dead:${String(one)}`)));
  }
  let inVain = 0;
  const inner = store.store.complete;
  Object.assign(store.store, {
    complete: (...[scope, command]: Parameters<typeof inner>) => {
      if (scope.principal !== 'dead') return inner(scope, command);
      inVain += 1;
      return down(async () => inner(scope, command));
    },
  });
  isUp(false, 'dead');
  failOver();
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(await state('there:1'), 'completed', 'at once');
  t.ok(inVain <= 16, `${String(inVain)} of 40 were tried`);
});

t.test('a store that takes no reservations, as for want of replicas, is offered all of it at once', async (t) => {
  const { reserve, settle, failOver, lines, isUp } = bench(t);
  for (let one = 0; one < 40; one += 1) {
    await settle(`o${String(one)}`, completion('a', await reserve(`o${String(one)}`)));
  }
  isUp(false);
  failOver();
  await new Promise((resolve) => setImmediate(resolve));
  t.match(lines.at(-1), /"offered":40,"repaired":40/);
});

t.test('an answer that comes late is no further fail-over: what was lost is counted', async (t) => {
  const { reserve, settle, store, failOver, offered, counted } = bench(t);
  await settle('done', completion('a', await reserve('done')));
  const fence = await reserve('late');
  counted();
  const [late, again] = [gate(), gate()];
  store.behave('complete', answersLate(late));
  const settled = settle('late', completion('a', fence));
  await until('it is on its way', () => late.waiting() === 1);
  store.behave('complete', answersLate(again));
  failOver();
  await until('the other one is brought back', () => again.waiting() === 1);
  late.open();
  await settled;
  store.behave('complete', null);
  again.open();
  t.match(await offered(), /"offered":2,"repaired":2/);
  t.same([...counted()].sort(), ['again 2', 'completed', 'repaired', 'repaired']);
});

t.test('after all that was left was too old, the next fail-over is repaired as any other', async (t) => {
  for (const comesLate of [false, true]) {
    const { time, reserve, settle, store, failOver, state } = bench(t);
    const fence = await reserve('old');
    if (comesLate) {
      const held = gate();
      store.behave('complete', answersLate(held));
      const settled = settle('old', completion('a', fence));
      await until('it is on its way', () => held.waiting() === 1);
      failOver();
      time.suspend(300_000);
      held.open();
      await settled;
    } else {
      await settle('old', completion('a', fence));
      store.behave('complete', down);
      failOver();
      await pass(time, 31_000);
      time.stop(300_000);
      await pass(time, 2_000);
    }
    store.behave('complete', null);
    t.equal(await state('old'), null);
    await settle('new', completion('a', await reserve('new')));
    failOver();
    await pass(time, 1_000);
    t.equal(await state('new'), 'completed');
  }
});

t.test('a shutdown offers what a retry has under way, while another settlement waits', async (t) => {
  for (const heals of [true, false]) {
    const { time, reserve, settle, settlements, store, failOver, lines, state } = bench(t);
    const faults = new Map<string, Fault>();
    const inner = store.store.complete;
    Object.assign(store.store, {
      complete: (...args: Parameters<typeof inner>) => {
        const run = async () => inner(...args);
        return faults.get(args[0].operation ?? '')?.(run) ?? run();
      },
    });
    await settle('done', completion('a', await reserve('done')));
    faults.set('done', down);
    failOver();
    await pass(time, 30_000);
    const [retry, last] = [gate(), gate()];
    faults.set('waits', down);
    await settle('waits', completion('a', await reserve('waits')));
    faults.set('done', async (run) => retry.fault(async () => down(run)));
    await pass(time, 1_000);
    await until('it is on its way', () => retry.waiting() === 1);
    faults.set('waits', last.fault);
    const told = lines.length;
    const closed = settlements.close().then(() => true);
    await until('the last try', () => last.waiting() === 1);
    faults.delete('done');
    if (!heals) faults.set('done', down);
    retry.open();
    await pass(time, 100, 100);
    last.open();
    const isOpen = new Promise<false>((resolve) => setImmediate(resolve, false));
    for (let tries = 0; tries < 20 && !(await Promise.race([closed, isOpen])); tries += 1) await pass(time, 100, 100);
    await closed;
    t.equal(await state('waits'), 'completed');
    t.equal(await state('done'), heals ? 'completed' : null);
    if (!heals) t.match(lines.slice(told), [/^warn .*during the shutdown.*"offered":0,"not_taken":1/]);
  }
});

t.test('a doubt is not offered beyond the 5 min, however long it takes to offer what comes before it', async (t) => {
  const { time, reserve, settle, store, failOver, free, state, lines } = bench(t);
  await settle('doubt', { kind: 'mark', command: markOf('a', await reserve('doubt')) });
  for (let one = 0; one < 300; one += 1) {
    await settle(`o${String(one)}`, completion('a', await reserve(`o${String(one)}`)));
  }
  await free('doubt');
  store.behaveAll(down);
  failOver(false);
  await pass(time, 295_000);
  store.behaveAll(async (run) => {
    await new Promise<void>((resolve) => time.timers.after(400, resolve));
    return run();
  });
  await pass(time, 20_000, 200);
  t.equal(await state('doubt'), null);
  t.match(lines.at(-1), /"not_taken":[1-9]/);
});

t.test('a doubt that waits to be written is given up where its machine was suspended for too long', async (t) => {
  for (const ends of [false, true]) {
    const { time, reserve, settle, settlements, store, free, state, lines } = bench(t);
    store.behave('mark', answerLost);
    await settle('doubt', { kind: 'mark', command: markOf('a', await reserve('doubt')) });
    await free('doubt');
    time.suspend(400_000);
    store.behave('mark', null);
    if (ends) await settlements.close();
    else await pass(time, 5_000);
    t.equal(await state('doubt'), null);
    t.match(lines, [/^error a reservation could not be settled.*p\.doubt/]);
    t.equal(settlements.open(), 0);
  }
});

t.test('the time for which the answer to a doubt was on its way counts', async (t) => {
  for (const wasOffered of [false, true]) {
    const { time, reserve, settle, store, failOver, free, state } = bench(t);
    const write: SettleCommand = { kind: 'mark', command: markOf('a', await reserve('doubt')) };
    const held = gate();
    if (wasOffered) await settle('doubt', write);
    store.behave('mark', answersLate(held));
    const settled = wasOffered ? null : settle('doubt', write);
    if (wasOffered) failOver();
    await until('it is written', () => held.waiting() === 1);
    await free('doubt');
    time.suspend(400_000);
    held.open();
    await settled;
    await new Promise((resolve) => setImmediate(resolve));
    store.behave('mark', null);
    failOver(false);
    await pass(time, 1_000);
    t.equal(await state('doubt'), null);
  }
});

t.test('what a store takes little by little is told twice a minute, and a hundred of it by name', async (t) => {
  const { time, reserve, settle, store, failOver, lines } = bench(t);
  const operations = Array.from({ length: 200 }, (_, one) => `o${String(one)}`);
  for (const operation of operations) await settle(operation, completion('a', await reserve(operation)));
  store.behave('complete', down);
  failOver();
  for (const operation of operations) await reserve(operation, 'b');
  await pass(time, 30_000);
  const told = lines.length;
  let calls = 0;
  store.behave('complete', async (run) => {
    calls += 1;
    return calls % 5 === 0 ? run() : down(run);
  });
  await pass(time, 80_000);
  const sums = lines.slice(told).filter((line) => line.includes('to the store once more'));
  t.ok(sums.length >= 2 && sums.length <= 3, `${String(sums.length)} lines`);
  const taken = sums.map((line) => Number(/"offered":(\d+),.*"not_taken":0/.exec(line)?.[1]));
  t.equal(
    taken.reduce((sum, offered) => sum + offered, 0),
    200,
  );
  t.equal(lines.filter((line) => line.includes('a write ran twice')).length, 100);
});

for (const failsOver of [false, true]) {
  const when = failsOver ? 'the next fail-over' : 'the next retry';
  t.test(`what is forgotten for want of memory before ${when} is counted as not taken`, async (t) => {
    const { time, reserve, settle, store, failOver, lines } = bench(t, { lastMs: 15_000, maxBytes: 5_000 });
    for (const operation of ['one', 'two']) await settle(operation, completion('a', await reserve(operation), 1_000));
    store.behave('complete', down);
    failOver();
    await pass(time, 30_000);
    const told = lines.length;
    store.behave('complete', null);
    for (const operation of ['three', 'four']) {
      await settle(operation, completion('a', await reserve(operation), 1_000));
    }
    if (failsOver) failOver();
    else await pass(time, 1_000);
    t.match(lines[told], /^error .*"offered":0,"repaired":0,"ran_twice":0,"not_taken":2/);
  });
}

t.test('settlements that the store refuses do not keep others from being offered', async (t) => {
  for (const hasProblem of [false, true]) {
    const { time, reserve, settle, store, failOver, state, isUp } = bench(t);
    await settle('good', completion('a', await reserve('good')));
    time.advance(1);
    for (let one = 0; one < 16; one += 1) {
      await settle(`bad${String(one)}`, { kind: 'mark', command: markOf('a', await reserve(`bad${String(one)}`)) });
    }
    if (hasProblem) isUp(false);
    store.behaveAll(down);
    failOver();
    await pass(time, 30_000);
    store.behave('complete', null);
    await pass(time, 5_000);
    t.equal(await state('good'), 'completed');
  }
});

t.test('what comes while a store is found to be away waits for the next round', async (t) => {
  const { reserve, settle, store, failOver, isUp } = bench(t);
  for (let one = 0; one < 40; one += 1) {
    await settle(`o${String(one)}`, completion('a', await reserve(`o${String(one)}`)));
  }
  isUp(false);
  const held = gate();
  let calls = 0;
  store.behave('complete', async (run) => {
    calls += 1;
    if (calls > 8) await held.fault(run);
    return down(run);
  });
  failOver();
  await until('the rest is on its way', () => held.waiting() > 0);
  store.behave('complete', null);
  for (let one = 0; one < 200; one += 1) {
    await settle(`n${String(one)}`, completion('a', await reserve(`n${String(one)}`)));
  }
  store.behave('complete', down);
  const before = store.callsOf('complete');
  failOver();
  held.open();
  for (let turn = 0; turn < 1_000; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  t.ok(store.callsOf('complete') - before <= 16, `${String(store.callsOf('complete') - before)} of 200 were tried`);
});
