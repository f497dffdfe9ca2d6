import t from 'tap';
import { createFailoverFloor } from '../../../src/adapters/redis/floor.js';

t.test('the floor of a fail-over: from what is seen after the start, for as long as older tokens live', (t) => {
  const floor = createFailoverFloor(() => 7_200_000);
  t.equal(floor.see('one', 'a', 1_000), false, 'the first sight');
  t.equal(floor.see('two', 'b', 1_000), false, 'another primary of a Cluster');
  floor.settle();
  t.equal(floor.see('one', 'a', 2_000), false);
  t.equal(floor.issuedBeforeS(2_000), null);
  t.equal(floor.see('one', 'c', 10_001), true);
  t.equal(floor.see('one', 'c', 10_002), false, 'seen again');
  t.equal(floor.failovers(), 1);
  t.equal(floor.issuedBeforeS(10_003), 11, 'rounded up: a token of the same second is older');
  t.equal(floor.issuedBeforeS(10_001 + 7_199_999), 11);
  t.equal(floor.issuedBeforeS(10_001 + 7_200_000), null, 'nothing issued before is valid any more');
  t.equal(floor.see('two', 'd', 8_000_000), true);
  t.equal(floor.issuedBeforeS(8_000_000), 8_000);
  t.equal(floor.failovers(), 2);
  t.end();
});

t.test('REPLAY 7: a primary that comes back missed what was written meanwhile', (t) => {
  const floor = createFailoverFloor(() => 7_200_000);
  floor.see('one', 'a', 1_000);
  floor.settle();
  t.equal(floor.see('one', 'b', 10_000), true);
  t.equal(floor.see('one', 'a', 20_000), true, 'in the same place');
  t.equal(floor.issuedBeforeS(20_000), 20);
  floor.leave('one');
  t.equal(floor.see('two', 'b', 30_000), true);
  floor.leave('two');
  t.equal(floor.see('one', 'a', 40_000), true, 'in another place');
  t.equal(floor.issuedBeforeS(40_000), 40);
  t.equal(floor.failovers(), 4);
  t.end();
});

t.test('REPLAY 7: the floor lasts as long as tokens of the issuers in force live', (t) => {
  let lastsMs = 1_000;
  const floor = createFailoverFloor(() => lastsMs);
  floor.settle();
  floor.see('one', 'a', 10_000);
  t.equal(floor.issuedBeforeS(11_000), null);
  lastsMs = 5_000;
  t.equal(floor.issuedBeforeS(11_000), 10, 'a reload allowed tokens that live longer');
  t.equal(floor.issuedBeforeS(15_000), null);
  t.end();
});
