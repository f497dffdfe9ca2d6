import t from 'tap';
import {
  createFoldedTable,
  foldedPath,
  foldedPlaces,
  foldText,
  pathsThatMeet,
  type Folding,
} from '../../../../src/decision/route/conflicts/folded-table.js';
import { routeOf, routePath, segmentsOf } from '../route-samples.js';

const both: Folding = { case: true, slash: true, dots: false, suffix: false, pathInfo: false };
const neither: Folding = { case: false, slash: false, dots: false, suffix: false, pathInfo: false };

t.test('a trailing slash is left out where the router ignores it, but for that of /', (t) => {
  const rows = [
    { path: '/a', expected: '/a' },
    { path: '/a/', expected: '/a' },
    { path: '/a/{x}/', expected: '/a/{x}' },
    { path: '/a/**', expected: '/a/**' },
    { path: '/', expected: '/' },
    { path: '/{x}', expected: '/{x}' },
    { path: '/**', expected: '/**' },
  ];
  for (const { path, expected } of rows) {
    t.same(foldedPath(routePath(path), both), routePath(expected).segments, path);
    t.same(foldedPath(routePath(path), neither), routePath(path).segments, `${path}, at a strict router`);
  }
  t.end();
});

t.test('which paths a router that folds takes a request for', (t) => {
  const table = createFoldedTable(
    ['GET /', 'GET /A', 'GET /a/', 'GET /{x}/b', 'GET /a/**', 'PUT /**'].map((text) => routeOf(text)),
    both,
  );
  const rows: { request: string; method?: string; expected: readonly string[] }[] = [
    { request: '/', expected: ['/'] },
    { request: '/', method: 'PUT', expected: ['/**'] },
    { request: '/a', expected: ['/A', '/a/'] },
    { request: '/A/', expected: ['/A', '/a/'] },
    { request: '/b', expected: [] },
    { request: '/b', method: 'PUT', expected: ['/**'] },
    { request: '/c/B/', expected: ['/{x}/b'] },
    { request: '/a/b', expected: ['/a/**'] },
    { request: '/A/b/c', expected: ['/a/**'] },
    { request: '/c/d', expected: [] },
    { request: '/a', method: 'DELETE', expected: [] },
  ];
  for (const { request, method = 'GET', expected } of rows) {
    t.same(
      foldedPlaces(table, method, segmentsOf(request)).map(({ path }) => path.text),
      expected,
      `${method} ${request}`,
    );
  }
  t.end();
});

t.test('which paths meet one and are no more specific to a router that folds', (t) => {
  const paths = ['/', '/A', '/a/', '/a/**', '/A/**', '/{x}', '/{x}/b', '/{x}/**', '/**', '/{x}/{y}/c', '/a/b'];
  const meeting = (path: string, folding: Folding): readonly string[] => {
    const table = createFoldedTable(
      paths.map((text) => routeOf(`GET ${text}`)),
      folding,
    );
    const place = table.placed.find((one) => one.path.text === path);
    if (place === undefined) throw new Error(path);
    return [...new Set([...pathsThatMeet(table, place)].map((one) => one.path.text))].sort();
  };
  const rows: { path: string; lax: readonly string[]; strict: readonly string[] }[] = [
    { path: '/', lax: ['/', '/**'], strict: ['/', '/**'] },
    { path: '/A', lax: ['/**', '/A', '/A/**', '/a/', '/a/**', '/{x}', '/{x}/**'], strict: ['/**', '/A', '/{x}'] },
    {
      path: '/a/**',
      lax: ['/**', '/A/**', '/a/**', '/{x}', '/{x}/**', '/{x}/b', '/{x}/{y}/c'],
      strict: ['/**', '/a/**', '/{x}/**', '/{x}/b', '/{x}/{y}/c'],
    },
    { path: '/{x}', lax: ['/**', '/{x}', '/{x}/**'], strict: ['/**', '/{x}'] },
    { path: '/**', lax: ['/**'], strict: ['/**'] },
    {
      path: '/a/b',
      lax: ['/**', '/A/**', '/a/**', '/a/b', '/{x}/**', '/{x}/b'],
      strict: ['/**', '/a/**', '/a/b', '/{x}/**', '/{x}/b'],
    },
  ];
  for (const { path, lax, strict } of rows) {
    t.same(meeting(path, both), [...lax].sort(), path);
    t.same(meeting(path, neither), [...strict].sort(), `${path}, at a strict router`);
  }
  t.end();
});

