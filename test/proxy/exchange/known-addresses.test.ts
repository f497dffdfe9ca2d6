import t from 'tap';
import { createKnownAddresses } from '../../../src/proxy/exchange/known-addresses.js';

t.test('an address is known by its network, for ten minutes, and 1,024 of them are', (t) => {
  let nowMs = 0;
  const known = createKnownAddresses({ monotonic: () => nowMs });
  t.equal(known.has('192.0.2.1'), false);
  known.add('192.0.2.1');
  known.add('2001:db8:1:2::3');
  const rows: readonly (readonly [string, boolean])[] = [
    ['192.0.2.1', true],
    ['::ffff:192.0.2.1', true],
    ['192.0.2.2', false],
    ['2001:db8:1:2::4', true],
    ['2001:db8:1:3::3', false],
  ];
  for (const [address, expected] of rows) t.equal(known.has(address), expected, address);
  nowMs = 599_999;
  t.equal(known.has('192.0.2.1'), true);
  known.add('192.0.2.1');
  nowMs = 600_000;
  t.equal(known.has('192.0.2.1'), true, 'counted from the last one');
  t.equal(known.has('2001:db8:1:2::3'), false);
  for (let index = 0; index < 1_024; index += 1) known.add(`198.51.${String(index >> 8)}.${String(index & 255)}`);
  t.equal(known.has('192.0.2.1'), false, 'who came least lately is forgotten');
  t.equal(known.has('198.51.0.0'), true);
  t.end();
});
