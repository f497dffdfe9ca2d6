import fc from 'fast-check';
import t from 'tap';
import type { Route, RoutePath } from '../../../../src/decision/route/policy.js';
import { findFolds, type ReceiverRouter } from '../../../../src/decision/route/conflicts/find-conflicts.js';
import { isLessRestrictive } from '../../../../src/decision/route/conflicts/compare-access.js';
import { createRouteTable } from '../../../../src/decision/route/route-table.js';
import { compareSpecificity, naiveMatch, pathTakes, routeOf } from '../route-samples.js';

const strict: ReceiverRouter = {
  caseSensitive: true,
  strictSlash: true,
  formatSuffix: false,
  trailingDots: false,
  headAsGet: false,
};
const lax: ReceiverRouter = { ...strict, caseSensitive: false, strictSlash: false };
const issuers = ['core'];

/** `name subjects`: many subjects are less restrictive than few. */
function foldsOf(texts: readonly string[], receiver: ReceiverRouter): readonly string[] {
  const routes = texts.map((text) => {
    const [method = '', path = '', who = ''] = text.split(' ');
    return routeOf(`${method} ${path}`, who === 'public' ? 'public' : who.split(','));
  });
  return findFolds(createRouteTable(routes), receiver, issuers).folds.map(
    ({ guard, reached, method, spelling }) =>
      `${guard.path.text} < ${reached.path.text}: ${method} /${spelling.join('/')}`,
  );
}

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

