import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import {
  arrivalsReadUntilMs,
  createEventLoopBatch,
  countConnection,
} from '../../../src/proxy/exchange/event-loop-batch.js';

t.test(
  'what one turn brings is done at its end, in its order, and what that brings at the end of the next',
  async (t) => {
    const atTurnEnd = createEventLoopBatch();
    const done: string[] = [];
    for (const name of ['first', 'second']) {
      atTurnEnd(() => {
        done.push(name);
        atTurnEnd(() => done.push(`after ${name}`));
      });
    }
    t.same(done, [], 'not at once');
    await turn();
    t.same(done, ['first', 'second']);
    await turn();
    t.same(done, ['first', 'second', 'after first', 'after second']);
  },
);

t.test('one that throws is told as what was not caught, and takes none with it', async (t) => {
  const atTurnEnd = createEventLoopBatch();
  const done: string[] = [];
  const uncaught: unknown[] = [];
  process.setUncaughtExceptionCaptureCallback((error) => uncaught.push(error));
  t.teardown(() => process.setUncaughtExceptionCaptureCallback(null));
  const faults = [new Error('one'), new Error('two')];
  atTurnEnd(() => done.push('before'));
  for (const [i, fault] of faults.entries()) {
    atTurnEnd(() => {
      throw fault;
    });
    atTurnEnd(() => done.push(`after ${String(i)}`));
  }
  for (let i = 0; i < 4; i++) await turn();
  t.same(done, ['before', 'after 0', 'after 1']);
  t.same(uncaught, faults);
});

t.test('steps that let connections go first wait for the turn that brings none', async (t) => {
  const done: string[] = [];
  createEventLoopBatch()(() => done.push('at once'));
  createEventLoopBatch({ connectionsFirst: true })(() => done.push('waited'));
  countConnection();
  await turn();
  t.same(done, ['at once']);
  await turn();
  t.same(done, ['at once', 'waited']);
});

t.test('they do not wait for ever, and not for connections of before', async (t) => {
  const atTurnEnd = createEventLoopBatch({ connectionsFirst: true });
  const done: string[] = [];
  atTurnEnd(() => done.push('first'));
  let turns = 0;
  for (; done.length === 0 && turns < 1_000_000; turns += 1) {
    countConnection();
    await turn();
  }
  t.same(done, ['first'], `after ${String(turns)} turns that brought a connection each`);
  atTurnEnd(() => done.push('second'));
  await turn();
  await turn();
  t.same(done, ['first', 'second']);
  atTurnEnd(() => done.push('third'));
  await turn();
  t.same(done, ['first', 'second', 'third']);
});

void t.test(
  'what is said to be read is what arrived before the last turn ended, never what arrived in this one',
  async (t) => {
    const atTurnEnd = createEventLoopBatch();
    const seen = async (): Promise<{ readonly readUntilMs: number; readonly atMs: number }> =>
      new Promise((resolve) => {
        atTurnEnd(() => resolve({ readUntilMs: arrivalsReadUntilMs(), atMs: performance.now() }));
      });
    const first = await seen();
    await pause(20);
    const second = await seen();
    t.ok(second.readUntilMs >= first.atMs, 'the first turn had ended then');
    t.ok(second.readUntilMs < second.atMs - 10, 'and the pause had not begun to pass: nobody has looked since');
    await pause(20);
    const third = await seen();
    t.ok(third.readUntilMs >= second.atMs);
    t.ok(third.readUntilMs < third.atMs - 10);
  },
);
