/** A made-up shop with callers of every kind, for the pages that people see. */
import type { ConfigTree } from '../support/proxy-process.js';
import { request } from '../support/raw-client.js';
import type { Scope } from '../support/scope.js';
import { startInProcessProxy, type InProcessProxy } from '../app/in-process-proxy.js';

/** Routes of the shop. One is in shadow mode, two reserve, one is public. */
export const shopRoutes = [
  { name: 'health', methods: ['GET'], path: '/health', access: 'public' },
  {
    name: 'read-orders',
    methods: ['GET'],
    path: ['/orders', '/orders/{id}'],
    any_of: [
      { subjects: ['checkout'], permissions: ['orders:read'] },
      { subjects: ['reporting'], permissions: ['orders:read', 'orders:export'] },
    ],
  },
  {
    name: 'place-order',
    methods: ['POST'],
    path: '/orders',
    subjects: ['checkout'],
    permissions: ['orders:write'],
    idempotency: { mode: 'required', operation: 'orders.place' },
  },
  {
    name: 'refund',
    methods: ['POST'],
    path: '/orders/{id}/refund',
    subjects: ['support'],
    permissions: ['orders:refund'],
    idempotency: { mode: 'required', operation: 'orders.refund' },
  },
  {
    name: 'stock',
    methods: ['GET'],
    path: '/stock/**',
    mode: 'shadow',
    subjects: ['warehouse', 'checkout'],
    permissions: ['stock:read'],
  },
  {
    name: 'prices',
    methods: ['GET'],
    path: '/prices/{sku}',
    subjects: ['checkout', 'reporting'],
    permissions: [],
  },
];

export function startShop(t: Scope, config: ConfigTree = {}): Promise<InProcessProxy> {
  return startInProcessProxy(t, { config: { store: { memory: {} }, routes: shopRoutes, ...config } });
}

/** Requests that go well, and one refusal of most kinds. */
export async function sendTraffic(shop: InProcessProxy): Promise<void> {
  const writes = { permissions: ['orders:read', 'orders:write'] };
  await Promise.all([
    shop.request({ path: '/orders' }, writes),
    shop.request({ path: '/orders/1841' }, writes),
    shop.request({ path: '/prices/mug' }, { sub: 'reporting', permissions: [] }),
    shop.request({ path: '/orders' }, { sub: 'reporting', permissions: ['orders:read', 'orders:export'] }),
    request(shop.port, { path: '/health' }),
  ]);
}

export async function sendRefused(shop: InProcessProxy): Promise<void> {
  await Promise.all([
    shop.request({ path: '/orders?token=not-to-be-kept' }, { sub: 'reporting', permissions: ['orders:read'] }),
    shop.request({ path: '/orders/1841' }, { sub: 'newsletter' }),
    request(shop.port, { path: '/orders' }),
    shop.request({ path: '/no/such/place' }),
    shop.request({ path: '/orders/7' }, { exp: 1_600_000_000, iat: 1_599_999_900 }),
    shop.request({ path: '/stock/shelf-4' }, { sub: 'newsletter', permissions: [] }),
    shop.request({ method: 'POST', path: '/orders', body: '{}' }, { permissions: ['orders:write'] }),
  ]);
}