t.test('a route that takes used tokens is less restrictive than one that does not', (t) => {
  const reservation = {
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
  const table = createRouteTable([routeOf('POST /a', ['user'], { reservation }), routeOf('POST /{x}', ['user'])]);
  t.same(
    findFolds(table, lax, issuers).folds.map(({ harm, spelling }) => [harm, ...spelling]),
    [['less_restrictive', 'A']],
  );
  t.end();
});

const endingCases = [
  {
    name: 'another format',
    routes: ['GET /o/admin admin', 'GET /o/{id} user'],
    formats: ['/o/admin < /o/{id}: GET /o/admin.x'],
    dots: ['/o/admin < /o/{id}: GET /o/admin.'],
  },
  {
    name: 'below',
    routes: ['GET /o/admin admin', 'GET /o/** user'],
    formats: ['/o/admin < /o/**: GET /o/admin.x'],
    dots: ['/o/admin < /o/**: GET /o/admin.'],
  },
  {
    name: 'a format that a route writes',
    routes: ['GET /o/admin admin', 'GET /o/admin.json user'],
    formats: ['/o/admin < /o/admin.json: GET /o/admin.json'],
    dots: [],
  },
  {
    name: 'a dot that a route writes',
    routes: ['GET /o/admin. user', 'GET /o/admin admin'],
    formats: [],
    dots: ['/o/admin. < /o/admin: GET /o/admin', '/o/admin < /o/admin.: GET /o/admin.'],
  },
  {
    name: 'before the last segment',
    routes: ['GET /a/b admin', 'GET /{x}/b user'],
    formats: [],
    dots: ['/a/b < /{x}/b: GET /a./b'],
  },
  {
    name: 'below what has an ending',
    routes: ['GET /a/** admin', 'GET /{x}/** user'],
    formats: [],
    dots: ['/a/** < /{x}/**: GET /a./'],
  },
  { name: 'more restrictive', routes: ['GET /o/open public', 'GET /o/{id} user'], formats: [], dots: [] },
  {
    name: 'a version is a format to such a router',
    routes: ['GET /v1 admin', 'GET /v1.2 user'],
    formats: ['/v1 < /v1.2: GET /v1.2'],
    dots: [],
  },
  { name: 'nothing before the dot', routes: ['GET /{x} admin', 'GET /.x admin'], formats: [], dots: [] },
];

t.test('formats, dots and blanks at the end, that reach a less restrictive route', (t) => {
  for (const { name, routes, formats, dots } of endingCases) {
    t.same(foldsOf(routes, { ...strict, formatSuffix: true }), formats, name);
    t.same(foldsOf(routes, { ...strict, trailingDots: true }), dots, `${name}, dots`);
    t.same(foldsOf(routes, strict), [], `${name}, at a strict router`);
  }
  t.end();
});

t.test('HEAD that reaches a less restrictive route than GET does', (t) => {
  const asGet = { ...strict, headAsGet: true };
  const cases = [
    { routes: ['GET /r/secret root', 'GET,HEAD /r/** root,user'], expected: ['/r/secret < /r/**: HEAD /r/secret'] },
    { routes: ['GET /r/{id} root', 'HEAD /r/{id} public'], expected: ['/r/{id} < /r/{id}: HEAD /r/x'] },
    { routes: ['GET /r/secret root', '* /** public'], expected: ['/r/secret < /**: HEAD /r/secret'] },
    { routes: ['GET /r/** root', 'HEAD /r/list public'], expected: ['/r/** < /r/list: HEAD /r/list'] },
    { routes: ['GET,HEAD /r/secret root', 'GET,HEAD /r/** root,user'], expected: [] },
    { routes: ['GET /r/secret root', 'GET /r/** user'], expected: [] },
    { routes: ['POST /r/secret root', 'HEAD /r/** user'], expected: [] },
    { routes: ['GET /r/open public', 'GET,HEAD /r/** user'], expected: [] },
    { routes: ['HEAD /r/secret root', 'GET /r/** root,user'], expected: [] },
    { routes: ['HEAD /r/secret root', 'GET /r/** user'], expected: ['/r/** < /r/secret: HEAD /r/secret'] },
  ];
  for (const { routes, expected } of cases) {
    t.same(foldsOf(routes, asGet), expected, routes.join(', '));
    t.same(foldsOf(routes, strict), [], 'where HEAD is something of its own');
  }
  const [fold] = findFolds(
    createRouteTable([routeOf('GET /a', ['root']), routeOf('HEAD /a', 'public')]),
    asGet,
    issuers,
  ).folds;
  t.match(fold, { method: 'HEAD', runs: 'GET' });
  t.end();
});

t.test('only what the receiver does not declare strict is folded', (t) => {
  const routes = ['GET /7/a admin', 'GET /7/** user'];
  t.same(foldsOf(routes, { ...strict, strictSlash: false }), ['/7/a < /7/**: GET /7/a/']);
  t.same(foldsOf(routes, { ...strict, caseSensitive: false }), ['/7/a < /7/**: GET /7/A']);
  t.same(foldsOf(['GET /a/ admin', 'GET /{x}/ user'], { ...strict, caseSensitive: false }), ['/a/ < /{x}/: GET /A/']);
  t.end();
});

/** Whether a router that folds takes a request for a path: written again, without a tree. */
function takesFolded(path: RoutePath, segments: readonly string[], receiver: ReceiverRouter): boolean {
  const plain = (text: string): string =>
    receiver.trailingDots && /[^. ]/.test(text) ? text.replace(/[. ]+$/, '') : text;
  const same = (a: string, b: string): boolean =>
    receiver.caseSensitive ? plain(a) === plain(b) : plain(a).toLowerCase() === plain(b).toLowerCase();
  if (receiver.strictSlash) return pathTakes(path, segments, same);
  const bare = foldedSegments(path);
  const seen = segments.length > 1 && segments.at(-1) === '' ? segments.slice(0, -1) : segments;
  return pathTakes(bare, seen, same) || (bare.segments.at(-1)?.kind === 'rest' && pathTakes(bare, [...seen, ''], same));
}

function foldedSegments(path: RoutePath): RoutePath {
  const last = path.segments.at(-1);
  const slashed = path.segments.length > 1 && last?.kind === 'literal' && last.text === '';
  return slashed ? { ...path, segments: path.segments.slice(0, -1) } : path;
}

/** A request as it came, and without its format. */
function readings(
  request: readonly string[],
  { formatSuffix, strictSlash }: ReceiverRouter,
): readonly (readonly string[])[] {
  const isSlashed = !strictSlash && request.length > 1 && request.at(-1) === '';
  const seen = isSlashed ? request.slice(0, -1) : request;
  const [, plain] = /^(.+)\.[^.]+$/.exec(seen.at(-1) ?? '') ?? [];
  return formatSuffix && plain !== undefined ? [request, [...seen.slice(0, -1), plain]] : [request];
}

function naiveFolds(
  routes: readonly Route[],
  receiver: ReceiverRouter,
  requests: readonly (readonly string[])[],
): Set<string> {
  const bare = (path: RoutePath): RoutePath => (receiver.strictSlash ? path : foldedSegments(path));
  const folds = new Set<string>();
  const methods = ['GET', 'PUT', 'PATCH', 'HEAD'].map((method) => [method, method] as const);
  for (const [method, runs] of [...methods, ...(receiver.headAsGet ? [['HEAD', 'GET'] as const] : [])]) {
    const placed = routes
      .filter(({ methods }) => methods === null || methods.has(runs))
      .flatMap((route) => route.paths.map((path) => ({ route, path })));
    for (const request of requests) {
      const reached = naiveMatch(routes, method, request);
      if (reached === null) continue;
      for (const reading of readings(request, receiver)) {
        const endsInLiteral = (path: RoutePath): boolean => bare(path).segments.at(-1)?.kind === 'literal';
        const taking = placed
          .filter(({ path }) => takesFolded(path, reading, receiver))
          .sort((a, b) => compareSpecificity(bare(a.path), bare(b.path)));
        const [first] = taking;
        for (const { route, path } of taking) {
          if (first === undefined || compareSpecificity(bare(first.path), bare(path)) !== 0 || route === reached) {
            continue;
          }
          // A parameter takes the format along.
          if (reading !== request && !endsInLiteral(path)) continue;
          if (isLessRestrictive(reached, route, issuers)) folds.add(`${route.name} < ${reached.name}`);
        }
      }
    }
  }
  return folds;
}

/** Every case of every literal below, and text that no path writes. */
const plainTexts = ['a', 'A', '7', 'bc', 'Bc', 'BC', 'zz', 'a.zz', 'A.ZZ'];
const formats = ['A.zz', '7.zz', 'bc.zz', 'Bc.zz', 'a.zz.zz'];
const dotted = ['a.', 'A.', '7.', 'bc.', 'Bc.', 'a.zz.'];

function requestsFor({ formatSuffix, trailingDots }: ReceiverRouter): readonly (readonly string[])[] {
  const texts = [...plainTexts, ...(formatSuffix ? formats : []), ...(trailingDots ? dotted : [])];
  return [[''], ...sequences(texts, texts.length > 16 ? 2 : 3).flatMap((parts) => [parts, [...parts, '']])];
}

function sequences(texts: readonly string[], most: number): readonly (readonly string[])[] {
  if (most === 0) return [];
  const shorter = sequences(texts, most - 1);
  return [...texts.map((text) => [text]), ...shorter.flatMap((parts) => texts.map((text) => [...parts, text]))];
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
});

