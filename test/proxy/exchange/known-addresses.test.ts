import t from 'tap';
import { createKnownAddresses } from '../../../src/proxy/exchange/known-addresses.js';

t.test('an address is known by its network, for ten minutes, and 16,384 of them are', (t) => {
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
  for (let index = 0; index < 16_384; index += 1) known.add(`198.51.${String(index >> 8)}.${String(index & 255)}`);
  t.equal(known.has('192.0.2.1'), false, 'who came least lately is forgotten');
  t.equal(known.has('198.51.0.0'), true);
  t.end();
});

t.test('one /48 pushes out its own networks alone', (t) => {
  let nowMs = 0;
  const known = createKnownAddresses({ monotonic: () => nowMs });
  known.add('192.0.2.1');
  known.add('fd00:1:2:3::1');
  for (let index = 0; index < 20_000; index += 1) known.add(`2001:db8:1:${index.toString(16)}::1`);
  const rows: readonly (readonly [string, boolean])[] = [
    ['192.0.2.1', true],
    ['fd00:1:2:3::1', true],
    [`2001:db8:1:${(19_743).toString(16)}::1`, false],
    [`2001:db8:1:${(19_744).toString(16)}::1`, true],
    [`2001:db8:1:${(19_999).toString(16)}::1`, true],
  ];
  for (const [address, expected] of rows) t.equal(known.has(address), expected, address);
  nowMs = 1_000;
  known.add(`2001:db8:1:${(19_744).toString(16)}::1`);
  known.add('2001:db8:1:ffff::1');
  t.equal(known.has(`2001:db8:1:${(19_744).toString(16)}::1`), true, 'it came again');
  t.equal(known.has(`2001:db8:1:${(19_745).toString(16)}::1`), false);
  t.end();
});
