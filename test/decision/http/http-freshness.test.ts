import t from 'tap';
import {
  keepingRules,
  lifetimeMs,
  staleAllowanceMs,
  type CacheHeaders,
} from '../../../src/decision/http/http-freshness.js';

const none: CacheHeaders = { cacheControl: null, age: null, expires: null, date: null };
const date = 'Tue, 15 Nov 1994 08:12:31 GMT';

const rows: { name: string; input: Partial<CacheHeaders>; expected: number | null }[] = [
  { name: 'nothing said', input: {}, expected: null },
  { name: 'other directives only', input: { cacheControl: 'public, must-revalidate' }, expected: null },
  { name: 'max-age', input: { cacheControl: 'max-age=60' }, expected: 60_000 },
  { name: 'what the SDK of the Core sends', input: { cacheControl: 'max-age=60, must-revalidate' }, expected: 60_000 },
  { name: 'in any case, among others', input: { cacheControl: 'Public,  Max-Age=60 ,x=1' }, expected: 60_000 },
  { name: 'quoted', input: { cacheControl: 'max-age="60"' }, expected: 60_000 },
  { name: 'max-age of zero', input: { cacheControl: 'max-age=0' }, expected: 0 },
  { name: 'a longer name is another', input: { cacheControl: 'x-max-age=60' }, expected: null },
  { name: 's-maxage is for shared caches', input: { cacheControl: 's-maxage=60' }, expected: null },
  {
    name: 'max-age within a quoted string is text',
    input: { cacheControl: 'x="a, max-age=5", max-age=60' },
    expected: 60_000,
  },
  { name: 'an escaped quote does not end a string', input: { cacheControl: 'x="a\\", max-age=5"' }, expected: null },
  { name: 'beyond what fits', input: { cacheControl: `max-age=${'9'.repeat(30)}` }, expected: 2 ** 31 * 1000 },
  { name: 'not a number', input: { cacheControl: 'max-age=soon' }, expected: 0 },
  { name: 'negative', input: { cacheControl: 'max-age=-1' }, expected: 0 },
  { name: 'a fraction', input: { cacheControl: 'max-age=1.5' }, expected: 0 },
  { name: 'without a value', input: { cacheControl: 'max-age' }, expected: 0 },
  { name: 'said twice: the strictest', input: { cacheControl: 'max-age=60, max-age=5' }, expected: 5_000 },
  { name: 'no-store', input: { cacheControl: 'max-age=60, no-store' }, expected: 0 },
  { name: 'no-cache', input: { cacheControl: 'no-cache, max-age=60' }, expected: 0 },
  {
    name: 'no-cache for one field counts for all',
    input: { cacheControl: 'no-cache="set-cookie", max-age=60' },
    expected: 0,
  },
  { name: 'time spent in caches on the way', input: { cacheControl: 'max-age=60', age: '20' }, expected: 40_000 },
  { name: 'spent to the end', input: { cacheControl: 'max-age=60', age: '60' }, expected: 0 },
  { name: 'spent beyond it', input: { cacheControl: 'max-age=60', age: '61' }, expected: 0 },
  { name: 'an Age that is none', input: { cacheControl: 'max-age=60', age: '-5' }, expected: 60_000 },
  { name: 'of several ages the first', input: { cacheControl: 'max-age=60', age: '10, 50' }, expected: 50_000 },
  { name: 'Expires', input: { expires: 'Tue, 15 Nov 1994 08:13:31 GMT', date }, expected: 60_000 },
  { name: 'Expires in the past', input: { expires: 'Tue, 15 Nov 1994 08:11:31 GMT', date }, expected: 0 },
  { name: 'Expires that is no date', input: { expires: '0', date }, expected: 0 },
  { name: 'Expires with more before it', input: { expires: 'x Tue, 15 Nov 1994 08:13:31 GMT', date }, expected: 0 },
  { name: 'Expires with more behind it', input: { expires: 'Tue, 15 Nov 1994 08:13:31 GMT+1', date }, expected: 0 },
  {
    name: 'a Date with more behind it',
    input: { expires: date, date: 'Tue, 15 Nov 1994 08:11:31 GMT+1' },
    expected: 0,
  },
  { name: 'Expires on a day that is none', input: { expires: 'Tue, 99 Nov 1994 08:13:31 GMT', date }, expected: 0 },
  { name: 'Expires without Date', input: { expires: date }, expected: 0 },
  {
    name: 'max-age wins over Expires',
    input: { cacheControl: 'max-age=5', expires: 'Tue, 15 Nov 1994 08:13:31 GMT', date },
    expected: 5_000,
  },
];

