import fc from 'fast-check';
import t from 'tap';
import { createRouteTable, matchRoute, type RouteTarget } from '../../../src/decision/route/route-table.js';
import { naiveMatch, routeOf, segmentsOf } from './route-samples.js';

function target(path: string, opts: Partial<RouteTarget> = {}): RouteTarget {
  return { segments: segmentsOf(path), literalSegments: null, encodedSlash: false, pathParameters: false, ...opts };
}

function nameAt(routes: readonly string[], request: string): string | null {
  const [method = '', path = ''] = request.split(' ');
  return matchRoute(createRouteTable(routes.map((text) => routeOf(text))), method, target(path))?.name ?? null;
}

const matches = [
  { name: 'a literal', routes: ['GET /orders'], request: 'GET /orders', expected: 'GET /orders' },
  { name: 'the root', routes: ['GET /'], request: 'GET /', expected: 'GET /' },
  { name: 'another method', routes: ['GET /orders'], request: 'POST /orders', expected: null },
  { name: 'HEAD is not GET', routes: ['GET /orders'], request: 'HEAD /orders', expected: null },
  { name: 'a method in lower case', routes: ['GET /orders'], request: 'get /orders', expected: null },
  { name: 'a longer path', routes: ['GET /orders'], request: 'GET /orders/1', expected: null },
  { name: 'a path that begins alike', routes: ['GET /orders'], request: 'GET /orders2', expected: null },
  { name: 'the beginning of a path', routes: ['GET /orders/list'], request: 'GET /orders', expected: null },
  { name: 'another case', routes: ['GET /orders'], request: 'GET /Orders', expected: null },
  { name: 'a trailing slash', routes: ['GET /orders'], request: 'GET /orders/', expected: null },
  { name: 'no trailing slash', routes: ['GET /orders/'], request: 'GET /orders', expected: null },
  { name: 'the trailing slash written', routes: ['GET /orders/'], request: 'GET /orders/', expected: 'GET /orders/' },
  { name: 'a trailing dot', routes: ['GET /orders'], request: 'GET /orders.', expected: null },
  { name: 'a parameter', routes: ['GET /orders/{id}'], request: 'GET /orders/7', expected: 'GET /orders/{id}' },
  { name: 'a parameter is not empty', routes: ['GET /orders/{id}'], request: 'GET /orders/', expected: null },
  { name: 'a parameter is there', routes: ['GET /orders/{id}'], request: 'GET /orders', expected: null },
  { name: 'a parameter is one segment', routes: ['GET /orders/{id}'], request: 'GET /orders/7/items', expected: null },
  { name: 'a parameter at the root', routes: ['GET /{x}'], request: 'GET /', expected: null },
  {
    name: 'a parameter in the middle',
    routes: ['GET /o/{id}/items'],
    request: 'GET /o/7/items',
    expected: 'GET /o/{id}/items',
  },
  { name: 'anything below', routes: ['GET /a/**'], request: 'GET /a/b', expected: 'GET /a/**' },
  { name: 'anything far below', routes: ['GET /a/**'], request: 'GET /a/b/c/d/', expected: 'GET /a/**' },
  { name: 'below begins after the slash', routes: ['GET /a/**'], request: 'GET /a/', expected: 'GET /a/**' },
  { name: 'below is not itself', routes: ['GET /a/**'], request: 'GET /a', expected: null },
  { name: 'below is not beside', routes: ['GET /a/**'], request: 'GET /ab/c', expected: null },
  { name: 'below everything', routes: ['GET /**'], request: 'GET /', expected: 'GET /**' },
  { name: 'one of several paths', routes: ['GET /a /b'], request: 'GET /b', expected: 'GET /a /b' },
  { name: 'one of several methods', routes: ['GET,PUT /a'], request: 'PUT /a', expected: 'GET,PUT /a' },
  { name: 'every method', routes: ['* /a'], request: 'PROPFIND /a', expected: '* /a' },
  { name: 'every method but TRACE', routes: ['* /a'], request: 'TRACE /a', expected: null },
  { name: 'every method but TRACK', routes: ['* /a'], request: 'TRACK /a', expected: null },
  { name: 'every method but CONNECT', routes: ['* /a'], request: 'CONNECT /a', expected: null },
  { name: 'no routes', routes: [], request: 'GET /', expected: null },
  { name: 'names of the language mean nothing', routes: ['GET /{x}'], request: 'GET /__proto__', expected: 'GET /{x}' },
  { name: 'names of the language are no routes', routes: ['GET /a'], request: 'GET /constructor', expected: null },
  { name: 'names of the language are no methods', routes: ['GET /a'], request: '__proto__ /a', expected: null },
  {
    name: 'a literal beats a parameter',
    routes: ['GET /o/{id}', 'GET /o/new'],
    request: 'GET /o/new',
    expected: 'GET /o/new',
  },
  {
    name: 'a parameter beats below',
    routes: ['GET /o/**', 'GET /o/{id}'],
    request: 'GET /o/7',
    expected: 'GET /o/{id}',
  },
  { name: 'a literal beats below', routes: ['GET /**', 'GET /a'], request: 'GET /a', expected: 'GET /a' },
  {
    name: 'the first difference counts',
    routes: ['GET /{x}/b/c', 'GET /a/{y}/{z}'],
    request: 'GET /a/b/c',
    expected: 'GET /a/{y}/{z}',
  },
  { name: 'a literal before below', routes: ['GET /{x}/b', 'GET /a/**'], request: 'GET /a/b', expected: 'GET /a/**' },
  { name: 'a dead end is left', routes: ['GET /a/b', 'GET /{x}/c'], request: 'GET /a/c', expected: 'GET /{x}/c' },
  {
    name: 'two dead ends are left',
    routes: ['GET /a/b/c', 'GET /a/{y}/d', 'GET /**'],
    request: 'GET /a/b/e',
    expected: 'GET /**',
  },
  {
    name: 'the most specific path that has a route for the method',
    routes: ['GET /o/{id}', 'DELETE /o/**'],
    request: 'DELETE /o/7',
    expected: 'DELETE /o/**',
  },
];

