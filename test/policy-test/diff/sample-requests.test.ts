import fc from 'fast-check';
import t from 'tap';
import { readRoutePath } from '../../../src/config/sections/routes/route-path.js';
import { readTarget } from '../../../src/decision/http/request-target.js';
import { createRouteTable, placeOf, type RouteTable } from '../../../src/decision/route/route-table.js';
import { methodsOf, spellingsOf } from '../../../src/policy-test/diff/sample-requests.js';
import { route } from '../../decision/samples.js';

function tableOf(paths: readonly string[], methods: ReadonlySet<string> | null = new Set(['GET'])): RouteTable {
  return createRouteTable(
    paths.map((text) => {
      const read = readRoutePath(text);
      if (!read.ok) throw new Error(`${text}: ${read.error.message}`);
      return route({ name: text, paths: [read.value], methods });
    }),
  );
}

/** The paths that take a request, one for each table. */
function taken(tables: readonly RouteTable[], segments: readonly string[]): string {
  return tables.map((table) => placeOf(table, 'GET', segments)?.path.text ?? 'none').join(' | ');
}

t.test('every place where two tables part is spelt out', async (t) => {
  const { all, complete } = spellingsOf([
    tableOf(['/orders', '/orders/{id}']),
    tableOf(['/orders/{id}', '/orders/export', '/files/**', '/a%20b:c/']),
  ]);
  t.ok(complete);
  t.same(all.map(({ text }) => text).toSorted(), [
    '/',
    '/**',
    '/a%20b:c',
    '/a%20b:c/',
    '/a%20b:c/**',
    '/files',
    '/files/',
    '/files/**',
    '/orders',
    '/orders/',
    '/orders/export',
    '/orders/export/',
    '/orders/export/**',
    '/orders/{any}',
    '/orders/{any}/',
    '/orders/{any}/**',
  ]);
  for (const { target, segments } of all) {
    const read = readTarget(target, 1_000);
    t.same(read.ok && read.value.segments, segments, target);
  }
});

const segment = fc.constantFrom('a', 'b', 'x', '{p}');
const path = fc
  .tuple(fc.array(segment, { maxLength: 3 }), fc.constantFrom('', '/', '/**'))
  .map(([segments, end]) => `${segments.map((text, at) => `/${text === '{p}' ? `{p${at}}` : text}`).join('')}${end}`)
  .filter((text) => text !== '');
const table = fc
  .uniqueArray(path, { minLength: 1, maxLength: 6, selector: (text) => text })
  .map((paths) => tableOf(paths));
const request = fc
  .tuple(fc.array(fc.constantFrom('a', 'b', 'x', 'xx', 'q'), { maxLength: 5 }), fc.boolean())
  .map(([segments, slash]) => (slash || segments.length === 0 ? [...segments, ''] : segments));

t.test('whatever is asked, some spelling is matched like it by both tables', async (t) => {
  fc.assert(
    fc.property(table, table, request, (one, other, segments) => {
      const tables = [one, other];
      const spelt = new Set(spellingsOf(tables).all.map((each) => taken(tables, each.segments)));
      return spelt.has(taken(tables, segments));
    }),
    { numRuns: 3_000 },
  );
  t.pass('3,000 pairs of tables');
});

t.test('methods: those that are named, and one for all the others that a parser knows', async (t) => {
  t.same(methodsOf([tableOf(['/a']), tableOf(['/b'], new Set(['POST']))]), { named: ['GET', 'POST'], other: 'PUT' });
  t.same(methodsOf([tableOf(['/a'], null)]), { named: [], other: 'GET' });
});

t.test('more paths than can be listed are not taken for all of them', async (t) => {
  const wide = Array.from({ length: 60 }, (_, index) => `/{a}/l${index}/{b}/{c}`);
  const { all, complete } = spellingsOf([
    tableOf([...wide, ...Array.from({ length: 600 }, (_, index) => `/k${index}/{x}/{y}/m${index}`)]),
  ]);
  t.notOk(complete);
  t.ok(all.length >= 50_000);
});
