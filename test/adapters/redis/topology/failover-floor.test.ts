import t from 'tap';
import {
  createFailoverFloor,
  stepOf,
  type FailoverFloor,
} from '../../../../src/adapters/redis/topology/failover-floor.js';

const lifetimeMs = 7_200_000;

function see(floor: FailoverFloor, place: string, identity: string, nowMs: number, tag = 'primary-0'): string[] {
  floor.see({ place, identity, tag, nowMs });
  return floor.news(place).map(({ kind }) => kind);
}

/** A look that takes no time at a server whose clock goes as ours does, unless something is said of it. */
function read(floor: FailoverFloor, nowMs: number, epoch: string, atMs: number, serverMs = nowMs): string[] {
  const look = { place: 'one', identity: 'a', tag: 'primary-0', nowMs };
  floor.read(look, { epoch, atMs, serverMs, aheadMs: 0 }, { fromMs: nowMs, toMs: nowMs });
  return floor.news('one').map(({ kind }) => kind);
}

t.test('the floor of a fail-over: from what is seen after the start, for as long as older tokens live', (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  t.same(see(floor, 'one', 'a', 1_000), [], 'the first sight');
  t.same(see(floor, 'two', 'b', 1_000), [], 'another primary of a Cluster');
  floor.settle();
  t.same(see(floor, 'one', 'a', 2_000), []);
  t.equal(floor.issuedBeforeS(2_000), null);
  t.equal(floor.atMs(), 0);
  t.same(see(floor, 'one', 'c', 10_001), ['replaced']);
  t.same(see(floor, 'one', 'c', 10_002), [], 'seen again');
  t.equal(floor.failovers(), 1);
  t.equal(floor.issuedBeforeS(10_003), 11, 'rounded up: a token of the same second is older');
  t.equal(floor.atMs(), 10_001, 'for the store to remember');
  t.equal(floor.issuedBeforeS(10_001 + lifetimeMs - 1), 11);
  t.equal(floor.issuedBeforeS(10_001 + lifetimeMs), null, 'nothing issued before is valid any more');
  t.same(see(floor, 'two', 'd', 8_000_000), ['replaced']);
  t.equal(floor.issuedBeforeS(8_000_000), 8_000);
  t.equal(floor.failovers(), 2);
  t.end();
});

t.test('a primary that comes back missed what was written meanwhile', (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  see(floor, 'one', 'a', 1_000);
  floor.settle();
  t.same(see(floor, 'one', 'b', 10_000), ['replaced']);
  t.same(see(floor, 'one', 'a', 20_000), ['replaced'], 'in the same place');
  t.equal(floor.issuedBeforeS(20_000), 20);
  floor.leave('one');
  t.same(see(floor, 'two', 'b', 30_000), ['replaced']);
  floor.leave('two');
  t.same(see(floor, 'one', 'a', 40_000), ['replaced'], 'in another place');
  t.equal(floor.issuedBeforeS(40_000), 40);
  t.equal(floor.failovers(), 4);
  t.same(floor.news('nowhere'), []);
  t.end();
});

t.test('the floor lasts as long as tokens of the issuers in force live', (t) => {
  let lastsMs = 1_000;
  const floor = createFailoverFloor(() => lastsMs);
  floor.settle();
  see(floor, 'one', 'a', 10_000);
  t.equal(floor.issuedBeforeS(11_000), null);
  lastsMs = 5_000;
  t.equal(floor.issuedBeforeS(11_000), 10, 'a reload allowed tokens that live longer');
  t.equal(floor.issuedBeforeS(15_000), null);
  t.end();
});

t.test('what the store remembers counts from the start on, and is no fail-over of ours', (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  see(floor, 'one', 'a', 20_000);
  t.same(read(floor, 20_000, 'x', 12_345), []);
  floor.settle();
  t.same([floor.issuedBeforeS(20_000), floor.failovers(), floor.atMs()], [13, 0, 12_345]);
  t.same(read(floor, 22_000, 'x', 21_500), [], 'another proxy noticed one, and we did as well or will');
  t.same([floor.issuedBeforeS(22_000), floor.failovers()], [22, 0]);
  t.same(read(floor, 24_000, 'x', 12_345), [], 'it never goes back');
  t.equal(floor.atMs(), 21_500);
  t.end();
});

