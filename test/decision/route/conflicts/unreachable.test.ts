import t from 'tap';
import { representativeMethods, unreachablePaths } from '../../../../src/decision/route/conflicts/unreachable.js';
import { createRouteTable } from '../../../../src/decision/route/route-table.js';
import { routeOf } from '../route-samples.js';

const cases = [
  { name: 'everything below is taken', routes: ['GET /a/**', 'GET /a/ /a/{x} /a/{x}/**'], expected: ['/a/**'] },
  {
    name: 'everything below is taken level by level',
    routes: ['GET /a/**', 'GET /a/ /a/{x} /a/{x}/ /a/{x}/{y} /a/{x}/{y}/**'],
    expected: ['/a/**'],
  },
  { name: 'by every method', routes: ['GET /a/**', '* /a/ /a/{x} /a/{x}/**'], expected: ['/a/**'] },
  { name: 'below a parameter', routes: ['GET /{a}/**', 'GET /{a}/ /{a}/{x} /{a}/{x}/**'], expected: ['/{a}/**'] },
  { name: 'at the root', routes: ['GET /**', 'GET / /{x} /{x}/**'], expected: ['/**'] },
  { name: 'the slash itself is left', routes: ['GET /a/**', 'GET /a/{x} /a/{x}/**'], expected: [] },
  { name: 'a single segment is left', routes: ['GET /a/**', 'GET /a/ /a/{x}/**'], expected: [] },
  { name: 'deeper paths are left', routes: ['GET /a/**', 'GET /a/ /a/{x}'], expected: [] },
  { name: 'a deeper slash is left', routes: ['GET /a/**', 'GET /a/ /a/{x} /a/{x}/{y} /a/{x}/{y}/**'], expected: [] },
  { name: 'a method is left', routes: ['GET,PUT /a/**', 'GET /a/ /a/{x} /a/{x}/**'], expected: [] },
  { name: 'unnamed methods are left', routes: ['* /a/**', 'GET /a/ /a/{x} /a/{x}/**'], expected: [] },
  { name: 'literals never take everything', routes: ['GET /{x}', 'GET /a /b /c'], expected: [] },
];

t.test('paths that no request can reach', (t) => {
  for (const { name, routes, expected } of cases) {
    const table = createRouteTable(routes.map((text) => routeOf(text)));
    t.same(table.ties, [], `${name}: no ties`);
    t.same(
      unreachablePaths(table).map(({ path }) => path.text),
      expected,
      name,
    );
  }
  t.end();
});

t.test('all methods are those that are named and one that is not', (t) => {
  t.same(representativeMethods(createRouteTable([routeOf('GET,PUT /a'), routeOf('OTHER /a')])), [
    'GET',
    'PUT',
    'OTHER',
    'OTHERX',
  ]);
  t.end();
});