t.test(
  'dots and blanks at the end, and blanks at the beginning, are left out where the router ignores them, unless nothing else is there',
  (t) => {
    const dots: Folding = { ...neither, dots: true };
    for (const [text, folded] of [
      ['a.', 'a'],
      ['a ', 'a'],
      ['a. .', 'a'],
      ['a.b', 'a.b'],
      ['.a', '.a'],
      [' a', 'a'],
      ['  a .', 'a'],
      [' .a', '.a'],
      [' .', ' .'],
      ['...', '...'],
      [' ', ' '],
      ['A.', 'A'],
    ] as const) {
      t.equal(foldText(text, dots), folded, JSON.stringify(text));
      t.equal(foldText(text, neither), text);
    }
    t.equal(foldText('A.', { ...dots, case: true }), 'a');
    t.end();
  },
);

t.test('letters are alike that any router takes for one, beyond ASCII too', (t) => {
  const rows: readonly (readonly [string, string])[] = [
    ['ADMIN', 'admin'],
    ['adm\u0130n', 'admin'], // capital I with dot: i to Java
    ['adm\u0131n', 'admin'], // small i without dot: I, once it is a capital
    ['admi\u0307n', 'admin'], // what JavaScript makes of the first
    ['u\u017fers', 'users'], // long s
    ['\u212aey', 'key'], // Kelvin sign
    ['ΑΣ', 'ας'],
    ['STRA\u1e9eE', 'straße'],
    ['ΰ\u0149', 'ΰ\u0149'], // capitals of these are several letters
    ['\u{10400}', '\u{10428}'],
    ['É', 'é'],
  ];
  for (const [one, other] of rows) {
    t.equal(foldText(one, both), foldText(other, both), `${one} ${other}`);
    t.equal(foldText(foldText(one, both), both), foldText(one, both));
    t.equal(foldText(one, neither), one);
  }
  for (const [one, other] of [
    ['straße', 'strasse'],
    ['é', 'e'],
    ['ŉ', 'n'],
  ] as const) {
    t.not(foldText(one, both), foldText(other, both), `${one} ${other}`);
  }
  t.end();
});

t.test('a name of many suffixes costs no more than its length and the routes', async (t) => {
  const lax: Folding = { case: true, slash: true, dots: true, suffix: true, pathInfo: true };
  const table = createFoldedTable([routeOf('GET /Admin'), routeOf('GET /\u00e9.A')], lax);
  const { literals } = table.root;
  const known = new Map(literals);
  const asked = t.capture(literals, 'get', (text: string) => known.get(text));
  for (const [name, expected, most] of [
    [`\u00e9${'.a'.repeat(200)}`, ['/\u00e9.A'], 4],
    [`admin${'.'.repeat(400)}x`, ['/Admin'], 2],
    [`admin${' .'.repeat(200)}x`, ['/Admin'], 2],
    [`${'.'.repeat(400)}x`, [], 7],
  ] as const) {
    const raised = t.capture(String.prototype, 'toUpperCase', function (this: unknown) {
      return String(this).toLocaleUpperCase('en');
    });
    const found = foldedPlaces(table, 'GET', [name]);
    raised.restore();
    t.same(
      found.map(({ path }) => path.text),
      expected,
      name.slice(0, 9),
    );
    t.ok(raised().length <= name.length, 'letters that are folded');
    t.ok(asked().length <= most, 'names that are looked for');
  }
});
