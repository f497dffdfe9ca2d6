import fc from 'fast-check';
import t from 'tap';
import type { Limits } from '../../../src/decision/route/policy.js';
import { problemOf } from '../../../src/decision/http/problem-details.js';
import { limitDenial, limitKey, takeRequest } from '../../../src/decision/route/rate-limit.js';
import { principal } from '../samples.js';

const rate = { perSecond: 10, burst: 3, shared: false };

t.test('a bucket of a burst that fills at the rate', (t) => {
  const rows = [
    { atMs: 0, waitMs: 0 },
    { atMs: 0, waitMs: 0 },
    { atMs: 0, waitMs: 0 },
    { atMs: 0, waitMs: 100 },
    { atMs: 99, waitMs: 1 },
    { atMs: 100, waitMs: 0 },
    { atMs: 100, waitMs: 100 },
    { atMs: 400, waitMs: 0 },
    { atMs: 400, waitMs: 0 },
    { atMs: 400, waitMs: 0 },
    { atMs: 400, waitMs: 100 },
  ];
  let full: number | null = null;
  for (const [index, { atMs, waitMs }] of rows.entries()) {
    const taken = takeRequest(full, rate, 1_000_000 + atMs);
    t.equal(Math.round(taken.waitMs), waitMs, `${String(index)} at ${String(atMs)}`);
    full = taken.fullAtMs;
  }
  t.end();
});

t.test('a clock that was set back keeps nobody out for longer than an empty bucket does', (t) => {
  t.equal(takeRequest(10_000_000, rate, 0).waitMs, 100);
  t.end();
});

t.test('whatever comes when, no more pass than the burst and what was filled since', (t) => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.01, max: 1_000, noNaN: true }),
      fc.integer({ min: 1, max: 50 }),
      fc.array(fc.integer({ min: 0, max: 2_000 }), { maxLength: 200 }),
      (perSecond, burst, gaps) => {
        let [nowMs, full, passed]: [number, number | null, number] = [0, null, 0];
        for (const gap of gaps) {
          nowMs += gap;
          const { waitMs, fullAtMs } = takeRequest(full, { perSecond, burst, shared: false }, nowMs);
          full = fullAtMs;
          if (waitMs === 0) passed += 1;
          if (waitMs < 0 || waitMs > 1_000 / perSecond + 1e-6) return false;
        }
        return passed <= burst + (perSecond * nowMs) / 1_000 + 1e-6;
      },
    ),
  );
  t.end();
});

t.test('callers and routes are counted apart, and named by hashes', (t) => {
  const limits: Limits = { rate, maxInFlight: null, route: null };
  const keys = [
    limitKey(principal(), limits),
    limitKey(principal({ subject: 'other' }), limits),
    limitKey(principal({ issuer: 'other' }), limits),
    limitKey(principal({ kind: 'session' }), limits),
    limitKey(principal(), { ...limits, route: 'a' }),
    limitKey(principal(), { ...limits, route: '' }),
  ].map(({ principal: who, scope }) => `${who}.${scope}`);
  t.equal(new Set(keys).size, keys.length);
  for (const key of keys) t.match(key, /^[\w-]{43}\.[\w-]{43}$/);
  t.same(limitKey(principal({ permissions: [], tokenId: 'x' }), limits), limitKey(principal(), limits));
  t.end();
});

t.test('draft-ietf-httpapi-ratelimit-headers: what a 429 says of the limits', (t) => {
  const both: Limits = { rate: { perSecond: 2, burst: 5, shared: false }, maxInFlight: 7, route: null };
  const fieldsOf = (...values: Parameters<typeof limitDenial>): Record<string, string> => {
    const { status, headers: fields, body } = problemOf(limitDenial(...values), 'r');
    t.equal(status, 429);
    t.match(body, values[0] === 'rate' ? 'urn:sallyport:rate-limited' : 'urn:sallyport:too-many-in-flight');
    return Object.fromEntries(
      fields.flatMap((name, index) => (index % 2 === 0 ? [[name, fields[index + 1] ?? '']] : [])),
    );
  };
  const policy = '"requests";q=5;w=3, "in-flight";q=7;qu="concurrent-requests"';
  t.match(fieldsOf('rate', both, 1_001), {
    'Retry-After': '2',
    'RateLimit-Policy': policy,
    RateLimit: '"requests";r=0;t=2',
  });
  t.match(fieldsOf('rate', both, 1_000), { 'Retry-After': '1' });
  t.match(fieldsOf('rate', { ...both, maxInFlight: null }, 0.1), {
    'Retry-After': '1',
    'RateLimit-Policy': '"requests";q=5;w=3',
    RateLimit: '"requests";r=0;t=1',
  });
  t.match(fieldsOf('in_flight', both, 0), {
    'Retry-After': '1',
    'RateLimit-Policy': policy,
    RateLimit: '"in-flight";r=0;t=1',
  });
  t.match(fieldsOf('in_flight', { ...both, rate: null }, 0), {
    'RateLimit-Policy': '"in-flight";q=7;qu="concurrent-requests"',
  });
  t.match(fieldsOf('rate', { ...both, rate: { perSecond: 100, burst: 1, shared: false }, maxInFlight: null }, 1), {
    'RateLimit-Policy': '"requests";q=1;w=1',
  });
  t.end();
});

t.test('limits that were changed count at once', (t) => {
  const slow = { perSecond: 0.1, burst: 5, shared: false };
  const full = takeRequest(null, slow, 0).fullAtMs;
  const first = takeRequest(full, rate, 0);
  t.equal(takeRequest(first.fullAtMs, rate, 101).waitMs, 0);
  t.end();
});
