import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { createTurnEnd } from '../../src/proxy/turn-end.js';

t.test('what one turn brings is done at its end, in its order, and what that brings at the end of the next', async (t) => {
  const atTurnEnd = createTurnEnd();
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
});

t.test('one that throws is told as what was not caught, and takes none with it', async (t) => {
  const atTurnEnd = createTurnEnd();
  const done: string[] = [];
  const uncaught: unknown[] = [];
  process.setUncaughtExceptionCaptureCallback(error => uncaught.push(error));
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
