/** The configs that are tried, in the words of the model and as YAML would hold them. */
import type { ConfigTree } from '../support/proxy-process.js';
import type { Policy, PolicyIssuer, PolicyRoute } from './model-policy.js';

const checkout = { subjects: ['checkout'], permissions: ['orders:read'] };

/** Every option of a route that needs no store. */
const routes: readonly PolicyRoute[] = [
  {
    name: 'list-orders',
    methods: ['GET'],
    path: '/orders',
    subjects: ['checkout', 'reporting'],
    permissions: ['orders:read'],
  },
  {
    name: 'create-order',
    methods: ['POST'],
    path: '/orders',
    idempotency: 'none',
    max_body: '64B',
    any_of: [
      { subjects: ['checkout'], permissions: ['orders:read', 'orders:write'] },
      { subjects: ['migration'], permissions: ['orders:import'] },
    ],
  },
  { ...checkout, name: 'read-order', methods: ['GET', 'HEAD'], path: '/orders/{id}' },
  { name: 'export', methods: ['GET'], path: '/orders/export', subjects: ['reporting'], permissions: [] },
  {
    name: 'cancel-order',
    methods: ['POST', 'DELETE'],
    path: '/orders/{id}/cancel',
    idempotency: 'none',
    subjects: ['checkout'],
    permissions: ['orders:write'],
  },
  { ...checkout, name: 'below-orders', methods: ['GET'], path: '/orders/{id}/**', permissions: [] },
  {
    name: 'admin',
    methods: ['*'],
    path: '/files/admin/**',
    subjects: ['root'],
    permissions: ['everything'],
    idempotency: 'none',
  },
  { ...checkout, name: 'files', methods: ['*'], path: '/files/**', idempotency: 'none', forward_authorization: true },
  { ...checkout, name: 'names', methods: ['GET'], path: '/names/{name}', encoded_slashes: 'allow' },
  {
    ...checkout,
    name: 'matrix',
    methods: ['GET', 'POST'],
    path: ['/matrix/{point}', '/points/{a}/{b}'],
    path_parameters: 'allow',
    idempotency: 'none',
  },
  { ...checkout, name: 'both', methods: ['GET'], path: '/both/**', path_parameters: 'allow', encoded_slashes: 'allow' },
  {
    ...checkout,
    name: 'search',
    methods: ['GET', 'POST'],
    path: '/search',
    body: 'allow',
    max_body: '16B',
    idempotency: 'none',
  },
  { ...checkout, name: 'menu', methods: ['GET'], path: '/caf%C3%A9/a%20b' },
  {
    name: 'of-partners',
    methods: ['GET', 'PUT'],
    path: '/partner/{id}',
    subjects: ['checkout', 'partner'],
    permissions: [],
    issuers: ['partner'],
  },
  { name: 'health', methods: ['GET'], path: '/healthz', access: 'public' },
  {
    name: 'open',
    methods: ['GET', 'POST'],
    path: '/open/{page}',
    access: 'public',
    forward_authorization: true,
    idempotency: 'none',
    max_body: '64B',
  },
  {
    name: 'users',
    methods: ['GET', 'POST', 'HEAD'],
    path: '/users/{id}',
    accept: ['session'],
    idempotency: 'none',
    session: { claims: { 'st-role.v': 'support' } },
  },
  {
    ...checkout,
    name: 'either',
    methods: ['GET', 'POST', 'DELETE'],
    path: '/either/{id}',
    accept: ['service', 'session'],
    session: { claims: { 'st-role.v': 'support', tId: 'public' } },
    forward_authorization: true,
    idempotency: 'none',
  },
  {
    name: 'profile',
    methods: ['GET', 'PUT'],
    path: '/profile',
    accept: ['session'],
    session: { claims: {}, forward_tokens: true },
  },
  { ...checkout, name: 'live', methods: ['GET'], path: '/live/{topic}', websocket: true },
  {
    ...checkout,
    name: 'live-either',
    methods: ['GET'],
    path: '/live',
    accept: ['service', 'session'],
    session: { claims: {} },
    websocket: true,
  },
  {
    ...checkout,
    name: 'live-app',
    methods: ['GET'],
    path: '/live/app/here',
    accept: ['service', 'session'],
    session: { claims: { tId: 'public' } },
    websocket: true,
    origins: ['https://app.example.com'],
  },
  {
    name: 'live-open',
    methods: ['GET'],
    path: '/open-live',
    access: 'public',
    websocket: true,
    origins: ['https://app.example.com'],
  },
];

