import t from 'tap';
import { createNetworkShares, createNetworkTurns } from '../../../src/adapters/oauth/network-shares.js';

/** Takes as many places as there are for this address. */
function takeAll({ take }: ReturnType<typeof createNetworkShares>, address: string): number {
  let taken = 0;
  while (take(address) !== null) taken += 1;
  return taken;
}

t.test('one address has half of the places, and each further one half of what is left', async (t) => {
  const shares = createNetworkShares(32);
  const addresses = ['192.0.2.1', '192.0.2.2', '::ffff:192.0.2.2', '192.0.2.3', '192.0.2.4'];
  t.same(
    addresses.map((address) => takeAll(shares, address)),
    [16, 8, 0, 4, 2],
  );
});

t.test('a /48 of IPv6 has what an address has, and each /64 in it a part of that', async (t) => {
  const shares = createNetworkShares(32);
  const addresses = ['2001:db8:1:1::1', '2001:db8:1:1::2', '2001:db8:1:2::1', '2001:db8:1:3::1', '192.0.2.1'];
  t.same(
    addresses.map((address) => takeAll(shares, address)),
    [11, 0, 5, 0, 8],
  );
});

t.test('a place that is given back is had by whoever waits and may have it', async (t) => {
  const turns = createNetworkTurns(4);
  const { signal } = new AbortController();
  const leaves = [await turns.take('192.0.2.1', signal), await turns.take('192.0.2.1', signal)];
  const had: string[] = [];
  const next = turns.take('192.0.2.1', signal).then(() => had.push('next'));
  const late = new AbortController();
  const given = t.rejects(turns.take('192.0.2.1', late.signal), { message: 'no connection was free in time' });
  late.abort();
  await given;
  await turns.take('192.0.2.2', signal).then(() => had.push('another'));
  t.same(had, ['another'], 'others do not wait behind it');
  leaves.forEach((leave) => {
    leave();
  });
  await next;
  t.same(had, ['another', 'next']);
});
