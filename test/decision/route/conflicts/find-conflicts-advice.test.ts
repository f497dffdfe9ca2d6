/** What few routers do, of which nothing in a policy tells: formats of one name, and what opt-outs let through. */
import fc from 'fast-check';
import t from 'tap';
import { isLessRestrictive } from '../../../../src/decision/route/conflicts/compare-access.js';
import { findFolds, isAdvice } from '../../../../src/decision/route/conflicts/find-conflicts.js';
import { createRouteTable } from '../../../../src/decision/route/route-table.js';
import { naiveMatch, routeOf } from '../route-samples.js';
import { foldsOf, issuers, sequences, strict } from './fold-model.js';

const formats = { ...strict, formatSuffix: true };

t.test('formats of one name that reach a less restrictive route', (t) => {
  const rows: { routes: readonly string[]; also?: object; expected: readonly string[] }[] = [
    { routes: ['GET /a.csv root', 'GET /a.json public'], expected: ['/a.csv < /a.json: GET /a.json, format'] },
    { routes: ['GET /a.csv root', 'GET /a public'], expected: ['/a.csv < /a: GET /a, format'] },
    { routes: ['GET /a.json.gz root', 'GET /a.json public'], expected: ['/a.json.gz < /a.json: GET /a.json, format'] },
    { routes: ['GET /b/a.csv root', 'GET /{x}/a public'], expected: ['/b/a.csv < /{x}/a: GET /b/a, format'] },
    {
      routes: ['GET /{x}/a.csv root', 'GET /b/a public'],
      expected: ['/{x}/a.csv < /b/a: GET /b/a, format'],
    },
    {
      routes: ['GET /a.csv root', 'HEAD /a.json public'],
      also: { headAsGet: true },
      expected: ['/a.csv < /a.json: HEAD /a.json, format'],
    },
    {
      routes: ['GET /A.csv root', 'GET /a.json/ public'],
      also: { caseSensitive: false, strictSlash: false },
      expected: ['/A.csv < /a.json/: GET /a.json/, format'],
    },
    // The upstream has the name as a place of its own.
    { routes: ['GET /{x}/a.csv root', 'GET /b/a.json public'], expected: [] },
    // A parameter, and what is below, take the format along.
    { routes: ['GET /{x} root', 'GET /a.json public'], expected: [] },
    { routes: ['GET /a.csv root', 'GET /{x} public'], expected: [] },
    { routes: ['GET /a.csv/** root', 'GET /a.json/** public'], also: { strictSlash: false }, expected: [] },
    { routes: ['GET /a.csv root', 'GET /b.json public'], expected: [] },
    { routes: ['GET /a.csv root', 'GET /b/a.json public'], expected: [] },
    { routes: ['GET /b/a.csv root', 'GET /c/a.json public'], expected: [] },
    { routes: ['GET /a.csv public', 'GET /a.json root'], expected: ['/a.json < /a.csv: GET /a.csv, format'] },
    { routes: ['GET /a.csv root', 'GET /a.json root'], expected: [] },
    { routes: ['GET /a.csv root', 'PUT /a.json public'], expected: [] },
    // What is nothing but a suffix names nothing.
    { routes: ['GET /.env root', 'GET / public', 'GET /.config public'], expected: [] },
  ];
  for (const { routes, also, expected } of rows) {
    const found = foldsOf(routes, { ...formats, ...also }).filter((fold) => fold.endsWith(', format'));
    t.same(found, expected, routes.join(', '));
    t.same(
      foldsOf(routes, { ...strict, ...also }).filter((fold) => fold.endsWith(', format')),
      [],
      'without formats',
    );
  }
  t.end();
});

