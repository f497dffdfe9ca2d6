import t from 'tap';
import type { Route } from '../../../src/decision/route/policy.js';
import { routeChanges } from '../../../src/policy-test/diff/setting-changes.js';
import { route } from '../../decision/samples.js';

t.test('what a route says of those whom it lets through', async (t) => {
  const origins = (...names: readonly string[]): Partial<Route> => ({
    origins: names.length === 0 ? null : new Set(names),
  });
  const limits = (perSecond: number, maxInFlight: number | null): Partial<Route> => ({
    limits: { rate: { perSecond, burst: 20, shared: false }, maxInFlight, route: null },
  });
  const rows: readonly { name: string; from: Partial<Route>; to: Partial<Route>; expected: readonly string[] }[] = [
    { name: 'nothing', from: {}, to: {}, expected: [] },
    {
      name: 'another name, other callers, other paths: compared by who gets through',
      from: {},
      to: { name: 'x', paths: [], approvals: [] },
      expected: [],
    },
    { name: 'WebSockets', from: {}, to: { allowsWebSocket: true }, expected: ['websocket: false -> true, wider'] },
    { name: 'an origin more', from: origins('a'), to: origins('b', 'a'), expected: ['origins: a -> a b, wider'] },
    { name: 'an origin less', from: origins('a', 'b'), to: origins('a'), expected: ['origins: a b -> a, not wider'] },
    { name: 'any origin', from: origins('a'), to: origins(), expected: ['origins: a -> none, wider'] },
    { name: 'some origins only', from: origins(), to: origins('a'), expected: ['origins: none -> a, not wider'] },
    {
      name: 'two origins in one item',
      from: origins('a b'),
      to: origins('b', 'a'),
      expected: ['origins: ["a b"] -> ["a", "b"], wider'],
    },
    {
      name: 'an origin called none',
      from: origins('none'),
      to: origins(),
      expected: ['origins: ["none"] -> null, wider'],
    },
    { name: 'public', from: {}, to: { access: 'public' }, expected: ['access: protected -> public, wider'] },
    { name: 'enforced', from: { mode: 'shadow' }, to: {}, expected: ['mode: shadow -> enforce, not wider'] },
    {
      name: 'a limit',
      from: {},
      to: limits(10, 5),
      expected: [
        'limits.requests_per_second: none -> 10, not wider',
        'limits.burst: none -> 20, not wider',
        'limits.shared: none -> false, not wider',
        'limits.max_in_flight: none -> 5, not wider',
      ],
    },
    {
      name: 'a higher limit',
      from: limits(10, 5),
      to: limits(11, 6),
      expected: ['limits.requests_per_second: 10 -> 11, wider', 'limits.max_in_flight: 5 -> 6, wider'],
    },
    {
      name: 'a lower limit',
      from: limits(10, 5),
      to: limits(9, 4),
      expected: ['limits.requests_per_second: 10 -> 9, not wider', 'limits.max_in_flight: 5 -> 4, not wider'],
    },
    {
      name: 'no limit',
      from: limits(10, 5),
      to: limits(10, null),
      expected: ['limits.max_in_flight: 5 -> none, wider'],
    },
    {
      name: 'the cookies of sessions',
      from: { session: { claims: [], forwardsTokens: false } },
      to: { session: { claims: [], forwardsTokens: true } },
      expected: ['session.forward_tokens: false -> true, wider'],
    },
  ];
  for (const { name, from, to, expected } of rows) {
    const changes = routeChanges(route(from), route(to));
    t.same(
      changes.map(
        (change) => `${change.setting}: ${change.from} -> ${change.to}, ${change.widens ? 'wider' : 'not wider'}`,
      ),
      expected,
      name,
    );
  }
});

t.test('a setting that it does not know counts as wider, whatever holds it', async (t) => {
  const pairs: readonly (readonly [unknown, unknown])[] = [
    [1, 2],
    [new Set(['a']), new Set(['b'])],
    [{ a: new Set(['a']) }, { a: new Set() }],
    [undefined, null],
    [null, { rate: 1 }],
  ];
  for (const [from, to] of pairs) {
    const [before, after]: readonly Route[] = [
      { ...route(), ...{ future: from } },
      { ...route(), ...{ future: to } },
    ];
    if (before === undefined || after === undefined) throw new Error('there are two');
    const isSame = (from ?? null) === (to ?? null);
    t.same(
      routeChanges(before, after).map(({ setting, widens }) => [setting, widens]),
      isSame ? [] : [['future', true]],
    );
  }
});