t.test('what another proxy notices in our future was noticed now: its clock is wrong', (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  see(floor, 'one', 'a', 20_000);
  read(floor, 20_000, 'x', 99_000_000);
  t.equal(floor.issuedBeforeS(20_000), 20);
  read(floor, 25_000, 'x', 99_000_000);
  t.equal(floor.issuedBeforeS(25_000), 20, 'the same is no news');
  floor.read(
    { place: 'nowhere', identity: 'a', tag: 'primary-0', nowMs: 1 },
    { epoch: 'x', atMs: 1, serverMs: 1, aheadMs: 0 },
    { fromMs: 1, toMs: 1 },
  );
  t.equal(floor.atMs(), 20_000);
  t.end();
});

t.test('a store that does not say what it remembers may have forgotten all; what was read before holds', (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  const look = (nowMs: number) => ({ place: 'one', identity: 'a', tag: 'primary-0', nowMs });
  t.equal(floor.refused(look(1_000)), null, 'nobody is there');
  see(floor, 'one', 'a', 1_000);
  t.same([floor.refused(look(2_000)), floor.atMs()], ['past', 2_000]);
  t.same(
    [floor.refused(look(3_000)), floor.atMs()],
    [null, 2_000],
    'told once, and what is newer cannot have been used before',
  );
  read(floor, 4_000, 'x', 500);
  const refuse = () => [
    floor.refused(look(5_000)),
    floor.refused(look(5_000)),
    floor.refused(look(5_000)),
    floor.refused(look(5_000)),
  ];
  t.same(refuse(), [null, null, 'present', null], 'a moment is nothing; what stays so is told once');
  read(floor, 6_000, 'x', 500);
  t.same(refuse(), [null, null, 'present', null], 'and once more where it was read in between');
  t.same([floor.atMs(), floor.failovers()], [2_000, 0]);
  t.end();
});

t.test('a store that was emptied has another name; one that was replaced has one, too, and that is one event', (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  see(floor, 'one', 'a', 1_000);
  floor.settle();
  read(floor, 1_000, 'x', 500);
  t.same(read(floor, 3_000, 'y', 3_000), ['emptied']);
  t.same([floor.issuedBeforeS(3_000), floor.failovers()], [3, 1]);
  t.same(read(floor, 5_000, 'y', 3_000), []);
  t.same(see(floor, 'one', 'b', 7_000), ['replaced']);
  t.same(read(floor, 7_001, 'z', 7_001), []);
  t.equal(floor.failovers(), 2);
  see(floor, 'one', 'b', 9_000, 'primary-7');
  t.same(read(floor, 9_000, 'w', 9_000), [], 'a primary of a Cluster that serves other slots is asked for another key');
  t.same([floor.failovers(), floor.issuedBeforeS(9_000)], [2, 9]);
  t.end();
});

t.test("a step of the server's clock counts as a fail-over; a slew does not", (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  see(floor, 'one', 'a', 1_000);
  floor.settle();
  read(floor, 1_000, 'x', 500, 5_000);
  t.same(read(floor, 3_000, 'x', 500, 8_000), [], 'a second ahead');
  t.same(read(floor, 5_000, 'x', 500, 9_000), [], 'and back');
  t.same(read(floor, 7_000, 'x', 500, 12_001), ['clock']);
  t.same([floor.issuedBeforeS(7_000), floor.failovers()], [7, 1]);
  t.same(read(floor, 9_000, 'x', 500, 12_999), ['clock'], 'back');
  see(floor, 'one', 'a', 11_000, 'primary-7');
  t.same(read(floor, 11_000, 'x', 500, 99_000), ['clock'], 'whatever it is remembered by');
  see(floor, 'one', 'b', 13_000);
  t.same(read(floor, 13_000, 'x', 500, 1_000), [], 'another server has another clock');
  t.equal(floor.failovers(), 4);
  t.end();
});

