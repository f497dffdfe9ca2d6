/** What few routers do, of which nothing in a policy tells: formats of one name, and what opt-outs let through. */
import t from 'tap';
import { findFolds, isAdvice } from '../../../../src/decision/route/conflicts/find-conflicts.js';
import { createRouteTable } from '../../../../src/decision/route/route-table.js';
import { routeOf } from '../route-samples.js';
import { foldsOf, issuers, strict } from './fold-model.js';

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
