import fc from 'fast-check';
import t from 'tap';
import { findFolds, type ReceiverRouter } from '../../../../src/decision/route/conflicts/find-conflicts.js';
import { createRouteTable } from '../../../../src/decision/route/route-table.js';
import { routeOf } from '../route-samples.js';
import { compareWithModel, foldsOf, issuers, sequences, strict } from './fold-model.js';

const lax: ReceiverRouter = { ...strict, caseSensitive: false, strictSlash: false };

const cases = [
  {
    name: 'another case below',
    routes: ['GET /admin admin', 'GET /** admin,user'],
    expected: ['/admin < /**: GET /ADMIN'],
  },
  {
    name: 'another case as a parameter',
    routes: ['GET /o/search admin', 'GET /o/{id} user'],
    expected: ['/o/search < /o/{id}: GET /o/SEARCH'],
  },
  {
    name: 'a literal in two cases',
    routes: ['GET /Admin admin', 'GET /admin user,admin'],
    expected: ['/Admin < /admin: GET /admin'],
  },
  {
    name: 'a literal in two cases, each for others',
    routes: ['GET /Admin admin', 'GET /admin user'],
    expected: ['/Admin < /admin: GET /admin', '/admin < /Admin: GET /Admin'],
  },
  {
    name: 'a public literal in another case',
    routes: ['GET /Health admin', 'GET /health public'],
    expected: ['/Health < /health: GET /health'],
  },
  {
    name: 'a trailing slash below',
    routes: ['GET /7/8 admin', 'GET /7/** user'],
    expected: ['/7/8 < /7/**: GET /7/8/'],
  },
  {
    name: 'a trailing slash after a parameter',
    routes: ['GET /7/{x} admin', 'GET /7/{x}/ user'],
    expected: ['/7/{x} < /7/{x}/: GET /7/x/', '/7/{x}/ < /7/{x}: GET /7/x'],
  },
  { name: 'a trailing slash less', routes: ['GET /7/ admin', 'GET /{x} user'], expected: ['/7/ < /{x}: GET /7'] },
  {
    name: 'the beginning of what is below',
    routes: ['GET /7/** admin', 'GET /{x} user'],
    expected: ['/7/** < /{x}: GET /7'],
  },
  { name: 'deep below', routes: ['GET /7a/** admin', 'GET /** user'], expected: ['/7a/** < /**: GET /7A'] },
  {
    name: 'a parameter meets a literal',
    routes: ['GET /a/{x} admin', 'GET /{y}/b user'],
    expected: ['/a/{x} < /{y}/b: GET /A/b'],
  },
  { name: 'a method they share', routes: ['GET,PUT /a admin', 'PUT,POST /{x} user'], expected: ['/a < /{x}: PUT /A'] },
  { name: 'every method', routes: ['* /a admin', '* /{x} user'], expected: ['/a < /{x}: OTHER /A'] },
  {
    name: 'what takes some spellings',
    routes: ['GET /ab admin', 'GET /AB admin', 'GET /{x} user'],
    expected: ['/ab < /{x}: GET /Ab', '/AB < /{x}: GET /aB'],
  },
  { name: 'letters beyond ASCII', routes: ['GET /é admin', 'GET /{x} user'], expected: ['/é < /{x}: GET /É'] },
  {
    name: 'a dead end of a literal that the receiver leaves',
    routes: ['GET /ab/{p}/yy admin', 'GET /{r}/b/** user', 'GET /ab/B/zz admin'],
    expected: ['/ab/{p}/yy < /{r}/b/**: GET /AB/b/YY', '/ab/B/zz < /{r}/b/**: GET /AB/b/ZZ'],
  },
  {
    name: 'a dead end of a parameter that the receiver leaves',
    routes: ['GET /ab/** admin', 'GET /ab/{p}/q admin', 'GET /{r}/b/** user'],
    expected: ['/ab/** < /{r}/b/**: GET /AB/b/', '/ab/{p}/q < /{r}/b/**: GET /AB/b/Q'],
  },
  {
    name: 'what is below, in two cases',
    routes: ['GET /Ab/** admin', 'GET /ab/** user'],
    expected: ['/Ab/** < /ab/**: GET /ab/', '/ab/** < /Ab/**: GET /Ab/'],
  },
  {
    name: 'what is below meets parameters',
    routes: ['GET /ab/** admin', 'GET /{r}/{q} user'],
    expected: ['/ab/** < /{r}/{q}: GET /AB/x'],
  },
  {
    name: 'and parameters deeper down',
    routes: ['GET /ab/** admin', 'GET /{r}/{q}/{s} user'],
    expected: ['/ab/** < /{r}/{q}/{s}: GET /AB/x/x'],
  },
  { name: 'more restrictive below', routes: ['GET /admin admin,user', 'GET /** admin'], expected: [] },
  { name: 'public within protected', routes: ['GET /healthz public', 'GET /** user'], expected: [] },
  {
    name: 'a laxer literal beside a parameter',
    routes: ['GET /o/{id} admin', 'GET /o/search admin,user'],
    expected: [],
  },
  { name: 'a laxer path of its own', routes: ['GET /orders admin', 'GET /files user'], expected: [] },
  { name: 'other methods', routes: ['GET /admin admin', 'PUT /** user'], expected: [] },
  { name: 'the same approval', routes: ['GET /admin user', 'GET /** user'], expected: [] },
  { name: 'both public', routes: ['GET /a public', 'GET /** public'], expected: [] },
  {
    name: 'no letters and a slash of its own',
    routes: ['GET /7 admin', 'GET /7/ admin', 'GET /** user'],
    expected: [],
  },
  {
    name: 'for other callers each',
    routes: ['GET /o/{id} admin', 'GET /o/search user'],
    expected: ['/o/search < /o/{id}: GET /o/SEARCH'],
  },
  {
    name: 'every spelling taken away',
    routes: ['GET /7/8 admin', 'GET /7/{x} admin', 'GET /7/{x}/ admin', 'GET /** admin,user'],
    expected: [],
  },
  { name: 'one route with both', routes: ['GET /a user'], expected: [] },
];

