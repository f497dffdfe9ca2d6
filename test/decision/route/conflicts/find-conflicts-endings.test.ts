/** Spellings that differ at the end of a segment, and HEAD that runs what GET runs. */
import t from 'tap';
import { findFolds } from '../../../../src/decision/route/conflicts/find-conflicts.js';
import { createRouteTable } from '../../../../src/decision/route/route-table.js';
import { routeOf } from '../route-samples.js';
import { foldsOf, issuers, strict } from './fold-model.js';

/** All but the advice on formats of one name, which has a test of its own. */
const withoutFormats = (folds: readonly string[]): readonly string[] =>
  folds.filter((fold) => !fold.endsWith(', format'));

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
  {
    name: 'a format of what a parameter before takes',
    routes: ['GET /{x}/a admin', 'GET /a/a.zz public'],
    formats: ['/{x}/a < /a/a.zz: GET /a/a.zz'],
    dots: [],
  },
  {
    name: 'a format of what a parameter in the middle takes',
    routes: ['GET /a/{x}/b admin', 'GET /{y}/c/b.zz user'],
    formats: ['/a/{x}/b < /{y}/c/b.zz: GET /a/c/b.zz'],
    dots: [],
  },
  {
    name: 'a format of what several parameters take',
    routes: ['GET /{x}/{y}/b admin', 'GET /a/c/b.zz user', 'GET /a/{y}/b.yy admin'],
    formats: ['/{x}/{y}/b < /a/c/b.zz: GET /a/c/b.zz'],
    dots: [],
  },
  {
    name: 'a format whose plain text a more specific path takes',
    routes: ['GET /{x}/a admin', 'GET /a/a.zz public', 'GET /a/a public'],
    formats: [],
    dots: [],
  },
  {
    name: 'a format whose plain text a more specific parameter takes',
    routes: ['GET /{x}/a admin', 'GET /a/a.zz public', 'GET /a/{y} public'],
    formats: [],
    dots: [],
  },
  { name: 'a format of another length', routes: ['GET /{x}/{y}/a admin', 'GET /a/a.zz public'], formats: [], dots: [] },
  {
    name: 'a format under another literal',
    routes: ['GET /{x}/b/a admin', 'GET /a/c/a.zz public'],
    formats: [],
    dots: [],
  },
  {
    name: 'a suffix before the last segment',
    routes: ['GET /a/{x} admin', 'GET /a.zz/b public'],
    formats: [],
    dots: [],
  },
  {
    name: 'a suffix of the parameter before',
    routes: ['GET /{x}/b admin', 'GET /a.zz/b admin,user'],
    formats: [],
    dots: [],
  },
  {
    name: 'a format of a format',
    routes: ['GET /{x}/a admin', 'GET /b/a.yy.zz public'],
    formats: ['/{x}/a < /b/a.yy.zz: GET /b/a.yy.zz'],
    dots: [],
  },
  { name: 'nothing before the dot', routes: ['GET /{x} admin', 'GET /.x admin'], formats: [], dots: [] },
  {
    name: 'a format of the root',
    routes: ['GET / admin', 'GET /{x} public'],
    formats: ['/ < /{x}: GET /.x'],
    dots: [],
  },
  {
    name: 'a format of the root, below',
    routes: ['GET / admin', 'GET /** public', 'GET /{x} admin'],
    formats: [],
    dots: [],
  },
  {
    name: 'a format of the root that a route writes',
    routes: ['GET / admin', 'GET /.zz public'],
    formats: ['/ < /.zz: GET /.zz'],
    dots: [],
  },
  {
    name: 'a format of a slash at the end',
    routes: ['GET /admin/ root', 'GET /admin/{x} public'],
    formats: ['/admin/ < /admin/{x}: GET /admin/.x'],
    dots: [],
  },
  {
    name: 'a format of a slash at the end that a route writes',
    routes: ['GET /{x}/ root', 'GET /admin/.zz public'],
    formats: ['/{x}/ < /admin/.zz: GET /admin/.zz'],
    dots: [],
  },
  {
    name: 'no format of what has no slash at the end',
    routes: ['GET /admin root', 'GET /admin/{x} public'],
    formats: [],
    dots: [],
  },
];

t.test('formats, dots and blanks at the end, that reach a less restrictive route', (t) => {
  for (const { name, routes, formats, dots } of endingCases) {
    t.same(withoutFormats(foldsOf(routes, { ...strict, formatSuffix: true })), formats, name);
    t.same(foldsOf(routes, { ...strict, trailingDots: true }), dots, `${name}, dots`);
    t.same(foldsOf(routes, strict), [], `${name}, at a strict router`);
  }
  t.end();
});

