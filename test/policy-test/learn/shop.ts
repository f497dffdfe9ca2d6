/** A made-up shop, and two weeks of its log in shadow mode: honest callers, and a few per cent of hostile ones. */

/** One operation as it is meant to be: what learning is held to. */
export interface ShopRoute {
  readonly method: string;
  /** `{number}`, `{uuid}`, `{hex}`, `{key}` and `{slug}` are values of that shape. */
  readonly path: string;
  readonly permission: string;
  readonly callers: readonly string[];
}

const of = (method: string, path: string, permission: string, ...callers: readonly string[]): ShopRoute => ({
  method,
  path,
  permission,
  callers,
});

/** 40 operations, 12 callers. */
export const shopRoutes: readonly ShopRoute[] = [
  of('GET', '/orders', 'orders:read', 'checkout', 'reporting', 'support'),
  of('POST', '/orders', 'orders:write', 'checkout'),
  of('GET', '/orders/{uuid}', 'orders:read', 'checkout', 'support', 'shipping'),
  of('PATCH', '/orders/{uuid}', 'orders:write', 'checkout', 'support'),
  of('DELETE', '/orders/{uuid}', 'orders:delete', 'support'),
  of('GET', '/orders/export', 'orders:export', 'reporting'),
  of('POST', '/orders/{uuid}/cancel', 'orders:cancel', 'support', 'checkout'),
  of('POST', '/orders/{uuid}/refund', 'orders:refund', 'billing'),
  of('GET', '/orders/{uuid}/items', 'orders:read', 'shipping', 'warehouse'),
  of('GET', '/orders/{uuid}/items/{number}', 'orders:read', 'warehouse'),
  of('GET', '/products', 'catalog:read', 'storefront', 'search', 'checkout'),
  of('POST', '/products', 'catalog:write', 'catalog'),
  of('GET', '/products/{slug}', 'catalog:read', 'storefront', 'search'),
  of('PUT', '/products/{slug}', 'catalog:write', 'catalog'),
  of('GET', '/products/{slug}/reviews', 'reviews:read', 'storefront', 'moderation'),
  of('DELETE', '/products/{slug}/reviews/{number}', 'reviews:delete', 'moderation'),
  of('POST', '/products/{slug}/reviews', 'reviews:write', 'storefront'),
  of('GET', '/stock', 'stock:read', 'warehouse', 'reporting'),
  of('GET', '/stock/{key}', 'stock:read', 'warehouse', 'checkout', 'storefront'),
  of('PUT', '/stock/{key}', 'stock:write', 'warehouse'),
  of('POST', '/stock/{key}/reserve', 'stock:reserve', 'checkout'),
  of('DELETE', '/stock/{key}/reserve', 'stock:reserve', 'checkout'),
  of('GET', '/customers/{number}', 'customers:read', 'support', 'billing'),
  of('PUT', '/customers/{number}', 'customers:write', 'support'),
  of('GET', '/customers/{number}/orders', 'customers:read', 'support'),
  of('GET', '/customers/{number}/addresses/{number}', 'customers:read', 'shipping'),
  of('GET', '/customers/search', 'customers:search', 'support'),
  of('GET', '/invoices', 'invoices:read', 'billing', 'reporting'),
  of('POST', '/invoices', 'invoices:write', 'billing'),
  of('GET', '/invoices/{hex}', 'invoices:read', 'billing', 'support'),
  of('GET', '/invoices/{hex}/pdf', 'invoices:read', 'billing'),
  of('GET', '/shipments/{number}', 'shipments:read', 'shipping', 'storefront'),
  of('POST', '/shipments', 'shipments:write', 'shipping'),
  of('PUT', '/shipments/{number}/status', 'shipments:write', 'carrier'),
  of('GET', '/v1/prices/{key}', 'prices:read', 'storefront', 'checkout', 'search'),
  of('PUT', '/v1/prices/{key}', 'prices:write', 'catalog'),
  of('GET', '/reports/daily', 'reports:read', 'reporting'),
  of('GET', '/reports/{date}', 'reports:read', 'reporting'),
  of('HEAD', '/products/{slug}', 'catalog:read', 'search'),
  of('GET', '/metrics/summary', 'metrics:read', 'monitor'),
];

/** What each caller's tokens grant: all that it needs anywhere. */
export const shopPermissions: ReadonlyMap<string, readonly string[]> = new Map(
  [...new Set(shopRoutes.flatMap(({ callers }) => callers))].map((caller) => [
    caller,
    [
      ...new Set(shopRoutes.filter(({ callers }) => callers.includes(caller)).map(({ permission }) => permission)),
    ].toSorted(),
  ]),
);

/** A sequence that is the same for the same seed (mulberry32). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Line {
  readonly method: string;
  readonly path: string;
  readonly decision?: string;
  readonly reason?: string;
  readonly subject: string | null;
  readonly permissions?: readonly string[] | null;
  readonly status?: number;
  readonly day: number;
}

const firstDay = Date.UTC(2026, 9, 5);
const days = 14;
const msPerDay = 86_400_000;
const adjectives = ['red', 'blue', 'small', 'tall', 'round', 'soft', 'light', 'quiet', 'warm', 'plain'];
const nouns = ['chair', 'table', 'lamp', 'shelf', 'sofa', 'rug', 'desk', 'bench', 'mirror', 'clock', 'vase', 'stool'];

/** Scanners, spoofed callers, walkers, path tricks, and lines that are none. */
export const hostileKinds = [
  'scanner',
  'forged',
  'walker',
  'prober',
  'catch_all',
  'trick',
  'injection',
  'giant',
  'broken',
  'program',
  'secret',
  'doubled',
] as const;