t.test('cache headers are honoured', (t) => {
  for (const { name, input, expected } of rows) {
    t.equal(keepingRules({ ...none, ...input }).freshnessMs, expected, name);
  }
  t.end();
});

t.test('RFC 9111 5.2.2.2: whether a response forbids its use past its lifetime', (t) => {
  const revalidation: { name: string; cacheControl: string | null; expected: boolean }[] = [
    { name: 'nothing said', cacheControl: null, expected: false },
    { name: 'only an age', cacheControl: 'max-age=60', expected: false },
    { name: 'what the SDK of the Core sends', cacheControl: 'max-age=60, must-revalidate', expected: true },
    { name: 'in any case, in front', cacheControl: 'Must-Revalidate,max-age=60', expected: true },
    { name: 'without an age', cacheControl: 'must-revalidate', expected: true },
    { name: 'no-cache forbids it too', cacheControl: 'no-cache', expected: true },
    { name: 'and so does no-store', cacheControl: 'no-store', expected: true },
    { name: 'proxy-revalidate is for shared caches', cacheControl: 'max-age=60, proxy-revalidate', expected: false },
    { name: 'a longer name is another', cacheControl: 'x-must-revalidate', expected: false },
    { name: 'within a quoted string it is text', cacheControl: 'x="a, must-revalidate"', expected: false },
  ];
  for (const { name, cacheControl, expected } of revalidation) {
    t.equal(keepingRules({ ...none, cacheControl }).mustRevalidate, expected, name);
  }
  t.end();
});

t.test("how long keys serve past their lifetime: the operator's word before the issuer's", (t) => {
  const allowances: { maxStaleMs: number | null; mustRevalidate: boolean; expected: number }[] = [
    { maxStaleMs: null, mustRevalidate: false, expected: 3_600_000 },
    { maxStaleMs: null, mustRevalidate: true, expected: 300_000 },
    { maxStaleMs: 0, mustRevalidate: false, expected: 0 },
    { maxStaleMs: 7_200_000, mustRevalidate: true, expected: 7_200_000 },
  ];
  for (const { maxStaleMs, mustRevalidate, expected } of allowances) {
    t.equal(staleAllowanceMs(maxStaleMs, mustRevalidate), expected);
  }
  t.end();
});

t.test('within min_age and max_age', (t) => {
  const bounds = { minAgeMs: 10_000, maxAgeMs: 600_000 };
  const cases: { freshness: number | null; expected: number }[] = [
    { freshness: null, expected: 600_000 },
    { freshness: 0, expected: 10_000 },
    { freshness: 9_999, expected: 10_000 },
    { freshness: 10_000, expected: 10_000 },
    { freshness: 10_001, expected: 10_001 },
    { freshness: 600_000, expected: 600_000 },
    { freshness: 600_001, expected: 600_000 },
  ];
  for (const { freshness, expected } of cases) t.equal(lifetimeMs(freshness, bounds), expected, String(freshness));
  t.end();
});

t.test('a long value is read in linear time', (t) => {
  const quoted = ['x="'.repeat(5_000), '"\\'.repeat(8_000), `x="${'\\"'.repeat(8_000)}`];
  const bare = [
    'a,'.repeat(8_000),
    ' '.repeat(16_000),
    `a${' '.repeat(16_000)}b`,
    `${' '.repeat(16_000)},`,
    ', '.repeat(8_000),
  ];
  for (const value of [...quoted, ...bare]) {
    t.same(keepingRules({ ...none, cacheControl: value }), { freshnessMs: null, mustRevalidate: false });
  }
  t.end();
});
