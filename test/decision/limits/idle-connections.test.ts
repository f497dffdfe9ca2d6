import fc from 'fast-check';
import t from 'tap';
import { chooseToEnd, type IdleConnection } from '../../../src/decision/limits/idle-connections.js';

const nowMs = 100_000;
const limit = 8;

const networksOf = (own: string): IdleConnection['networks'] => ({ own, site: own });

/** `a9!` rested for 9 s, belongs to address a, and had a good credential; `ax9` is of network x in site a. */
function restOf(text: string): IdleConnection {
  const [, site = '', own = '', seconds = ''] = /^(.)(\D?)([^!]*)/.exec(text) ?? [];
  return {
    networks: { site, own: site + own },
    hasAuthenticated: text.endsWith('!'),
    sinceMs: nowMs - 1000 * parseFloat(seconds),
  };
}

t.test('who has no good credential gives way first, then who holds many', (t) => {
  const cases = [
    { name: 'nobody rests', resting: '', count: 1, chosen: '' },
    { name: 'the longest rest', resting: 'a2 a3 a1', count: 2, chosen: 'a3 a2' },
    { name: 'no good credential before a longer rest', resting: 'a9! a2', count: 1, chosen: 'a2' },
    { name: 'the address that holds most', resting: 'b9 a2 a3', count: 2, chosen: 'a3 a2' },
    { name: 'a request may be on its way on a young one', resting: 'b0.5 a9!', count: 1, chosen: 'b0.5' },
    { name: 'unless somebody holds more than a quarter', resting: 'b0.5 a9! a8! a7!', count: 2, chosen: 'a9! a8!' },
    { name: 'a young one of such an address', resting: 'a0.5 a9! a8! b0.5', count: 2, chosen: 'a0.5 a9!' },
    { name: 'exactly a quarter is not more', resting: 'a9! a8! b0.5', count: 1, chosen: 'b0.5' },
    { name: 'a second is no longer young', resting: 'b1 c0.999', count: 1, chosen: 'b1' },
    { name: 'with a good credential last', resting: 'b9! c1! d0.1', count: 3, chosen: 'd0.1 b9! c1!' },
    { name: 'a site by all of its networks', resting: 'b9 ax2 ay1', count: 2, chosen: 'ax2 ay1' },
    { name: 'in it the network that holds most', resting: 'ax9 ay2 ay1 b3', count: 3, chosen: 'ay2 ay1 ax9' },
    {
      name: 'more than a quarter, of several networks of a site',
      resting: 'b0.5 ax9! ay8! az7!',
      count: 2,
      chosen: 'ax9! ay8!',
    },
    { name: 'all, where more are asked for', resting: 'a1 b2', count: 9, chosen: 'b2 a1' },
  ];
  for (const { name, resting, count, chosen } of cases) {
    const names = resting.split(' ').filter((text) => text !== '');
    t.equal(
      chooseToEnd(names.map(restOf), { count, limit, nowMs })
        .map((position) => names[position])
        .join(' '),
      chosen,
      name,
    );
  }
  t.end();
});

t.test('the first to go are the same, however many are asked for', (t) => {
  const rests = fc.array(
    fc.record({
      networks: fc.constantFrom('a', 'b', 'c').map(networksOf),
      hasAuthenticated: fc.boolean(),
      sinceMs: fc.integer({ min: nowMs - 3_000, max: nowMs }),
    }),
    { maxLength: 30 },
  );
  fc.assert(
    fc.property(rests, fc.nat(30), (resting, count) => {
      const all = chooseToEnd(resting, { count: resting.length, limit, nowMs });
      const some = chooseToEnd(resting, { count, limit, nowMs });
      return new Set(all).size === resting.length && some.join(' ') === all.slice(0, count).join(' ');
    }),
  );
  t.end();
});
