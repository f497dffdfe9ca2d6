import t from 'tap';
import type { RouteTraffic } from '../../src/ports/observability.js';
import { quantile, ratesBetween, series, type Sample } from '../../src/console/rates.js';

function sample(seconds: number, routes: readonly (Partial<RouteTraffic> & { readonly route: string })[]): Sample {
  return {
    at_ms: seconds * 1_000,
    traffic: {
      duration_bounds: [0.1, 0.2, 1],
      overhead_bounds: [0.1],
      routes: routes.map((route) => ({
        requests: { forwarded: 0, replayed: 0, denied: 0, failed: 0, shadow: 0 },
        denials: {},
        failures: {},
        shadow_denials: {},
        duration: [0, 0, 0, 0],
        overhead: [0, 0],
        ...route,
      })),
    },
  };
}

const requests = (forwarded: number, denied = 0): RouteTraffic['requests'] => ({
  forwarded,
  denied,
  replayed: 0,
  failed: 0,
  shadow: 0,
});

t.test('rates between two looks', (t) => {
  const before = sample(0, [{ route: 'a', requests: requests(10), denials: { token_expired: 4 } }]);
  const after = sample(2, [
    { route: 'a', requests: requests(30, 2), denials: { token_expired: 5 } },
    { route: 'b', requests: requests(4) },
  ]);
  t.match(Object.fromEntries(ratesBetween(before, after, 'outcome')), { forwarded: 12, denied: 1 });
  t.same(Object.fromEntries(ratesBetween(before, after, 'route')), { a: 11, b: 2 });
  t.same(Object.fromEntries(ratesBetween(before, after, 'reason')), { token_expired: 0.5 });
  t.equal(ratesBetween(after, sample(3, [{ route: 'a', requests: requests(5) }]), 'route').get('a'), 5, 'counted anew');
  t.equal(ratesBetween(after, after, 'route').size, 0, 'no time passed');
  t.end();
});

t.test('quantiles by buckets', (t) => {
  const none = sample(0, [{ route: 'a' }]);
  const some = sample(1, [{ route: 'a', duration: [50, 90, 100, 100] }]);
  const slow = sample(1, [{ route: 'a', duration: [0, 0, 0, 10] }]);
  const rows: readonly (readonly [Sample, number, number | null])[] = [
    [some, 0.5, 0.1],
    [some, 0.25, 0.05],
    [some, 0.7, 0.15],
    [some, 1, 1],
    [slow, 0.5, 1],
    [none, 0.5, null],
  ];
  for (const [after, part, expected] of rows) {
    const found = quantile(none, after, 'duration', part);
    t.equal(found === null ? null : Math.round(found * 1_000) / 1_000, expected);
  }
  t.end();
});

t.test('what counts most has a line, the rest is one', (t) => {
  const names = ['a', 'b', 'c', 'd'];
  const at = (seconds: number): Sample =>
    sample(
      seconds,
      names.map((route, index) => ({ route, requests: requests(seconds * (index + 1)) })),
    );
  t.same(series([at(0), at(1), at(2)], 'route', 2), {
    names: ['d', 'c', '2 others'],
    values: [
      [4, 4],
      [3, 3],
      [3, 3],
    ],
  });
  t.same(series([at(0)], 'route', 2), { names: [], values: [] });
  t.same(series([at(0), at(1)], 'outcome', 6).names, ['forwarded']);
  t.end();
});
