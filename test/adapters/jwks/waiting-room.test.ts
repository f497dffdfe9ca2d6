import t from 'tap';
import { createWaitingRoom, maxWaiting, type Waiter } from '../../../src/adapters/jwks/waiting-room.js';
import { asker } from './key-source-harness.js';

interface Told {
  readonly enter: (
    name: string,
    from: string,
    more?: { hasAuthenticated?: boolean; isGone?: () => boolean },
  ) => boolean;
  /** Who was answered, and how, in that order. */
  readonly answers: string[];
  readonly room: ReturnType<typeof createWaitingRoom>;
}

function open(max: number): Told {
  const room = createWaitingRoom(max);
  const answers: string[] = [];
  return {
    room,
    answers,
    enter: (name, from, more = {}) =>
      room.enter({
        keyId: name,
        sinceMs: 0,
        asker: asker(from, more),
        resolve: ({ kind }) => answers.push(`${name} ${kind}`),
      }),
  };
}

t.test('one network that fills the room keeps nobody of another out, and loses what came last', (t) => {
  const { enter, answers, room } = open(8);
  for (const name of ['a', 'b', 'c', 'd']) t.ok(enter(name, '203.0.113.9'));
  t.notOk(enter('e', '203.0.113.9'), 'it has no more than all places');
  t.ok(enter('honest', '192.0.2.1'));
  t.same(answers, ['d busy']);
  t.ok(enter('honest too', '192.0.2.1'));
  t.same(answers, ['d busy', 'c busy']);
  t.notOk(enter('third', '192.0.2.1'), 'until both have as much');
  t.ok(enter('another', '192.0.2.2'), 'and one that has nothing gets something');
  t.equal(room.size(), 4);
  t.end();
});

t.test('an IPv6 network is one holder, whatever its addresses', (t) => {
  const { enter, answers } = open(8);
  for (const name of ['1', '2', '3', '4']) t.ok(enter(name, `2001:db8:1:2::${name}`));
  t.notOk(enter('5', '2001:db8:1:2:ffff::5'));
  t.ok(enter('honest', '2001:db8:1:3::1'));
  t.same(answers, ['4 busy']);
  t.end();
});

t.test('a /48 of IPv6 is one holder beside others, however many networks it has', (t) => {
  const { enter, answers } = open(8);
  for (const name of ['1', '2', '3', '4']) t.ok(enter(name, `2001:db8:1:${name}::1`));
  t.ok(enter('honest', '192.0.2.1'));
  t.ok(enter('honest too', '192.0.2.1'));
  t.equal(answers.length, 2);
  t.notOk(enter('5', '2001:db8:1:5::1'), 'and takes no place of others with a new one');
  t.end();
});

t.test('connections with a good credential have places of their own', (t) => {
  const { enter, answers } = open(8);
  for (const name of ['a', 'b', 'c', 'd']) t.ok(enter(name, '203.0.113.9'));
  for (const name of ['e', 'f', 'g', 'h']) {
    t.ok(enter(name, '203.0.113.9', { hasAuthenticated: true }), 'from the same address');
  }
  t.notOk(enter('i', '203.0.113.9', { hasAuthenticated: true }));
  t.same(answers, []);
  t.end();
});

t.test('who left makes room', (t) => {
  const { enter, answers, room } = open(8);
  let hasLeft = false;
  for (const name of ['a', 'b', 'c', 'd']) {
    t.ok(enter(name, `192.0.2.${String(name.charCodeAt(0))}`, { isGone: () => hasLeft && name === 'c' }));
  }
  t.notOk(enter('e', '198.51.100.1'), "every place is another network's");
  hasLeft = true;
  t.ok(enter('e', '198.51.100.1'));
  t.same(answers, ['c busy']);
  t.equal(room.size(), 4);
  t.end();
});

t.test('who left makes room before anybody who is still there', (t) => {
  const { enter, answers } = open(8);
  for (const name of ['a', 'b', 'c']) t.ok(enter(name, '203.0.113.9'));
  t.ok(enter('d', '192.0.2.1', { isGone: () => true }));
  t.ok(enter('e', '198.51.100.1'));
  t.same(answers, ['d busy']);
  t.end();
});

t.test('settling lets those go that have an answer, and gives their places back', (t) => {
  const { enter, answers, room } = open(8);
  for (const name of ['a', 'b', 'c', 'd']) enter(name, '203.0.113.9');
  room.settle(({ keyId }) => (keyId < 'c' ? { kind: 'unknown' } : null));
  t.same(answers, ['a unknown', 'b unknown']);
  t.equal(room.size(), 2);
  t.ok(enter('e', '203.0.113.9'));
  t.ok(enter('f', '203.0.113.9'));
  t.notOk(enter('g', '203.0.113.9'));
  room.settle(() => ({ kind: 'unavailable' }));
  t.equal(room.size(), 0);
  t.equal(answers.length, 6);
  t.end();
});

t.test('a flood is turned away quickly, whoever sends it', (t) => {
  const { enter, room } = open(maxWaiting);
  const startedMs = performance.now();
  const flood = 10_000;
  for (let count = 0; count < flood; count += 1) {
    enter(String(count), `198.51.${String(count % 251)}.${String(count % 241)}`);
  }
  t.comment(`${String(Math.round(((performance.now() - startedMs) * 1000) / flood))} µs each`);
  t.equal(room.size(), maxWaiting / 2);
  t.end();
});

t.test('without anybody who asks, too, the number is bounded', (t) => {
  const room = createWaitingRoom(4);
  const waiter: Waiter = { keyId: 'd-1', sinceMs: 0, asker: null, resolve: () => undefined };
  t.same(
    [1, 2, 3].map(() => room.enter({ ...waiter })),
    [true, true, false],
  );
  t.end();
});