const issuers: Policy['issuers'] = {
  core: {
    issuer: 'https://api.example.com',
    audience: 'orders',
    source: 'microservice',
    token_type: 'service',
    clock_skew: '5s',
    max_lifetime: '2h',
    key_ids: { accept: ['d-*'], reject: ['d-bad*'] },
  },
  partner: {
    issuer: 'https://partner.example.com',
    audience: 'orders-b2b',
    source: ['microservice', 'gateway'],
    token_type: ['service', 'machine'],
    clock_skew: '0s',
    max_lifetime: '10m',
    key_ids: { accept: ['p-1', 'p-2'] },
  },
};

const identity: Policy['identity'] = {
  subject: 'X-Auth-Subject',
  issuer: 'X-Auth-Issuer',
  permissions: 'X-Auth-Permissions',
  token_id: 'X-Auth-Token-Id',
  kind: 'X-Auth-Kind',
};

const revoked: Policy['revoked'] = {
  key_ids: ['d-gone'],
  subjects: ['withdrawn'],
  token_ids: ['stolen'],
  issuedBeforeS: null,
};

const sessions: Policy['sessions'] = { api_domain: 'https://api.example.com', api_base_path: '/auth' };

/** The moment at which tokens are judged: in the future, so that `issued_before` may lie in the past of it. */
export const nowMs = 1_800_000_000_000;

/** The policies: the defaults, and the settings that let more or less through. */
export const policies: readonly Policy[] = [
  { issuers, routes, sessions, identity, revoked, underscores: 'drop', http10: 'refuse' },
  {
    issuers: bindings('accept', 'require'),
    routes,
    sessions,
    revoked: { ...revoked, issuedBeforeS: nowMs / 1000 - 1000 },
    underscores: 'allow',
    http10: 'allow',
    identity: {
      subject: 'Remote-User',
      issuer: 'Remote-Realm',
      permissions: 'Remote-Groups',
      token_id: 'Remote-Token',
      kind: 'Remote-Kind',
    },
  },
  {
    issuers: bindings('none', 'accept'),
    routes: routes.filter(isPlain),
    sessions: null,
    identity,
    revoked,
    underscores: 'refuse',
    http10: 'refuse',
  },
];

/** What becomes of `cnf` of either issuer's tokens. */
function bindings(ofCore: PolicyIssuer['binding'], ofPartner: PolicyIssuer['binding']): Policy['issuers'] {
  const named = Object.entries({ core: ofCore, partner: ofPartner });
  return Object.fromEntries(
    Object.entries(issuers).map(([name, issuer]) => {
      const binding = named.find(([other]) => other === name)?.[1] ?? 'accept';
      return [name, { ...issuer, binding }];
    }),
  );
}

/** Without anything that a route has to ask for. */
function isPlain({
  encoded_slashes: slashes,
  path_parameters: parameters,
  body,
  accept,
  websocket,
}: PolicyRoute): boolean {
  return [slashes, parameters, body, accept, websocket].every((option) => option === undefined);
}

/** A policy as `baseConfig` takes it. */
export function configOf(policy: Policy): ConfigTree {
  const { issuedBeforeS, ...lists } = policy.revoked;
  return {
    listen: { underscore_fields: policy.underscores, http_1_0: policy.http10, body_idle_timeout: '60s' },
    receiver: {
      case_sensitive: true,
      strict_slash: true,
      format_suffix: false,
      trailing_dots: false,
      head_as_get: false,
    },
    issuers: Object.fromEntries(
      Object.entries(policy.issuers).map(([name, issuer]) => [
        name,
        {
          ...issuer,
          [issuer.profile === 'spiffe' ? 'bundle_url' : 'jwks_url']: `http://127.0.0.1:3567/${name}/jwks.json`,
        },
      ]),
    ),
    sessions: policy.sessions === null ? null : { ...policy.sessions, core_url: 'http://127.0.0.1:3567' },
    identity: { headers: policy.identity },
    revoked: { ...lists, issued_before: issuedBeforeS === null ? null : new Date(issuedBeforeS * 1000).toISOString() },
    routes: policy.routes,
  };
}