t.test('a format is looked for beside case, slash and dots at the end', (t) => {
  const rows = [
    {
      also: { caseSensitive: false },
      routes: ['GET /{x}/a admin', 'GET /a/A.ZZ public'],
      expected: ['/{x}/a < /a/A.ZZ: GET /a/A.ZZ'],
    },
    {
      also: { strictSlash: false },
      routes: ['GET /{x}/a admin', 'GET /a/a.zz/ public'],
      expected: ['/{x}/a < /a/a.zz/: GET /a/a.zz/'],
    },
    // The slash at the end is what may be below.
    {
      also: { strictSlash: false },
      routes: ['GET /a/** admin', 'GET /{x}/ public'],
      expected: ['/a/** < /{x}/: GET /a.x/'],
    },
    {
      also: { strictSlash: false },
      routes: ['DELETE /o/7/** admin', 'DELETE /o/{x}/ public'],
      expected: ['/o/7/** < /o/{x}/: DELETE /o/7.x/'],
    },
    {
      also: { strictSlash: false },
      routes: ['GET /a/** admin', 'GET /a.json public'],
      expected: ['/a/** < /a.json: GET /a.json'],
    },
    // What is below takes its format along.
    { also: { strictSlash: false }, routes: ['GET /a/** admin', 'GET /a/b.json public'], expected: [] },
    {
      also: { strictSlash: false },
      routes: ['GET /{x}/a/ admin', 'GET /a/a.zz/** public'],
      expected: ['/{x}/a/ < /a/a.zz/**: GET /a/a.zz/'],
    },
    { also: { strictSlash: false }, routes: ['GET /{x}/a/ admin', 'GET /a/a.zz/b public'], expected: [] },
    // What is nothing but a format is one of the slash at the end, where the path has it.
    {
      also: { strictSlash: false },
      routes: ['GET /admin/ root', 'GET /admin/{x} public'],
      expected: ['/admin/ < /admin/{x}: GET /admin/.x'],
    },
    {
      also: { strictSlash: false },
      routes: ['GET /{x}/ root', 'GET /admin/.zz public', 'GET /admin root'],
      expected: ['/{x}/ < /admin/.zz: GET /admin/.zz'],
    },
    {
      also: { strictSlash: false },
      routes: ['GET /{x}/ root', 'GET /admin/.zz public'],
      expected: ['/{x}/ < /admin/.zz: GET /admin/.zz'],
    },
    { also: { strictSlash: false }, routes: ['GET /admin root', 'GET /admin/{x} public'], expected: [] },
    { also: { strictSlash: false }, routes: ['GET / root', 'GET /{x} public'], expected: ['/ < /{x}: GET /.x'] },
    {
      also: { trailingDots: true },
      routes: ['GET /{x}/a admin', 'GET /a/a.zz. public'],
      expected: ['/{x}/a < /a/a.zz.: GET /a/a.zz.'],
    },
    {
      also: { trailingDots: true },
      routes: ['GET /{x}/a admin', 'GET /a/a..zz public'],
      expected: ['/{x}/a < /a/a..zz: GET /a/a..zz'],
    },
    {
      also: { trailingDots: true },
      routes: ['GET /{x}/a. admin', 'GET /a/a.zz public'],
      expected: ['/{x}/a. < /a/a.zz: GET /a/a.zz'],
    },
    {
      also: { headAsGet: true },
      routes: ['GET /{x}/a admin', 'HEAD /a/a.zz public'],
      expected: ['/{x}/a < /a/a.zz: HEAD /a/a.zz'],
    },
    { also: { headAsGet: true }, routes: ['GET /a admin', 'HEAD /a.zz public'], expected: ['/a < /a.zz: HEAD /a.zz'] },
    { also: { headAsGet: true }, routes: ['GET /a.zz admin', 'HEAD /a public'], expected: [] },
    { also: { headAsGet: true }, routes: ['GET /a admin', 'HEAD /{x} public'], expected: ['/a < /{x}: HEAD /a'] },
    {
      also: { headAsGet: true, strictSlash: false },
      routes: ['GET / admin', 'HEAD /{x}/ public'],
      expected: ['/ < /{x}/: HEAD /.x/'],
    },
    {
      also: { headAsGet: true, strictSlash: false },
      routes: ['GET /a/ admin', 'HEAD /a/{x}/** public'],
      expected: ['/a/ < /a/{x}/**: HEAD /a/.x/'],
    },
    { also: { headAsGet: true }, routes: ['GET /a/ admin', 'HEAD /a/{x}/** public'], expected: [] },
  ];
  for (const { also, routes, expected } of rows) {
    t.same(
      withoutFormats(foldsOf(routes, { ...strict, formatSuffix: true, ...also })),
      expected,
      `${Object.keys(also).join()}: ${routes.join(', ')}`,
    );
    t.same(foldsOf(routes, strict), [], 'at a strict router');
  }
  t.end();
});

t.test('OPTIONS that reaches a less restrictive route than other methods do', (t) => {
  const options = { ...strict, optionsAsGet: true };
  for (const [routes, expected] of [
    [['GET /r root', 'OPTIONS /r public'], ['/r < /r: OPTIONS /r']],
    [['POST /r/{id} root', 'OPTIONS /** public'], ['/r/{id} < /**: OPTIONS /r/x']],
    // One says it of all that the route reaches.
    [['GET /a root', 'GET /b root', 'OPTIONS /** public'], ['/a < /**: OPTIONS /a']],
    [['GET /a root', 'OPTIONS /b public'], []],
    [['GET,OPTIONS /a root'], []],
    [['GET /a public', 'OPTIONS /a root'], []],
    [['HEAD /a root', 'OPTIONS /a public'], []],
    [['GET /a root', '* /** public'], ['/a < /**: OPTIONS /a']],
    [['GET,OPTIONS /a root', '* /** public'], []],
    [['* /a root', '* /** public'], []],
    [['HEAD /a root', '* /{x} public'], []],
  ] as const) {
    t.same(foldsOf(routes, options), expected, routes.join(', '));
    t.same(foldsOf(routes, strict), [], `${routes.join(', ')}, at a service that answers OPTIONS by itself`);
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
