import t from 'tap';
import { compiled, configText, problemsOf, withRoutes } from '../inspection.js';

const who = 'subjects: [s], permissions: [p]';
const route = (name: string, rest = ''): string => `name: ${name}, methods: [GET], path: /${name}, ${who}${rest}`;

t.test('limits of the file, and of routes in their place', (t) => {
  const limits = (file: string | null, ...routes: string[]): unknown =>
    compiled(withRoutes(routes, { store: '{ memory: {} }', ...(file === null ? {} : { limits: file }) })).routes.map(
      ({ limits: found }) => found,
    );
  t.same(limits(null, route('a'), route('b', ', limits: { max_in_flight: 2 }')), [
    null,
    { rate: null, maxInFlight: 2, route: 'b' },
  ]);
  const own = route('c', ', limits: { requests_per_second: 7, burst: 9, shared: true }');
  t.same(limits('{ requests_per_second: 2.5 }', route('a'), route('b', ', limits: null'), own), [
    { rate: { perSecond: 2.5, burst: 3, shared: false }, maxInFlight: null, route: null },
    null,
    { rate: { perSecond: 7, burst: 9, shared: true }, maxInFlight: null, route: 'c' },
  ]);
  t.same(
    limits('{ max_in_flight: 3 }', 'name: p, methods: [GET], path: /p, access: public'),
    [null],
    'a public route has no callers',
  );
  t.end();
});

t.test('what limits may not say', (t) => {
  const useless = 'has no use without requests_per_second; allowed: requests_per_second beside it';
  const cases = [
    { limits: '{}', expected: '9: error: limits sets no limit; allowed: requests_per_second, max_in_flight or both' },
    { limits: '{ burst: 5, max_in_flight: 1 }', expected: `11: error: limits.burst ${useless}` },
    { limits: '{ shared: true, max_in_flight: 1 }', expected: `11: error: limits.shared ${useless}` },
    {
      limits: '{ requests_per_second: 5, shared: true }',
      expected:
        '43: error: limits.shared needs a place to count together, and no store is configured; allowed: store.redis, or false',
    },
    {
      limits: '{ requests_per_second: 0 }',
      expected: '32: error: limits.requests_per_second is 0; allowed: a number from 0.01 to 100000',
    },
    {
      limits: '{ requests_per_second: 1, burst: 0 }',
      expected: '42: error: limits.burst is 0; allowed: a whole number from 1 to 1000000',
    },
  ];
  for (const { limits, expected } of cases) {
    t.same(problemsOf(configText({ limits })), [`c.yaml:5:${expected}`], limits);
  }
  t.match(problemsOf(configText({ limits: '{ rps: 5 }' })).join('\n'), 'unknown key "rps" in limits');
  t.match(
    problemsOf(withRoutes(['name: p, methods: [GET], path: /p, access: public, limits: { max_in_flight: 1 }'])).join(
      '\n',
    ),
    'error: routes[0].limits stands beside routes[0].access: whose requests they are would not be known',
  );
  t.end();
});
