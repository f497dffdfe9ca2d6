import t from 'tap';
import { slotCount, slotOf } from '../../../../src/adapters/redis/topology/discovery.js';

t.test('the slots of the Redis Cluster specification, and of what CLUSTER KEYSLOT says', (t) => {
  t.equal(slotCount, 16_384);
  const slots: readonly (readonly [string, number])[] = [
    ['', 0],
    ['123456789', 0x31c3],
    ['foo', 12_182],
    ['bar', 5_061],
    ['hello', 866],
    ['ÿ', 7_920],
  ];
  for (const [tag, slot] of slots) t.equal(slotOf(tag), slot, tag);
  t.end();
});
