import t from 'tap';
import { accessOf } from '../../../src/admin/console/access.js';
import { shopRoutes } from '../../console/shop.js';
import { compiled } from '../../proxy/harness.js';

t.test('each route with who may use it, and with what', (t) => {
  const { callers, routes } = accessOf(
    compiled({
      routes: [
        ...shopRoutes.filter(({ idempotency }) => idempotency === undefined),
        { name: 'several', methods: ['GET'], path: '/several', subjects: [{ prefix: 'ns/' }], permissions: ['x'] },
      ],
    }),
  );
  const shown = routes.map(({ name, methods, paths, mode, grants }) => ({
    route: `${name}: ${methods.join(' ')} ${paths.join(' ')} ${mode}`,
    grants: grants.map(
      ({ caller, needs }) => `${callers[caller]?.kind ?? ''} ${callers[caller]?.name ?? ''}: ${needs.join(' ')}`,
    ),
  }));
  t.same(shown, [
    { route: 'health: GET /health enforce', grants: ['anybody anybody: '] },
    {
      route: 'read-orders: GET /orders /orders/{id} enforce',
      grants: ['subject checkout: orders:read', 'subject reporting: orders:read orders:export'],
    },
    {
      route: 'stock: GET /stock/** shadow',
      grants: ['subject warehouse: stock:read', 'subject checkout: stock:read'],
    },
    { route: 'prices: GET /prices/{sku} enforce', grants: ['subject checkout: ', 'subject reporting: '] },
    { route: 'several: GET /several enforce', grants: ['prefix ns/…: x'] },
  ]);
  t.end();
});
