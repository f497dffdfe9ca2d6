/** What follows the name of a script in a path, which its server hands to the script. */
import fc from 'fast-check';
import t from 'tap';
import { findFolds } from '../../../../src/decision/route/conflicts/find-conflicts.js';
import { createRouteTable } from '../../../../src/decision/route/route-table.js';
import { routeOf } from '../route-samples.js';
import { comparePoliciesWithModel, foldsOf, issuers, sequences, strict } from './fold-model.js';

const info = { ...strict, pathInfo: true };

const cases = [
  {
    name: 'a parameter behind',
    routes: ['GET /admin.php root', 'GET /{page}/{id} user'],
    expected: ['/admin.php < /{page}/{id}: GET /admin.php/x'],
  },
  {
    name: 'everything behind',
    routes: ['GET /admin.php root', 'GET /** user'],
    expected: ['/admin.php < /**: GET /admin.php/x'],
  },
  {
    name: 'a slash behind',
    routes: ['GET /admin.php root', 'GET /{page}/ user'],
    expected: ['/admin.php < /{page}/: GET /admin.php/'],
  },
  {
    name: 'a literal behind',
    routes: ['GET /admin.php root', 'GET /{page}/edit user'],
    expected: ['/admin.php < /{page}/edit: GET /admin.php/edit'],
  },
  {
    name: 'its own',
    routes: ['GET /admin.php root', 'GET /admin.php/help user'],
    expected: ['/admin.php < /admin.php/help: GET /admin.php/help'],
  },
  {
    name: 'in a folder',
    routes: ['GET /a/admin.aspx root', 'GET /a/** user'],
    expected: ['/a/admin.aspx < /a/**: GET /a/admin.aspx/x'],
  },
  {
    name: 'in any folder',
    routes: ['GET /{dir}/admin.cgi root', 'GET /a/{page}/{id} user'],
    expected: ['/{dir}/admin.cgi < /a/{page}/{id}: GET /a/admin.cgi/x'],
  },
  {
    name: 'in upper case',
    routes: ['GET /ADMIN.PHP root', 'GET /{page}/{id} user'],
    expected: ['/ADMIN.PHP < /{page}/{id}: GET /ADMIN.PHP/x'],
  },
  {
    name: 'a program without an ending',
    routes: ['GET /cgi-bin/admin root', 'GET /cgi-bin/{page}/{id} user'],
    expected: ['/cgi-bin/admin < /cgi-bin/{page}/{id}: GET /cgi-bin/admin/x'],
  },
  {
    name: 'HEAD',
    also: { headAsGet: true },
    routes: ['GET /admin.php root', 'HEAD /{page}/{id} user'],
    expected: ['/admin.php < /{page}/{id}: HEAD /admin.php/x'],
  },
  {
    name: 'another case, where its own is taken',
    also: { caseSensitive: false },
    routes: ['GET /admin.php root', 'GET /admin.php/{id} root', 'GET /{page}/{id} user'],
    expected: ['/admin.php/{id} < /{page}/{id}: GET /ADMIN.PHP/x', '/admin.php < /{page}/{id}: GET /ADMIN.PHP/x'],
  },
  {
    name: 'deeper, where the first is taken',
    routes: ['GET /admin.php root', 'GET /admin.php/{id} root', 'GET /admin.php/ root', 'GET /** user'],
    expected: ['/admin.php < /**: GET /admin.php/x/x'],
  },
  { name: 'other methods', routes: ['GET /admin.php root', 'PUT /** user'], expected: [] },
  { name: 'not longer', routes: ['GET /admin.php root', 'GET /{page} user'], expected: [] },
  { name: 'more restrictive', routes: ['GET /login.php public', 'GET /** user'], expected: [] },
  {
    name: 'all of it taken',
    routes: ['GET /admin.php root', 'GET /admin.php/** root', 'GET /** user'],
    expected: [],
  },
  {
    name: 'no script',
    routes: ['GET /admin root', 'GET /report.html root', 'GET /v1.2 root', 'GET /** user'],
    expected: [],
  },
  { name: 'nothing but an ending', routes: ['GET /.php root', 'GET /** user'], expected: [] },
  { name: 'the folder of programs', routes: ['GET /cgi-bin root', 'GET /cgi-bin/ root', 'GET /** user'], expected: [] },
  { name: 'a folder', routes: ['GET /admin.php/ root', 'GET /admin.php/{x} user'], expected: [] },
  { name: 'a parameter', routes: ['GET /{page} root', 'GET /admin.php user', 'GET /{page}/{id} user'], expected: [] },
  {
    name: 'a parameter that the receiver finds first',
    routes: ['GET /{dir}/admin.php root', 'GET /a/{page} user', 'GET /a/{page}/{id} user'],
    expected: [],
  },
];