t.test('a format of the slash at the end is advice, and hides no fault of the same routes', (t) => {
  const lax = { ...strict, formatSuffix: true, strictSlash: false, caseSensitive: false };
  const toldOf = (...texts: readonly string[]): readonly string[] => {
    const routes = texts.map((text) => {
      const [method = '', paths = '', who = ''] = text.split(' ');
      return { ...routeOf(`${method} ${paths}`, who === 'public' ? 'public' : [who]) };
    });
    return findFolds(createRouteTable(routes), lax, issuers).folds.map(
      (fold) => `/${fold.spelling.join('/')} ${isAdvice(fold) ? 'advice' : 'fault'}`,
    );
  };
  t.same(toldOf('GET /orders/ root', 'GET /orders/{id}/ public'), ['/orders/.x/ advice']);
  t.same(toldOf('GET / root', 'GET /{x} public'), ['/.x advice']);
  t.same(toldOf('GET /orders/ root', 'GET /** public'), ['/ORDERS fault'], 'rather the fault where there are both');
  const [root, page] = [routeOf('GET /', ['root']), routeOf('GET /{x}', 'public')];
  const both = { ...root, paths: [...root.paths, ...routeOf('GET /admin', ['root']).paths] };
  const folds = findFolds(createRouteTable([both, page]), lax, issuers).folds;
  t.same(
    folds.map((fold) => `/${fold.spelling.join('/')} ${isAdvice(fold) ? 'advice' : 'fault'}`),
    ['/.x advice', '/ADMIN fault'],
    'of two paths of one route',
  );
  const many = Array.from({ length: 60 }, (_, at) => [`GET /a${at}/ root`, `GET /a${at}/{x} public`]).flat();
  const counted = toldOf(...many, 'GET /zz/admin root', 'GET /zz/{x} public');
  t.equal(counted.filter((each) => each.endsWith('advice')).length, 50);
  t.ok(counted.includes('/zz/ADMIN fault'), 'fifty end no search for a fault');
  t.end();
});

interface Row {
  readonly guard: string;
  readonly reached: string;
  readonly others?: readonly string[];
  readonly also?: object;
  readonly expected: readonly string[];
}

function optOutsOf({ guard, reached, others = [], also = {} }: Row, grants: object): readonly string[] {
  const table = createRouteTable([
    routeOf(guard, ['root']),
    routeOf(reached, 'public', grants),
    ...others.map((text) => routeOf(text, ['root'])),
  ]);
  const folds = findFolds(table, { ...strict, optOuts: true, ...also }, issuers).folds.filter(isAdvice);
  return folds.map(({ spelling, method, kind }) => `${kind}: ${method} /${spelling.join('/')}`);
}

t.test('parameters of a path that reach a less restrictive route which takes them', (t) => {
  const rows: Row[] = [
    { guard: 'GET /admin', reached: 'GET /{page}', expected: ['parameters: GET /admin;x'] },
    { guard: 'GET /admin/users', reached: 'GET /**', expected: ['parameters: GET /admin;x/users;x'] },
    { guard: 'GET /admin/users', reached: 'GET /admin/{x}', expected: ['parameters: GET /admin/users;x'] },
    { guard: 'GET /a/{x}', reached: 'GET /{y}/users', expected: ['parameters: GET /a;x/users'] },
    // The upstream takes it for the more specific one, as the policy does.
    { guard: 'GET /{x}/users', reached: 'GET /a/{y}', expected: [] },
    { guard: 'GET /admin/', reached: 'GET /{x}/', expected: ['parameters: GET /admin;x/'] },
    { guard: 'GET /admin', reached: 'HEAD /{x}', also: { headAsGet: true }, expected: ['parameters: HEAD /admin;x'] },
    { guard: 'GET /admin', reached: 'HEAD /{x}', expected: [] },
    { guard: 'GET /admin', reached: 'GET /public', expected: [] },
    { guard: 'GET /admin', reached: 'GET /{x}/{y}', expected: [] },
    { guard: 'GET /a', reached: 'GET /**', others: ['GET /{x}'], expected: [] },
    // One says it of all that the route reaches.
    { guard: 'GET /a', reached: 'GET /**', others: ['GET /b'], expected: ['parameters: GET /a;x'] },
  ];
  for (const row of rows) {
    const name = `${row.guard} beside ${row.reached}`;
    t.same(optOutsOf(row, { pathParameters: true }), row.expected, name);
    t.same(optOutsOf(row, {}), [], `${name}, which takes none`);
    const asked = { ...row, also: { ...row.also, optOuts: false } };
    t.same(optOutsOf(asked, { pathParameters: true }), [], `${name}, whose router is asked`);
  }
  t.end();
});

