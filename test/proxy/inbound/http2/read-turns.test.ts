import { setImmediate as turnOfLoop } from 'node:timers/promises';
import t from 'tap';
import { ReadTurns, type TurnTaker } from '../../../../src/proxy/inbound/http2/read-turns.js';
import { clientNetworks } from '../../../../src/lib/ip-ranges.js';

interface Fake extends TurnTaker {
  readonly name: string;
  isPaused: boolean;
  hasLeft: boolean;
}

function taker(name: string, address: string): Fake {
  const fake: Fake = {
    name,
    networks: clientNetworks(address),
    isPaused: false,
    hasLeft: false,
    isGone: () => fake.hasLeft,
    pauseReading: () => {
      fake.isPaused = true;
    },
    resumeReading: () => {
      fake.isPaused = false;
    },
  };
  return fake;
}

/** Connections of a crowd from one address, and one of somebody else. */
function crowd(size: number): { turns: ReadTurns; first: Fake; others: readonly Fake[]; honest: Fake } {
  const turns = new ReadTurns();
  const first = taker('first', '203.0.113.9');
  const others = Array.from({ length: size }, (_, index) => taker(String(index), '203.0.113.9'));
  const honest = taker('honest', '192.0.2.1');
  for (const one of [first, ...others, honest]) turns.add(one);
  return { turns, first, others, honest };
}

const paused = (takers: readonly Fake[]): readonly string[] =>
  takers.filter(({ isPaused }) => isPaused).map(({ name }) => name);

/** Turns of the loop until it is so; new connections elsewhere in the process may put them off. */
async function turnsUntil(isSo: () => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000; turn += 1) {
    await turnOfLoop();
    if (isSo()) return;
  }
}

t.test('as long as little comes, everybody is read', (t) => {
  const { turns, first, others, honest } = crowd(3);
  for (let head = 0; head < 200; head += 1) turns.count(first, 10);
  t.same(paused([first, ...others, honest]), []);
  t.end();
});

t.test('heads with many headers cost more', (t) => {
  const { turns, first, others } = crowd(3);
  for (let head = 0; head < 50; head += 1) turns.count(first, 320);
  t.equal(paused(others).length, 3);
  t.end();
});

t.test('beyond that all wait, and networks take turns', async (t) => {
  const { turns, first, others, honest } = crowd(10);
  for (let head = 0; head < 300; head += 1) turns.count(first, 1);
  t.equal(paused([first, ...others, honest]).length, 12);
  const served: string[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    await turnsUntil(() => [first, ...others, honest].some(({ isPaused }) => !isPaused));
    const reading = [first, ...others, honest].filter(({ isPaused }) => !isPaused);
    t.equal(reading.length, 1, 'one at a time, where each brings as much');
    for (const one of reading) {
      served.push(one.name);
      for (let head = 0; head < 300; head += 1) turns.count(one, 1);
      t.notOk(one.isPaused, 'who has the turn brings what there is');
    }
  }
  t.same(served, ['first', 'honest', '0', 'honest']);
});

t.test('where nothing more comes, all are read on soon', async (t) => {
  const { turns, first, others, honest } = crowd(40);
  for (let head = 0; head < 300; head += 1) turns.count(first, 1);
  await turnsUntil(() => paused([first, ...others, honest]).length === 0);
  t.same(paused([first, ...others, honest]), []);
});

t.test('who left has no turn', async (t) => {
  const { turns, first, others, honest } = crowd(2);
  for (let head = 0; head < 300; head += 1) turns.count(first, 1);
  for (const one of [first, ...others]) {
    one.hasLeft = true;
    turns.delete(one);
  }
  await turnsUntil(() => !honest.isPaused);
  t.same(paused([first, ...others, honest]), ['first', '0', '1']);
});

t.test('one that Node reads all the same is told to wait again', (t) => {
  const { turns, first, others } = crowd(1);
  for (let head = 0; head < 300; head += 1) turns.count(first, 1);
  for (const one of others) {
    one.isPaused = false;
    turns.count(one, 1);
    t.ok(one.isPaused);
  }
  t.end();
});

t.test('a connection begins at once, or in its turn', async (t) => {
  const { turns, first } = crowd(0);
  const begun: string[] = [];
  const begin = (name: string, address: string, isGone = false): void => {
    turns.begin({
      networks: clientNetworks(address),
      isGone: () => isGone,
      take: () => {
        begun.push(name);
        return first;
      },
    });
  };
  begin('early', '203.0.113.9');
  for (let head = 0; head < 300; head += 1) turns.count(first, 1);
  begin('late', '203.0.113.9');
  begin('gone', '203.0.113.9', true);
  t.same(begun, ['early']);
  await turnsUntil(() => begun.length > 1);
  t.same(begun, ['early', 'late']);
});