t.test('a call tells the time, too: a step counts once, whichever answer comes first', (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  const time = (fromMs: number, toMs: number, serverMs: number, identity = 'a'): string[] => {
    floor.time({ place: 'one', identity, nowMs: toMs }, { serverMs, fromMs, toMs });
    return floor.news('one').map(({ kind }) => kind);
  };
  t.same(time(900, 900, 5_000), [], 'nobody is there');
  see(floor, 'one', 'a', 1_000);
  floor.settle();
  t.equal(floor.expectedMs('one', 1_000), null);
  read(floor, 1_000, 'x', 500, 101_000);
  t.same([floor.expectedMs('one', 3_500), floor.expectedMs('two', 3_500)], [103_500, null]);
  t.same(time(1_200, 1_210, 101_200), [], 'it goes on');
  t.same(time(1_300, 1_310, 3_701_300), ['clock'], 'a step');
  t.equal(floor.issuedBeforeS(1_310), 2);
  t.same(time(1_250, 1_320, 101_260), [], 'asked before that was noticed, and answered before it was so');
  t.same(time(1_255, 1_325, 3_701_290), [], 'asked before that, and answered afterwards');
  t.same(read(floor, 1_305, 'x', 500, 101_305), [], 'a look that was asked for before that');
  t.same(time(1_400, 1_410, 3_701_400), [], 'the new time counts from then on');
  t.same(time(1_500, 1_510, 101_500), ['clock'], 'asked afterwards, the old time is another step');
  t.same(time(1_600, 1_610, 9_000_000, 'b'), [], 'a connection that leads to another server by now');
  t.equal(floor.failovers(), 2);
  t.end();
});

t.test('answers that take long hide no more of a step than they took', (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  see(floor, 'one', 'a', 1_000);
  floor.settle();
  read(floor, 1_000, 'x', 500, 101_000);
  const time = (fromMs: number, toMs: number, serverMs: number): number => {
    floor.time({ place: 'one', identity: 'a', nowMs: toMs }, { serverMs, fromMs, toMs });
    return floor.failovers();
  };
  t.same([time(2_000, 10_000, 111_000), time(2_000, 10_000, 111_001)], [0, 1]);
  t.end();
});

t.test('where looks are not answered, calls keep what is known of the clock young: drift is no step', (t) => {
  const floor = createFailoverFloor(() => lifetimeMs);
  see(floor, 'one', 'a', 0);
  floor.settle();
  // 500 parts per million, for six hours.
  for (let atMs = 0; atMs < 6 * 3_600_000; atMs += 700) {
    floor.time(
      { place: 'one', identity: 'a', nowMs: atMs },
      { serverMs: 100_000 + Math.round(atMs * 1.0005), fromMs: atMs, toMs: atMs },
    );
  }
  t.equal(floor.failovers(), 0);
  t.end();
});

t.test('how far a clock has stepped: no more than is certain, for an answer takes its time', (t) => {
  const before = { serverMs: 100_000, fromMs: 0, toMs: 10 };
  for (const [serverMs, fromMs, toMs, stepMs] of [
    [102_000, 2_000, 2_000, 0],
    [103_000, 2_000, 2_000, 0],
    [103_001, 2_000, 2_000, 1_001],
    [103_500, 2_000, 2_500, 0],
    [103_501, 2_000, 2_500, 1_001],
    [100_990, 2_000, 2_000, 0],
    [100_989, 2_000, 2_000, -1_001],
    [40_000, 2_000, 2_000, -61_990],
    [3_702_000, 2_000, 2_000, 3_600_000],
  ] as const) {
    t.equal(
      stepOf(before, { serverMs, fromMs, toMs }),
      stepMs,
      `${String(serverMs)} from ${String(fromMs)} to ${String(toMs)}`,
    );
  }
  t.end();
});