t.test('the most specific path that takes a request as whole segments', (t) => {
  for (const { name, routes, request, expected } of matches) {
    t.equal(nameAt(routes, request), expected, name);
    t.equal(nameAt(routes.toReversed(), request), expected, `${name}, in another order`);
  }
  t.end();
});

const optOuts = [
  {
    name: 'an encoded slash, allowed',
    given: 'GET /f/{x}',
    request: { encodedSlash: true },
    route: { encodedSlashes: true },
    expected: true,
  },
  {
    name: 'an encoded slash, not allowed',
    given: 'GET /f/{x}',
    request: { encodedSlash: true },
    route: { pathParameters: true },
    expected: false,
  },
  {
    name: 'path parameters, allowed',
    given: 'GET /f/**',
    request: { pathParameters: true },
    route: { pathParameters: true },
    expected: true,
  },
  {
    name: 'path parameters, not allowed',
    given: 'GET /f/**',
    request: { pathParameters: true },
    route: { encodedSlashes: true },
    expected: false,
  },
  {
    name: 'allowed and not used',
    given: 'GET /f/**',
    request: {},
    route: { encodedSlashes: true, pathParameters: true },
    expected: true,
  },
];

t.test('what a route does not opt into has no route', (t) => {
  for (const { name, given, request, route, expected } of optOuts) {
    const table = createRouteTable([routeOf(given, ['a'], route)]);
    t.equal(matchRoute(table, 'GET', target('/f/a', request)) !== null, expected, name);
  }
  t.end();
});

t.test('a spelling does not fall through to a laxer route that opts in', (t) => {
  const table = createRouteTable([routeOf('GET /f/**', ['a'], { encodedSlashes: true }), routeOf('GET /f/{x}')]);
  t.equal(
    matchRoute(table, 'GET', {
      segments: ['f', 'a%2Fb'],
      literalSegments: null,
      encodedSlash: true,
      pathParameters: false,
    }),
    null,
  );
  t.equal(
    matchRoute(table, 'GET', {
      segments: ['f', 'a%2Fb', 'c'],
      literalSegments: null,
      encodedSlash: true,
      pathParameters: false,
    })?.name,
    'GET /f/**',
  );
  t.end();
});

t.test('the table says which opt-outs any route has', (t) => {
  const none = createRouteTable([routeOf('GET /a')]);
  t.same(
    [none.anyAllowsBody, none.anyAllowsEncodedSlashes, none.anyAllowsPathParameters, none.anyAllowsWebSocket],
    [false, false, false, false],
  );
  for (const key of ['allowsBody', 'encodedSlashes', 'pathParameters', 'allowsWebSocket'] as const) {
    const table = createRouteTable([routeOf('GET /a'), routeOf('GET /b', ['a'], { [key]: true })]);
    t.same(
      [table.anyAllowsBody, table.anyAllowsEncodedSlashes, table.anyAllowsPathParameters, table.anyAllowsWebSocket],
      [key === 'allowsBody', key === 'encodedSlashes', key === 'pathParameters', key === 'allowsWebSocket'],
      key,
    );
  }
  t.end();
});

