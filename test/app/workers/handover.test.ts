/** Connections on their way to workers: in turn, no network before the others, within a bound. */
import type { Socket } from 'node:net';
import t from 'tap';
import { createHandover, type AcceptedConnection, type ConnectionTaker } from '../../../src/app/workers/handover.js';

interface Connection extends AcceptedConnection {
  readonly name: string;
  readonly isClosed: () => boolean;
}

function connection(name: string, remoteAddress: string): Connection {
  const socket = {
    remoteAddress,
    destroyed: false,
    destroy: () => {
      socket.destroyed = true;
    },
  };
  return { name, listener: 0, socket: socket as unknown as Socket, isClosed: () => socket.destroyed };
}

/** Workers that take what they are given when they are told. */
function workers(count: number): {
  readonly takers: readonly (ConnectionTaker & { readonly take: () => void })[];
  readonly given: string[];
} {
  const given: string[] = [];
  const takers = Array.from({ length: count }, (_, index) => {
    let isBusy = false;
    return {
      isFree: () => !isBusy,
      give: (accepted: AcceptedConnection) => {
        isBusy = true;
        given.push(`${String(index)} ${(accepted as Connection).name}`);
      },
      take: () => {
        isBusy = false;
      },
    };
  });
  return { takers, given };
}

const flooder = '198.51.100.7';

t.test('free workers are given connections in turn', (t) => {
  const { takers, given } = workers(3);
  const handover = createHandover({ takers: () => takers, onGaveWay: () => t.fail('nothing gives way') });
  for (let count = 0; count < 6; count += 1) {
    handover.give(connection(String(count), flooder));
    for (const taker of takers) taker.take();
  }
  t.same(given.map((line) => line.slice(0, 1)).slice(3), given.map((line) => line.slice(0, 1)).slice(0, 3));
  t.equal(new Set(given.slice(0, 3).map((line) => line.slice(0, 1))).size, 3);
  t.end();
});

t.test('a worker that is busy is given nothing, and another takes what waits', (t) => {
  const { takers, given } = workers(2);
  const [stuck, live] = takers;
  const handover = createHandover({ takers: () => takers, onGaveWay: () => t.fail('nothing gives way') });
  for (let count = 0; count < 5; count += 1) handover.give(connection(String(count), flooder));
  t.equal(given.length, 2, 'one is on its way to each');
  const name = String(takers.indexOf(live as (typeof takers)[number]));
  for (let turn = 0; turn < 5; turn += 1) {
    live?.take();
    handover.goOn();
  }
  t.equal(given.length, 5);
  t.ok(
    given.slice(2).every((line) => line.startsWith(name)),
    'what is behind the one that hangs does not wait for it',
  );
  t.equal(stuck?.isFree(), false);
  t.end();
});

t.test('who opens many waits behind everybody else for all but the first', (t) => {
  const { takers, given } = workers(1);
  const handover = createHandover({ takers: () => takers, onGaveWay: () => t.fail('nothing gives way') });
  for (let count = 0; count < 1_000; count += 1) handover.give(connection(`flood ${String(count)}`, flooder));
  for (const host of [1, 2, 3]) handover.give(connection(`honest ${String(host)}`, `203.0.113.${String(host)}`));
  for (let turn = 0; turn < 8; turn += 1) {
    takers[0]?.take();
    handover.goOn();
  }
  t.same(
    given.filter((line) => line.includes('honest')),
    ['0 honest 1', '0 honest 2', '0 honest 3'],
    'in eight turns, before a thousand that came earlier',
  );
  t.end();
});

t.test('beyond the bound the newest of whoever has most is closed, and told', (t) => {
  const { takers, given } = workers(1);
  const told: number[] = [];
  const handover = createHandover({ takers: () => takers, onGaveWay: (waiting) => told.push(waiting) }, 4);
  // The first is on its way.
  const flood = Array.from({ length: 6 }, (_, index) => connection(`flood ${String(index)}`, flooder));
  for (const one of flood) handover.give(one);
  t.same(
    flood.map((one) => one.isClosed()),
    [false, false, false, false, false, true],
    'nobody gives way to its own network: the newcomer is closed',
  );
  const honest = connection('honest', '203.0.113.1');
  handover.give(honest);
  t.equal(honest.isClosed(), false);
  t.equal(flood[4]?.isClosed(), true, 'the newest of the flood gave its place');
  t.same(told, [4, 4]);
  for (let turn = 0; turn < 6; turn += 1) {
    takers[0]?.take();
    handover.goOn();
  }
  t.equal(given.length, 5);
  t.ok(given.includes('0 honest'));
  t.end();
});

t.test('who hung up is passed by, and gives its place without a word', (t) => {
  const { takers, given } = workers(1);
  const handover = createHandover({ takers: () => takers, onGaveWay: () => t.fail('nobody lost anything') }, 2);
  handover.give(connection('first', flooder));
  const gone = [connection('gone 1', flooder), connection('gone 2', flooder)];
  for (const one of gone) handover.give(one);
  for (const one of gone) one.socket.destroy();
  handover.give(connection('late', '203.0.113.1'));
  for (let turn = 0; turn < 3; turn += 1) {
    takers[0]?.take();
    handover.goOn();
  }
  t.same(given, ['0 first', '0 late']);
  t.end();
});

t.test('where nobody serves they wait, and are closed when it is over', (t) => {
  const { takers, given } = workers(1);
  let serving: readonly ConnectionTaker[] = [];
  const handover = createHandover({ takers: () => serving, onGaveWay: () => t.fail('nothing gives way') });
  const open = [connection('one', flooder), connection('two', flooder)];
  for (const one of open) handover.give(one);
  t.same(given, []);
  serving = takers;
  handover.goOn();
  t.same(given, ['0 one']);
  handover.drop();
  t.same(
    open.map((one) => one.isClosed()),
    [false, true],
    'what is on its way is not ours to close',
  );
  t.end();
});