t.test('encoded slashes that reach a less restrictive route which takes them', (t) => {
  const rows: Row[] = [
    { guard: 'GET /admin/users', reached: 'GET /{page}', expected: ['slashes: GET /admin%2Fusers'] },
    { guard: 'GET /admin/users', reached: 'GET /**', expected: ['slashes: GET /admin%2Fusers'] },
    { guard: 'GET /admin/**', reached: 'GET /{page}', expected: ['slashes: GET /admin%2Fx'] },
    { guard: 'GET /admin/{x}', reached: 'GET /{page}', expected: ['slashes: GET /admin%2Fx'] },
    { guard: 'GET /admin/', reached: 'GET /{page}', expected: ['slashes: GET /admin%2F'] },
    { guard: 'GET /a/b/c', reached: 'GET /{x}/{y}', expected: ['slashes: GET /a%2Fb/c'] },
    { guard: 'GET /a/b/c', reached: 'GET /{x}/c', expected: ['slashes: GET /a%2Fb/c'] },
    { guard: 'GET /a/b/c', reached: 'GET /a/{x}', expected: ['slashes: GET /a/b%2Fc'] },
    { guard: 'GET /a/b/l/c/d', reached: 'GET /{x}/l/{y}', expected: ['slashes: GET /a%2Fb/l/c%2Fd'] },
    {
      guard: 'GET /a/b',
      reached: 'HEAD /{x}',
      also: { headAsGet: true, caseSensitive: false, strictSlash: false },
      expected: ['slashes: HEAD /a%2Fb'],
    },
    { guard: 'GET /a/b/c', reached: 'GET /{x}/{y}', others: ['GET /a/{y}'], expected: ['slashes: GET /a%2Fb/c'] },
    { guard: 'GET /b/**', reached: 'GET /b/{x}', expected: ['slashes: GET /b/x%2Fx'] },
    { guard: 'GET /a/b/c', reached: 'GET /**', others: ['GET /{x}'], expected: ['slashes: GET /a%2Fb/c'] },
    { guard: 'GET /a/b/c/d/e/f/g/h', reached: 'GET /**', others: ['GET /{x}/**', 'GET /{x}'], expected: [] },
    { guard: 'GET /admin', reached: 'GET /{page}', expected: [] },
    { guard: 'GET /admin/users', reached: 'GET /files/{x}', expected: [] },
    { guard: 'GET /admin/users', reached: 'GET /admin', expected: [] },
    { guard: 'GET /a/b', reached: 'GET /{x}/{y}/{z}', expected: [] },
    { guard: 'GET /a/b', reached: 'GET /**', others: ['GET /{x}'], expected: [] },
  ];
  for (const row of rows) {
    const name = `${row.guard} beside ${row.reached}`;
    t.same(optOutsOf(row, { encodedSlashes: true }), row.expected, name);
    t.same(optOutsOf(row, {}), [], `${name}, which takes none`);
  }
  t.end();
});

const part = fc.constantFrom('a', 'b', '{x}', '{x}');
const drawn = fc.array(
  fc.record({
    method: fc.constantFrom('GET', 'GET', '*'),
    path: fc
      .tuple(fc.array(part, { minLength: 1, maxLength: 2 }), fc.constantFrom('', '', '/', '/**'))
      .map(([parts, end]) => `/${(end === '/**' ? parts.slice(0, 1) : parts).join('/')}${end}`),
    who: fc.constantFrom('public', 'u', 'v'),
    grants: fc.record({ pathParameters: fc.boolean(), encodedSlashes: fc.boolean() }),
  }),
  { minLength: 2, maxLength: 5 },
);

