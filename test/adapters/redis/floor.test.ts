import t from 'tap';
import { createFailoverFloor } from '../../../src/adapters/redis/floor.js';

t.test('the floor of a fail-over: from what is seen after the start, for as long as older tokens live', (t) => {
  const floor = createFailoverFloor(7_200_000);
  t.equal(floor.see('a', 1_000), false, 'the first sight');
  t.equal(floor.see('b', 1_000), false, 'another primary of a Cluster');
  floor.settle();
  t.equal(floor.see('a', 2_000), false);
  t.equal(floor.issuedBeforeS(2_000), null);
  t.equal(floor.see('c', 10_001), true);
  t.equal(floor.see('c', 10_002), false, 'seen by another connection');
  t.equal(floor.see('a', 10_003), false, 'a connection that still leads to the old one');
  t.equal(floor.failovers(), 1);
  t.equal(floor.issuedBeforeS(10_003), 11, 'rounded up: a token of the same second is older');
  t.equal(floor.issuedBeforeS(10_001 + 7_199_999), 11);
  t.equal(floor.issuedBeforeS(10_001 + 7_200_000), null, 'nothing issued before is valid any more');
  t.equal(floor.see('d', 8_000_000), true);
  t.equal(floor.issuedBeforeS(8_000_000), 8_000);
  t.equal(floor.failovers(), 2);
  t.end();
});
