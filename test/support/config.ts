import { stringify } from 'yaml';

/** A piece of config as YAML would hold it. */
export type ConfigTree = Readonly<Record<string, unknown>>;

const defaults: ConfigTree = {
  listen: { host: '127.0.0.1', port: 0 },
  admin: { host: '127.0.0.1', port: 0 },
  upstream: { url: 'http://127.0.0.1:3000' },
  issuers: {
    core: {
      issuer: 'https://api.example.com',
      jwks_url: 'http://127.0.0.1:3567/auth/jwt/jwks.json',
      audience: 'orders',
      source: 'microservice',
      token_type: 'service',
      key_ids: { accept: ['d-*'] },
    },
  },
  shutdown: { delay: '0s', grace: '5s' },
  routes: [
    { name: 'list-orders', methods: ['GET'], path: '/orders', subjects: ['checkout', 'reporting'], permissions: ['orders:read'] },
    { name: 'create-order', methods: ['POST'], path: '/orders', subjects: ['checkout'], permissions: ['orders:write'], idempotency: 'none' },
    { name: 'read-order', methods: ['GET', 'HEAD'], path: '/orders/{id}', subjects: ['checkout'], permissions: ['orders:read'] },
    { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
  ],
};

/**
 * A config that is accepted as it stands, as YAML text. Maps of the overrides are merged into it key by key, anything
 * else replaces what is there, `undefined` takes a key away.
 */
export function baseConfig(overrides: ConfigTree = {}): string {
  return stringify(merge(defaults, overrides));
}

/** `under` with `over` laid on it. */
export function merge(under: ConfigTree, over: ConfigTree): ConfigTree {
  const merged: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key];
    if (value === undefined) delete merged[key];
    else merged[key] = isTree(value) && isTree(below) ? merge(below, value) : value;
  }
  return merged;
}

function isTree(value: unknown): value is ConfigTree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