/** Every target of a few segments, of which each has a parameter or not, and each slash is encoded or not. */
function targetsOf(mark: 'parameters' | 'slashes'): readonly (readonly string[])[] {
  const texts = ['a', 'b', 'z'];
  const plain = sequences(texts, 4).flatMap((parts) => [parts, [...parts, '']]);
  if (mark === 'parameters') {
    return sequences([...texts, ...texts.map((text) => `${text};x`)], 3).flatMap((parts) => [parts, [...parts, '']]);
  }
  return plain.flatMap((parts) =>
    Array.from({ length: 2 ** (parts.length - 1) }, (_, bits) =>
      parts.reduce((text, next, at) => `${text}${(bits >> (at - 1)) % 2 === 1 ? '%2F' : '/'}${next}`).split('/'),
    ),
  );
}

const targets = { parameters: targetsOf('parameters'), slashes: targetsOf('slashes') };

t.test('finds what asking for every target would find of parameters and slashes, and nothing else', (t) => {
  fc.assert(
    fc.property(drawn, fc.constantFrom('parameters', 'slashes'), (specs, kind) => {
      const routes = specs.map(({ method, path, who, grants }, index) =>
        routeOf(`${method} ${path}`, who === 'public' ? who : [who], { ...grants, name: `r${index}` }),
      );
      const table = createRouteTable(routes);
      if (table.ties.length > 0) return;
      const expected = new Set<string>();
      const asked = targets[kind].filter((segments) => segments.some((text) => /;|%2F/.test(text)));
      for (const target of asked) {
        const read = target.flatMap((text) => text.split('%2F')).map((text) => text.replace(/;.*/, ''));
        for (const method of ['GET', 'PUT']) {
          const [reached, run] = [naiveMatch(routes, method, target), naiveMatch(routes, method, read)];
          if (reached === null || run === null || reached === run) continue;
          if (!(kind === 'parameters' ? reached.pathParameters : reached.encodedSlashes)) continue;
          if (isLessRestrictive(reached, run, issuers)) expected.add(reached.name);
        }
      }
      const { folds } = findFolds(table, { ...strict, optOuts: true }, issuers);
      const found = folds.filter((fold) => fold.kind === kind).map(({ reached }) => reached.route.name);
      const isSame = [...expected].sort().join() === found.toSorted().join();
      if (!isSame) throw new Error(JSON.stringify({ kind, found, expected: [...expected] }));
    }),
    { numRuns: 150 },
  );
  t.end();
});

t.test('no kind of advice hides the next', (t) => {
  const receiver = { ...strict, optionsAsGet: true, optOuts: true };
  const pairs = (count: number, whose: (number: number) => string): readonly ReturnType<typeof routeOf>[] =>
    Array.from({ length: count }, (_, number) => [
      routeOf(`GET /{x}/g${number}`, [whose(number)]),
      routeOf(`OPTIONS /o${number}/{x}`, [whose(number)]),
    ]).flat();
  const others = [routeOf('GET /admin', ['root']), routeOf('GET /{page}', 'public', { pathParameters: true })];
  const kindsOf = (routes: readonly ReturnType<typeof routeOf>[]): readonly (readonly string[])[] => {
    const { folds, unfinished, cutShort } = findFolds(createRouteTable([...routes, ...others]), receiver, issuers);
    t.equal(unfinished, false);
    return [folds.map(({ kind }) => kind), cutShort];
  };
  t.same(kindsOf(pairs(800, () => 'u')), [['parameters'], []], 'equal policies do no harm');
  const hidden = pairs(150, (number) => `u${number}`);
  const gone = Array.from({ length: 150 }, (_, number) => routeOf(`GET /o${number}/{x}`, [`u${number}`]));
  t.same(kindsOf([...hidden, ...gone]), [['parameters'], ['options']], 'what was not looked at is said');
  t.end();
});

t.test('divisions that lead to no spelling are work too', (t) => {
  const routes = Array.from({ length: 300 }, (_, number) =>
    routeOf(`GET /{x}/g${number}`, [`u${number}`], { encodedSlashes: true }),
  );
  const { folds, cutShort } = findFolds(createRouteTable(routes), { ...strict, optOuts: true }, issuers);
  t.same([folds, cutShort], [[], ['slashes']]);
  t.end();
});