const ties = [
  { name: 'the same path', routes: ['GET /a', 'GET /a'], expected: ['GET /a', 'GET /a', 'GET'] },
  {
    name: 'parameters of other names',
    routes: ['GET /a/{x}', 'GET /a/{y}'],
    expected: ['GET /a/{x}', 'GET /a/{y}', 'GET'],
  },
  { name: 'below', routes: ['GET /a/**', 'PUT,GET /a/**'], expected: ['GET /a/**', 'PUT,GET /a/**', 'GET'] },
  { name: 'every method after one', routes: ['PUT /a', '* /a'], expected: ['PUT /a', '* /a', 'PUT'] },
  { name: 'one method after every', routes: ['* /a', 'PUT /a'], expected: ['* /a', 'PUT /a', 'PUT'] },
  { name: 'every method twice', routes: ['* /a', '* /a'], expected: ['* /a', '* /a', '*'] },
  { name: 'one route twice', routes: ['GET /a /a'], expected: ['GET /a /a', 'GET /a /a', 'GET'] },
  { name: 'other methods', routes: ['GET /a', 'PUT /a'], expected: null },
  { name: 'another case', routes: ['GET /a', 'GET /A'], expected: null },
  { name: 'a trailing slash', routes: ['GET /a', 'GET /a/'], expected: null },
  { name: 'a parameter and below', routes: ['GET /a/{x}', 'GET /a/**'], expected: null },
  { name: 'paths that cross', routes: ['GET /a/{x}', 'GET /{x}/a'], expected: null },
];

t.test('paths between which no rule decides are ties', (t) => {
  for (const { name, routes, expected } of ties) {
    const { ties: found } = createRouteTable(routes.map((text) => routeOf(text)));
    t.same(
      found.map(({ first, second, method }) => [first.route.name, second.route.name, method]),
      expected === null ? [] : [expected],
      name,
    );
  }
  t.end();
});

const part = fc.constantFrom('a', 'b', 'A', '{x}', '{x}');
const path = fc
  .tuple(fc.array(part, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '', '/', '/**'))
  .map(([parts, end]) => `/${parts.join('/')}${end}`);
const routeText = fc
  .tuple(fc.constantFrom('GET', 'PUT', '*', 'GET,PUT'), fc.oneof(path, fc.constantFrom('/', '/**')))
  .map(([method, text]) => `${method} ${text}`);
const request = fc
  .tuple(
    fc.constantFrom('GET', 'PUT', 'PATCH'),
    fc.array(fc.constantFrom('a', 'b', 'A', 'c'), { minLength: 1, maxLength: 5 }),
    fc.boolean(),
  )
  .map(([method, parts, slash]) => ({ method, segments: slash ? [...parts, ''] : parts }));

t.test('the tree answers like trying every path would, in any order of routes', (t) => {
  fc.assert(
    fc.property(
      fc.array(routeText, { maxLength: 12 }),
      fc.array(request, { minLength: 1, maxLength: 10 }),
      (texts, requests) => {
        const routes = texts.map((text) => routeOf(text));
        const table = createRouteTable(routes);
        if (table.ties.length > 0) return;
        const reversed = createRouteTable(routes.toReversed());
        for (const { method, segments } of requests) {
          const expected = naiveMatch(routes, method, segments)?.name;
          const asked = { segments, literalSegments: null, encodedSlash: false, pathParameters: false };
          t.equal(matchRoute(table, method, asked)?.name, expected);
          t.equal(matchRoute(reversed, method, asked)?.name, expected);
        }
      },
    ),
    { numRuns: 500 },
  );
  t.end();
});

t.test('a deep path costs no more than the tree has nodes', (t) => {
  const texts = Array.from(
    { length: 1_024 },
    (_, number) =>
      `GET /${Array.from(number.toString(2).padStart(10, '0'))
        .map((bit) => (bit === '1' ? 'a' : '{x}'))
        .join('/')}/end`,
  );
  const table = createRouteTable(texts.map((text) => routeOf(text)));
  const deep = {
    segments: Array<string>(4_000).fill('a'),
    literalSegments: null,
    encodedSlash: false,
    pathParameters: false,
  };
  t.equal(matchRoute(table, 'GET', deep), null);
  t.end();
});

t.test('what other routers take to another route, or to none, has no route', (t) => {
  const table = createRouteTable(['GET /r/@public', 'GET /r/{id}', 'GET /s/@me'].map((text) => routeOf(text)));
  const left = (raw: string, read: string): RouteTarget => target(read, { literalSegments: segmentsOf(raw) });
  t.equal(matchRoute(table, 'GET', target('/r/@public'))?.name, 'GET /r/@public', 'as it is');
  t.equal(matchRoute(table, 'GET', left('/r/%40public', '/r/@public')), null, 'another route');
  t.equal(matchRoute(table, 'GET', left('/s/%40me', '/s/@me')), null, 'none');
  t.equal(matchRoute(table, 'GET', left('/r/a%40b', '/r/a@b'))?.name, 'GET /r/{id}', 'the same one');
  t.end();
});
