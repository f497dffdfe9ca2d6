import t from 'tap';
import { markOf } from '../../adapters/store-commands.js';
import { until } from '../../support/until.js';
import { bench, completion } from './failover-bench.js';
import { down, gate } from './faulty-store.js';

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
        const pass = async (ms: number): Promise<void> => {
          for (let passedMs = 0; passedMs < ms; passedMs += 500) {
            time.advance(500);
            await new Promise((resolve) => setImmediate(resolve));
          }
        };
        await pass(30_000);
        const told = lines.length;
        t.match(lines.at(-1), /"not_taken":2/);
        await pass(laterMs);
        t.equal(lines.length, told, 'that is told once');
        store.behave('complete', null);
        if (failsOver) failOver();
        await pass(1_500);
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
    for (let half = 0; half < 61; half += 1) {
      time.advance(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
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
  const answers = (held: typeof late) => {
    store.behave('complete', async (run) => {
      const answer = await run();
      await held.fault(async () => answer);
      return answer;
    });
  };
  answers(late);
  const settled = settle('late', completion('a', fence));
  await until('it is on its way', () => late.waiting() === 1);
  answers(again);
  failOver();
  await until('the other one is brought back', () => again.waiting() === 1);
  late.open();
  await settled;
  store.behave('complete', null);
  again.open();
  t.match(await offered(), /"offered":2,"repaired":2/);
  t.same([...counted()].sort(), ['again 2', 'completed', 'repaired', 'repaired']);
});
