import t from 'tap';
import { HandshakeTurns, type Handshake } from '../../../../src/proxy/inbound/tls/handshake-turns.js';
import { clientNetworks } from '../../../../src/lib/ip-ranges.js';
import { until } from '../../../support/until.js';

interface Fake extends Handshake {
  readonly name: string;
  isPaused: boolean;
  hasLeft: boolean;
  /** Bytes that each of its turns brings, and that each is told. */
  brings: number;
  told: number;
  turns: number;
  onTurn: () => void;
}

function fakeHandshake(name: string, address: string): Fake {
  const fake: Fake = {
    name,
    networks: clientNetworks(address),
    isPaused: true,
    hasLeft: false,
    brings: 0,
    told: 0,
    turns: 0,
    onTurn: () => undefined,
    isGone: () => fake.hasLeft,
    bytesRead: () => fake.turns * fake.brings,
    bytesWritten: () => fake.turns * fake.told,
    pauseReading: () => {
      fake.isPaused = true;
    },
    resumeReading: () => {
      fake.isPaused = false;
      fake.turns += 1;
      fake.onTurn();
    },
  };
  return fake;
}

const crowdOf = (size: number): readonly Fake[] =>
  Array.from({ length: size }, (_, index) => fakeHandshake(String(index), '203.0.113.9'));

const reading = (handshakes: readonly Fake[]): readonly Fake[] => handshakes.filter(({ isPaused }) => !isPaused);

function begin(turns: HandshakeTurns, handshakes: readonly Fake[]): void {
  for (const handshake of handshakes) turns.begin(handshake);
}

function leave(turns: HandshakeTurns, handshakes: readonly Fake[]): void {
  for (const handshake of handshakes) {
    handshake.hasLeft = true;
    turns.end(handshake);
  }
}

t.test('as long as they are few, all are read', (t) => {
  const turns = new HandshakeTurns();
  const crowd = crowdOf(16);
  begin(turns, crowd);
  t.equal(reading(crowd).length, 16);
  t.end();
});

t.test('a place is free again where one is complete', (t) => {
  const turns = new HandshakeTurns();
  const crowd = crowdOf(200);
  for (const handshake of crowd) {
    turns.begin(handshake);
    leave(turns, [handshake]);
  }
  t.equal(reading(crowd).length, 200);
  t.end();
});

t.test('beyond that they wait, and those of other networks wait for few of them', async (t) => {
  const turns = new HandshakeTurns();
  const crowd = crowdOf(200);
  for (const handshake of crowd) handshake.told = 100;
  const honest = fakeHandshake('honest', '192.0.2.1');
  const all = [...crowd, honest];
  t.teardown(() => leave(turns, all));
  begin(turns, all);
  t.equal(reading(all).length, 16);
  let before = Infinity;
  honest.onTurn = () => {
    before = Math.min(before, crowd.filter(({ turns }) => turns > 0).length);
  };
  await until('it is its turn', () => before < Infinity);
  t.equal(before, 17, 'behind those that began at once, and the first of the others');
  t.ok(reading(all).length <= 16);
});

t.test('those that say nothing keep nobody waiting for long', async (t) => {
  const turns = new HandshakeTurns();
  const crowd = crowdOf(300);
  t.teardown(() => leave(turns, crowd));
  begin(turns, crowd);
  await until('all had a turn', () => crowd.every(({ turns }) => turns > 0), 5_000);
  t.ok(reading(crowd).length <= 16);
});

t.test('who left has no turn, and who waits is read where the others left', async (t) => {
  const turns = new HandshakeTurns();
  const crowd = crowdOf(60);
  begin(turns, crowd);
  const left = crowd.slice(0, 50);
  leave(turns, left);
  const waiting = crowd.slice(50);
  await until('the others are read', () => reading(waiting).length === 10);
  t.same(
    left.filter(({ turns }) => turns > 0),
    crowd.slice(0, 16),
    'none of the others that left had a turn',
  );
});

t.test('a turn that brings bytes and comes to no response costs no time', async (t) => {
  const turns = new HandshakeTurns();
  const crowd = crowdOf(300);
  for (const handshake of crowd) handshake.brings = 1;
  t.teardown(() => leave(turns, crowd));
  let most = 0;
  for (const handshake of crowd) handshake.onTurn = () => (most = Math.max(most, reading(crowd).length));
  begin(turns, crowd);
  await until('all had a turn', () => crowd.every(({ turns }) => turns > 0), 5_000);
  t.equal(most, 16, 'as many at once as where nothing comes');
});