/** Writes so many lines, each with its end. */
export function* shopLog(count: number, seed: number, hostileShare = 0.02): Generator<string, void, undefined> {
  const random = randomOf(seed);
  const below = (limit: number): number => Math.floor(random() * limit);
  const pick = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const hex = (length: number): string => Array.from({ length }, () => below(16).toString(16)).join('');
  let walked = 1_000;

  const value = (shape: string): string => {
    switch (shape) {
      case 'uuid':
        return `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`;
      case 'hex':
        return `7${hex(15)}`;
      case 'key':
        return `SKU-${String(100 + below(5_000))}`;
      case 'date':
        return new Date(firstDay + below(days) * msPerDay).toISOString().slice(0, 10);
      case 'slug':
        return `${pick(adjectives)}-${pick(nouns)}`;
      default:
        return String(1 + below(90_000));
    }
  };
  const filled = (path: string): string => path.replace(/\{(\w+)\}/g, (_, shape: string) => value(shape));

  const honest = (day: number): Line => {
    // Some operations are asked for much more often than others.
    const route = shopRoutes[Math.floor(random() ** 2 * shopRoutes.length)] ?? pick(shopRoutes);
    const subject = pick(route.callers);
    const failed = random();
    const status = failed < 0.01 ? 404 : failed < 0.015 ? 500 : route.method === 'POST' ? 201 : 200;
    return { method: route.method, path: filled(route.path), subject, status, day };
  };

  const hostile = (day: number): Line | string => {
    const path = pick(['/admin', '/.env', '/wp-login.php', '/orders/export', '/etc/passwd', `/${hex(6)}`]);
    switch (pick(hostileKinds)) {
      case 'scanner':
        return { method: 'GET', path, subject: null, reason: 'credential_missing', status: 200, day };
      case 'forged':
        return {
          method: 'DELETE',
          path: filled('/customers/{number}'),
          subject: null,
          reason: 'signature_invalid',
          day,
        };
      case 'walker':
        walked += 1;
        return { method: 'GET', path: `/customers/${String(walked)}`, subject: 'carrier', status: 200, day };
      case 'prober':
        return { method: 'GET', path, subject: 'monitor', status: 404, day };
      case 'catch_all':
        return { method: 'GET', path: `/admin/${hex(6)}x${String(below(10_000_000))}`, subject: 'search', day: 3 };
      case 'trick':
        return {
          method: 'GET',
          path: pick(['/orders/..;/admin', '/orders/%2e%2e/admin', '//admin', '/a%2Fb', '/x;y=1', '/a[redacted]']),
          subject: 'checkout',
          day,
        };
      case 'injection':
        return {
          method: 'GET',
          path: '/admin/%0a',
          subject: 'x","decision":"shadow","subject":"checkout\n{"level":"info"}',
          permissions: ['admin:all'],
          day,
        };
      case 'giant':
        return `{"level":"info","decision":"shadow","path":"/${'a'.repeat(random() < 0.02 ? 300_000 : 3_000)}`;
      case 'broken':
        return written({ method: 'GET', path: '/admin', subject: 'checkout', day }, random).slice(0, 200 + below(200));
      case 'program':
        return pick([
          'GET /admin 200 "subject":"checkout"',
          '{"msg":"not ours","level":"info","decision":"shadow","subject":"checkout","path":"/admin"}',
          '{"level":"info","time":"2026-10-05T00:00:00.000Z","msg":"started"}',
        ]);
      case 'secret':
        return { method: 'GET', path: `/reset/tok_live_${hex(24)}`, subject: 'support', day: 5 };
      case 'doubled':
        return written({ method: 'GET', path: '/admin', subject: 'monitor', day }, random).replace(
          '"decision":"shadow"',
          '"decision":"denied","decision":"shadow"',
        );
    }
  };

  for (let at = 0; at < count; at += 1) {
    const day = Math.floor((at * days) / count);
    const line = random() < hostileShare ? hostile(day) : honest(day);
    yield `${typeof line === 'string' ? line : written(line, random)}\n`;
  }
}

/** A line with the members of a real one, in their order. */
function written(line: Line, random: () => number): string {
  const { method, path, subject, status = 200, day, reason = 'route_unknown', decision = 'shadow' } = line;
  const isKnown = subject !== null;
  const { permissions = isKnown ? (shopPermissions.get(subject) ?? []) : null } = line;
  return JSON.stringify({
    level: status >= 500 ? 'warn' : 'info',
    time: new Date(firstDay + day * msPerDay + Math.floor(random() * msPerDay)).toISOString(),
    request_id: `r${String(Math.floor(random() * 1e12))}`,
    route: 'none',
    method,
    path,
    decision,
    reason,
    kind: isKnown ? 'service' : null,
    issuer: isKnown ? 'core' : null,
    subject,
    key_id: isKnown ? 'd-1' : null,
    status,
    duration_ms: 3.25,
    upstream_ms: 2.5,
    record: null,
    trace_id: null,
    protocol: 'HTTP/1.1',
    grpc_status: null,
    client_address: '127.0.0.1',
    user_agent: 'shop/1.0',
    permissions,
    missing_permissions: null,
  });
}