t.test('what follows a script’s name and reaches a less restrictive route', (t) => {
  for (const { name, also = {}, routes, expected } of cases) {
    const folds = foldsOf(routes, { ...info, ...also }).filter((fold) => !fold.endsWith(', routed'));
    t.same(folds, expected, name);
    t.same(
      foldsOf(routes, { ...strict, headAsGet: 'headAsGet' in also }),
      [],
      `${name}, at a router that reads it all`,
    );
  }
  t.end();
});

const routed = [
  {
    name: 'all that another route takes',
    routes: ['GET /admin root', 'GET /** user'],
    expected: ['/admin < /**: GET /index.php/admin, routed'],
  },
  {
    name: 'in a folder that no route names a script in',
    routes: ['GET /app/admin root', 'GET /app/{page}/{id} user'],
    expected: [],
  },
  {
    name: 'one that a route names',
    routes: ['GET /admin/users root', 'GET /front.php/** user'],
    expected: ['/admin/users < /front.php/**: GET /front.php/admin/users, routed'],
  },
  {
    name: 'one that a route names in a folder',
    routes: ['GET /app/admin root', 'GET /app/front.php/{id} user'],
    expected: ['/app/admin < /app/front.php/{id}: GET /app/front.php/admin, routed'],
  },
  {
    name: 'one that no route names',
    routes: ['GET /admin root', 'GET /index.php/admin root', 'GET /** user'],
    expected: ['/admin < /**: GET /xindex.php/admin, routed'],
  },
  {
    name: 'once, however many there are',
    routes: ['GET /a root', 'GET /b root', 'GET /** user'],
    expected: ['/a < /**: GET /index.php/a, routed'],
  },
  {
    name: 'what is wrong otherwise comes first',
    routes: ['GET /a.php root', 'GET /b root', 'GET /** user'],
    expected: [],
  },
  { name: 'as restrictive', routes: ['GET /admin user', 'GET /** user'], expected: [] },
  { name: 'no room for its name', routes: ['GET /admin root', 'GET /orders/** user'], expected: [] },
  { name: 'nothing behind it', routes: ['GET / root', 'GET /{page} user'], expected: [] },
];

t.test('what a script routes and reaches a less restrictive route', (t) => {
  for (const { name, routes, expected } of routed) {
    t.same(
      foldsOf(routes, info).filter((fold) => fold.endsWith(', routed')),
      expected,
      name,
    );
  }
  t.end();
});

t.test('such a fold is told apart from others between the same routes', (t) => {
  const table = createRouteTable([routeOf('GET /admin.php', ['root']), routeOf('GET /**', ['user'])]);
  t.same(
    findFolds(table, { ...info, caseSensitive: false }, issuers).folds.map(({ spelling, kind }) => ({
      spelling,
      kind,
    })),
    [
      { spelling: ['ADMIN.PHP'], kind: 'spelling' },
      { spelling: ['admin.php', 'x'], kind: 'script' },
    ],
  );
  t.end();
});

t.test('finds every script that is reached by what follows its name, and nothing else', (t) => {
  // One spelling more than paths write: where a policy has `a.php` and `A.PHP`, `A.php` reaches neither.
  const texts = ['a', 'A', 'a.', 'a.php', 'A.PHP', 'A.php', 'a.php.', 'A.PHP.', 'cgi-bin', 'CGI-BIN', 'cgi-bin.', 'zz'];
  // Paths name two segments at most: what a third one says matters to none.
  const requests = sequences(texts, 2)
    .flatMap((parts) => (parts.length === 2 ? [parts, [...parts, 'zz']] : [parts]))
    .flatMap((parts) => [parts, [...parts, '']]);
  const part = fc.constantFrom('a', 'a.php', 'a.php', 'A.PHP', 'cgi-bin', '{x}', '{x}');
  const path = fc
    .tuple(fc.array(part, { minLength: 1, maxLength: 2 }), fc.constantFrom('', '', '', '/', '/**'))
    .map(([parts, end]) => `/${parts.join('/')}${end}`);
  comparePoliciesWithModel({ path, folds: { formatSuffix: false, pathInfo: true }, requests, numRuns: 60 });
  t.end();
});