t.test('finds what asking for every spelling would find, and nothing else', (t) => {
  fc.assert(
    fc.property(routes, receivers, (specs, receiver) => {
      const all = specs.map(([method, path, who], index) =>
        routeOf(`${method} ${path}`, who === 'public' ? 'public' : who.split(','), { name: `r${index}` }),
      );
      const table = createRouteTable(all);
      if (table.ties.length > 0) return;
      const { folds, unfinished } = findFolds(table, receiver, issuers);
      t.equal(unfinished, false);
      const found = folds.map(({ guard, reached }) => `${guard.route.name} < ${reached.route.name}`).sort();
      const expected = [...naiveFolds(all, receiver, requestsFor(receiver))].sort();
      if (found.join() !== expected.join()) throw new Error(JSON.stringify({ found, expected }));
    }),
    { numRuns: 100 },
  );
  t.end();
});

t.test('5,000 routes are checked within the work limit', (t) => {
  const all = Array.from({ length: 2_500 }, (_, number) => [
    routeOf(`GET /s${number}/{id}`, [`u${number}`]),
    routeOf(`GET /s${number}/{id}/**`, [`u${number}`]),
  ]).flat();
  t.same(findFolds(createRouteTable(all), lax, issuers), { folds: [], unfinished: false });
  t.end();
});

t.test('a config that overlaps too much is not called safe unchecked', (t) => {
  const all = Array.from({ length: 2_500 }, (_, number) => [
    routeOf(`GET /a${number}/{x}`, [`u${number}`]),
    routeOf(`GET /{y}/b${number}`, [`v${number}`]),
  ]).flat();
  t.same(findFolds(createRouteTable(all), { ...strict, strictSlash: false }, issuers), { folds: [], unfinished: true });
  t.end();
});

t.test('a pair of routes is told of once, however many paths they have', (t) => {
  const table = createRouteTable([routeOf('GET /a /b /c', ['admin']), routeOf('GET /**', ['user'])]);
  t.equal(findFolds(table, lax, issuers).folds.length, 1);
  t.end();
});

t.test('no more folds are told of than anybody reads', (t) => {
  const all = Array.from({ length: 100 }, (_, number) => routeOf(`GET /a${number}`, [`u${number}`]));
  const { folds } = findFolds(createRouteTable([...all, routeOf('GET /**', 'public')]), lax, issuers);
  t.equal(folds.length, 50);
  t.end();
});