t.test('folded spellings that reach a less restrictive route', (t) => {
  for (const { name, routes, expected } of cases) {
    t.same(foldsOf(routes, lax), expected, name);
    t.same(foldsOf(routes, strict), [], `${name}, at a strict router`);
  }
  t.end();
});

const singleUse = {
  key: null,
  singleUse: true,
  operation: 'o',
  retentionMs: 1,
  fields: [],
  storeHeaders: new Set<string>(),
  releaseOn: new Set<number>(),
  receiver: 'plain',
  maxBodyBytes: 1,
  maxStoredResponseBytes: 1,
} as const;

t.test('a route that takes used tokens is less restrictive than one that does not', (t) => {
  const table = createRouteTable([
    routeOf('POST /a', ['user'], { reservation: singleUse }),
    routeOf('POST /{x}', ['user']),
  ]);
  t.same(
    findFolds(table, lax, issuers).folds.map(({ harm, spelling }) => [harm, ...spelling]),
    [['less_restrictive', 'A']],
  );
  t.end();
});

t.test('only what the upstream does not declare strict is folded', (t) => {
  const routes = ['GET /7/a admin', 'GET /7/** user'];
  t.same(foldsOf(routes, { ...strict, strictSlash: false }), ['/7/a < /7/**: GET /7/a/']);
  t.same(foldsOf(routes, { ...strict, caseSensitive: false }), ['/7/a < /7/**: GET /7/A']);
  t.same(foldsOf(['GET /a/ admin', 'GET /{x}/ user'], { ...strict, caseSensitive: false }), ['/a/ < /{x}/: GET /A/']);
  t.end();
});

/** Every case of every literal below, and text that no path writes. */
const plainTexts = ['a', 'A', '7', 'bc', 'Bc', 'BC', 'zz', 'a.zz', 'A.ZZ'];
const formats = ['.zz', 'A.zz', '7.zz', 'bc.zz', 'Bc.zz', 'a.zz.zz'];
const dotted = ['a.', 'A.', '7.', 'bc.', 'Bc.', 'a.zz.'];

function requestsFor({ formatSuffix, trailingDots }: ReceiverRouter): readonly (readonly string[])[] {
  const texts = [...plainTexts, ...(formatSuffix ? formats : []), ...(trailingDots ? dotted : [])];
  // Paths name two segments at most: what a third one says matters to none, unless it is nothing but a format.
  const thirds = ['zz', ...(formatSuffix ? ['.zz'] : [])];
  const asked = sequences(texts, 2).flatMap((parts) =>
    parts.length === 2 ? [parts, ...thirds.map((third) => [...parts, third])] : [parts],
  );
  return [[''], ...asked.flatMap((parts) => [parts, [...parts, '']])];
}

const part = fc.constantFrom('a', 'A', '7', 'bc', 'Bc', 'a.zz', '{x}', '{x}', '{x}');
const path = fc
  .tuple(fc.array(part, { minLength: 1, maxLength: 2 }), fc.constantFrom('', '', '/', '/**'))
  .map(([parts, end]) => `/${parts.join('/')}${end}`);
const routes = fc.array(
  fc.tuple(
    fc.constantFrom('GET', 'GET', 'PUT', 'HEAD', '*'),
    fc.oneof({ weight: 6, arbitrary: path }, { weight: 1, arbitrary: fc.constantFrom('/', '/**') }),
    fc.constantFrom('public', 'u', 'v', 'u,v'),
  ),
  { minLength: 2, maxLength: 6 },
);
const receivers = fc.record({
  caseSensitive: fc.boolean(),
  strictSlash: fc.boolean(),
  formatSuffix: fc.boolean(),
  trailingDots: fc.boolean(),
  headAsGet: fc.boolean(),
  optionsAsGet: fc.constant(false),
  pathInfo: fc.boolean(),
  optOuts: fc.constant(false),
});

t.test('finds what asking for every spelling would find, and nothing else', (t) => {
  fc.assert(
    fc.property(routes, receivers, (specs, receiver) => {
      compareWithModel(specs, receiver, requestsFor(receiver));
    }),
    {
      numRuns: 100,
      examples: [
        // Only a third segment tells these two apart.
        [
          [
            ['GET', '/a/a', 'public'],
            ['HEAD', '/a/a/**', 'public'],
            ['GET', '/a/**', 'u'],
          ],
          {
            caseSensitive: false,
            strictSlash: false,
            formatSuffix: true,
            trailingDots: true,
            headAsGet: true,
            optionsAsGet: false,
            pathInfo: true,
            optOuts: false,
          },
        ],
      ],
    },
  );
  t.end();
});

t.test('5,000 routes are checked within the work limit', (t) => {
  const all = Array.from({ length: 2_500 }, (_, number) => [
    routeOf(`GET /s${number}/{id}`, [`u${number}`]),
    routeOf(`GET /s${number}/{id}/**`, [`u${number}`]),
  ]).flat();
  t.same(findFolds(createRouteTable(all), lax, issuers), { folds: [], unfinished: false, cutShort: [] });
  t.end();
});

t.test('a config that overlaps too much is not called safe unchecked', (t) => {
  const all = Array.from({ length: 2_500 }, (_, number) => [
    routeOf(`GET /a${number}/{x}`, [`u${number}`]),
    routeOf(`GET /{y}/b${number}`, [`v${number}`]),
  ]).flat();
  t.same(findFolds(createRouteTable(all), { ...strict, strictSlash: false }, issuers), {
    folds: [],
    unfinished: true,
    cutShort: [],
  });
  t.end();
});

t.test('a pair of routes is told of once, however many paths they have', (t) => {
  const table = createRouteTable([routeOf('GET /a /b /c', ['admin']), routeOf('GET /**', ['user'])]);
  t.equal(findFolds(table, lax, issuers).folds.length, 1);
  t.end();
});

t.test('what is only warned of never ends the search for what is an error', (t) => {
  const keyed = (text: string, operation: string): ReturnType<typeof routeOf> =>
    routeOf(text, ['u'], { reservation: { ...singleUse, key: 'optional', singleUse: false, operation } });
  const shop = Array.from({ length: 60 }, (_, number) => keyed(`POST /shop/k${number}`, `k${number}`));
  const table = createRouteTable([
    ...shop,
    keyed('POST /shop/{x}', 'any'),
    routeOf('GET /admin', ['root']),
    routeOf('GET /{page}', 'public'),
  ]);
  const { folds, unfinished } = findFolds(table, lax, issuers);
  t.equal(folds.filter(({ harm }) => harm === 'keys_apart').length, 50, 'a bound of their own');
  t.match(
    folds.filter(({ harm }) => harm === 'less_restrictive'),
    [{ guard: { route: { name: 'GET /admin' } }, reached: { route: { name: 'GET /{page}' } } }],
  );
  t.equal(unfinished, false);
  const scripts = { ...strict, caseSensitive: false, pathInfo: true };
  const routed = createRouteTable([
    keyed('POST /shop/k', 'k'),
    keyed('POST /shop/{x}', 'any'),
    routeOf('GET /7', ['root']),
    routeOf('GET /**', 'public'),
  ]);
  t.same(
    findFolds(routed, scripts, issuers).folds.map(({ harm, kind }) => `${harm} ${kind}`),
    ['keys_apart spelling', 'less_restrictive routed'],
    'what a script routes is looked for behind a mere warning too',
  );
  t.end();
});

t.test('each kind of advice has a bound of its own', (t) => {
  const receiver = { ...strict, optionsAsGet: true, pathInfo: true };
  const all = Array.from({ length: 60 }, (_, number) => [
    routeOf(`GET /a${number}`, [`u${number}`]),
    routeOf(`OPTIONS /a${number}`, 'public'),
  ]).flat();
  const table = createRouteTable([...all, routeOf('GET /admin', ['root']), routeOf('GET /{x}/{y}', 'public')]);
  const kinds = findFolds(table, receiver, issuers).folds.map(({ kind }) => kind);
  t.equal(kinds.filter((kind) => kind === 'options').length, 50);
  t.equal(kinds.filter((kind) => kind === 'routed').length, 1);
  t.end();
});

t.test('no more folds are told of than anybody reads', (t) => {
  const all = Array.from({ length: 100 }, (_, number) => routeOf(`GET /a${number}`, [`u${number}`]));
  const { folds } = findFolds(createRouteTable([...all, routeOf('GET /**', 'public')]), lax, issuers);
  t.equal(folds.length, 50);
  t.end();
});
