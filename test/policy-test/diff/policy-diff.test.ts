import fc from 'fast-check';
import t from 'tap';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { assumeToken } from '../../../src/policy-test/simulate/test-credentials.js';
import { createAssumedKeys, assumedSessions } from '../../../src/policy-test/simulate/test-keys.js';
import { comparePolicies, isWider, type PolicyDiff } from '../../../src/policy-test/diff/policy-diff.js';
import { headOf, rule } from '../../../src/policy-test/simulate/decide.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import { compiled } from '../../proxy/harness.js';
import type { ConfigTree } from '../../support/proxy-process.js';

const keys = createAssumedKeys();
const nowMs = Date.now();

function policy(overrides: ConfigTree): ActiveConfig {
  const receiver = {
    case_sensitive: true,
    strict_slash: true,
    format_suffix: false,
    trailing_dots: false,
    head_as_get: false,
    path_info: false,
  };
  const config = compiled({
    ...overrides,
    receiver: { ...receiver, ...(overrides['receiver'] as object | undefined) },
  });
  return decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
}

async function compare(from: ConfigTree, to: ConfigTree): Promise<PolicyDiff> {
  return comparePolicies({ from: policy(from), to: policy(to), keys, nowMs });
}

const orders = {
  name: 'orders',
  methods: ['GET'],
  path: '/orders/{id}',
  subjects: ['checkout'],
  permissions: ['read'],
};
const write = {
  name: 'write',
  methods: ['POST'],
  path: '/orders',
  subjects: ['checkout'],
  permissions: ['write'],
  idempotency: 'required',
  single_use: true,
};
const sessions = { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' };
const core = { issuer: 'https://api.example.com', audience: 'orders', source: 'microservice', token_type: 'service' };

/** `GET /orders/{any}: + who gains - who loses` */
function effects({ operations }: PolicyDiff): readonly string[] {
  return operations.map(({ method, path, gains, loses }) =>
    [`${method} ${path}:`, ...gains.map((who) => `+ ${who}`), ...loses.map((who) => `- ${who}`)].join(' '),
  );
}

t.test('who gains and who loses which operation', async (t) => {
  const rows: readonly {
    name: string;
    from: readonly object[];
    to: readonly object[];
    effects: readonly string[];
    wider: boolean;
  }[] = [
    { name: 'nothing', from: [orders], to: [orders], effects: [], wider: false },
    {
      name: 'the order of things',
      from: [{ ...orders, subjects: ['a', 'b'] }],
      to: [{ ...orders, subjects: ['b', 'a'] }],
      effects: [],
      wider: false,
    },
    {
      name: 'a subject more',
      from: [orders],
      to: [{ ...orders, subjects: ['checkout', 'x'] }],
      effects: ['GET /orders/{any}: + x with read'],
      wider: true,
    },
    {
      name: 'a subject less',
      from: [{ ...orders, subjects: ['checkout', 'x'] }],
      to: [orders],
      effects: ['GET /orders/{any}: - x with read'],
      wider: false,
    },
    {
      name: 'all that begin as somebody did who is named like a sample',
      from: [{ ...orders, subjects: ['jobs/example', 'jobs/examplex'] }],
      to: [{ ...orders, subjects: [{ prefix: 'jobs/' }] }],
      effects: ['GET /orders/{any}: + jobs/examplexx with read'],
      wider: true,
    },
    {
      name: 'all that begin longer, beside one who is named',
      from: [{ ...orders, subjects: ['jobs/example', { prefix: 'jobs/example/' }] }],
      to: [{ ...orders, subjects: ['jobs/example', { prefix: 'jobs/' }] }],
      effects: ['GET /orders/{any}: + jobs/examplex with read'],
      wider: true,
    },
    {
      name: 'a permission more',
      from: [orders],
      to: [{ ...orders, permissions: ['read', 'all'] }],
      effects: ['GET /orders/{any}: - checkout with read'],
      wider: false,
    },
    {
      name: 'another permission',
      from: [orders],
      to: [{ ...orders, permissions: ['list'] }],
      effects: ['GET /orders/{any}: + checkout with list - checkout with read'],
      wider: true,
    },
    {
      name: 'one of several',
      from: [orders],
      to: [
        {
          name: 'orders',
          methods: ['GET'],
          path: '/orders/{id}',
          any_of: [
            { subjects: ['checkout'], permissions: ['read'] },
            { subjects: ['x'], permissions: [] },
          ],
        },
      ],
      effects: ['GET /orders/{any}: + x without permissions'],
      wider: true,
    },
    {
      name: 'public',
      from: [orders],
      to: [{ name: 'orders', methods: ['GET'], path: '/orders/{id}', access: 'public' }],
      effects: ['GET /orders/{any}: + anybody, without a credential'],
      wider: true,
    },
    {
      name: 'shadow',
      from: [orders],
      to: [{ ...orders, mode: 'shadow' }],
      effects: ['GET /orders/{any}: + anybody, without a credential'],
      wider: true,
    },
    {
      name: 'enforced',
      from: [{ ...orders, mode: 'shadow' }],
      to: [orders],
      effects: ['GET /orders/{any}: - anybody, without a credential'],
      wider: false,
    },
    {
      name: 'a method more',
      from: [orders],
      to: [{ ...orders, methods: ['GET', 'HEAD'] }],
      effects: ['HEAD /orders/{any}: + checkout with read'],
      wider: true,
    },
    {
      name: 'a route that nobody may use',
      from: [orders],
      to: [orders, { ...orders, name: 'm', path: '/m', subjects: ['mallory'] }],
      effects: ['GET /m:'],
      wider: false,
    },
    {
      name: 'a literal begins to beat {id}',
      from: [orders],
      to: [orders, { ...orders, name: 'export', path: '/orders/export', subjects: ['x'] }],
      effects: ['GET /orders/export: + x with read - checkout with read'],
      wider: true,
    },
    {
      name: 'a literal gives way to {id}',
      from: [orders, { ...orders, name: 'export', path: '/orders/export', permissions: ['read', 'export'] }],
      to: [orders],
      effects: ['GET /orders/export: + checkout with read'],
      wider: true,
    },
    {
      name: 'a literal with another method hides nothing',
      from: [orders],
      to: [
        orders,
        { ...orders, name: 'export', path: '/orders/export', methods: ['PUT'], subjects: ['x'], permissions: [] },
      ],
      effects: ['PUT /orders/export: + x without permissions'],
      wider: true,
    },
    {
      name: 'everything below',
      from: [orders],
      to: [{ ...orders, path: ['/orders/{id}', '/orders/{id}/**'] }],
      effects: ['GET /orders/{any}/: + checkout with read', 'GET /orders/{any}/**: + checkout with read'],
      wider: true,
    },
    {
      name: 'sessions',
      from: [orders],
      to: [{ ...orders, accept: ['service', 'session'], session: { claims: { role: 'support' } } }],
      effects: ['GET /orders/{any}: + a session with role "support"'],
      wider: true,
    },
    {
      name: 'another name',
      from: [orders],
      to: [{ ...orders, name: 'renamed' }],
      effects: ['GET /orders/{any}:'],
      wider: false,
    },
  ];
  const common = { sessions, revoked: { subjects: ['mallory'] } };
  for (const { name, from, to, effects: expected, wider } of rows) {
    // `sessions` may stand only where some route accepts them.
    const of = (routes: readonly object[]): ConfigTree => ({
      ...(routes.some((route) => 'session' in route) ? common : { revoked: common.revoked }),
      routes,
    });
    const diff = await compare(of(from), of(to));
    t.same(effects(diff), expected, name);
    const isByCore = name === 'sessions';
    t.equal(isWider(diff), wider, name);
    if (!isByCore) t.same(diff.settings, [], name);
  }
});

t.test('every method that no route names', async (t) => {
  const diff = await compare({ routes: [orders] }, { routes: [{ ...orders, methods: ['*'], idempotency: 'none' }] });
  t.same(effects(diff), ['* /orders/{any}: + checkout with read']);
});

t.test('shadow mode for what has no route', async (t) => {
  const diff = await compare(
    { routes: [{ ...orders, mode: 'enforce' }] },
    { mode: 'shadow', routes: [{ ...orders, mode: 'enforce' }] },
  );
  t.ok(effects(diff).includes('* /**: + anybody, without a credential'));
  t.ok(effects(diff).includes('GET /orders: + anybody, without a credential'));
  t.notOk(
    effects(diff).some((effect) => effect.startsWith('GET /orders/{any}:')),
    'the enforced one is not touched',
  );
});

t.test('several issuers', async (t) => {
  const issuers = { core, eu: { ...core, issuer: 'https://eu.example.com' } };
  const diff = await compare({ issuers, routes: [{ ...orders, issuers: ['core'] }] }, { issuers, routes: [orders] });
  t.same(effects(diff), ['GET /orders/{any}: + checkout of issuer eu with read']);
});

t.test('routes added, removed and never reached any more', async (t) => {
  const all = { ...orders, name: 'all', path: '/a/**' };
  const diff = await compare(
    { routes: [all, orders] },
    { routes: [all, { ...all, name: 'slash', path: '/a/' }, { ...all, name: 'one', path: ['/a/{x}', '/a/{x}/**'] }] },
  );
  t.same([diff.added, diff.removed, diff.shadowed], [['slash', 'one'], ['orders'], ['all /a/**']]);
});

t.test('what a route lets through, and how it is guarded', async (t) => {
  const store = { store: { memory: {} } };
  const rows: readonly { from?: object; to: object; says: string; wider: boolean }[] = [
    { to: { idempotency: 'optional' }, says: 'idempotency required optional', wider: true },
    {
      from: { idempotency: 'optional' },
      to: { idempotency: 'required' },
      says: 'idempotency optional required',
      wider: false,
    },
    { to: { single_use: false }, says: 'single_use true false', wider: true },
    {
      to: { idempotency: { mode: 'required', retention: '1h' } },
      says: 'idempotency.retention 86400000 3600000',
      wider: true,
    },
    {
      to: { idempotency: { mode: 'required', retention: '48h' } },
      says: 'idempotency.retention 86400000 172800000',
      wider: false,
    },
    {
      to: { idempotency: { mode: 'required', operation: 'other' } },
      says: 'idempotency.operation write other',
      wider: true,
    },
    {
      to: { idempotency: { mode: 'required', store_headers: ['x-a'] } },
      says: 'idempotency.store_headers',
      wider: false,
    },
    { to: { max_body: '2MiB' }, says: 'max_body 1048576 2097152', wider: true },
    { to: { max_body: '1KiB' }, says: 'max_body 1048576 1024', wider: false },
    { to: { response_timeout: '60s' }, says: 'response_timeout 30000 60000', wider: false },
    { to: { encoded_slashes: 'allow' }, says: 'encoded_slashes false true', wider: true },
    { to: { path_parameters: 'allow' }, says: 'path_parameters false true', wider: true },
    { to: { body: 'allow' }, says: 'body false true', wider: true },
    { from: { body: 'allow' }, to: {}, says: 'body true false', wider: false },
    { to: { forward_authorization: true }, says: 'forward_authorization false true', wider: true },
  ];
  for (const { from = {}, to, says, wider } of rows) {
    const diff = await compare(
      { ...store, routes: [{ ...write, ...from }] },
      { ...store, routes: [{ ...write, ...to }] },
    );
    const changes = diff.operations
      .flatMap((operation) => operation.changes)
      .map(({ setting, from: before, to: after }) => `${setting} ${before} ${after}`);
    t.ok(
      changes.some((change) => change.startsWith(says)),
      `${says}: ${changes.join(', ')}`,
    );
    t.equal(isWider(diff), wider, says);
  }
});

t.test('an issuer that takes more, or by other rules', async (t) => {
  const routes = [orders];
  const idp = { issuer: 'https://idp.example.com', profile: 'oauth', audience: 'orders' };
  const issuer = (more: object): ConfigTree => ({ routes, issuers: { idp: { ...idp, ...more } } });
  const rows: readonly { from: object; to: object; setting: string; wider: boolean }[] = [
    { from: {}, to: { algorithms: ['RS256', 'ES256', 'EdDSA'] }, setting: 'algorithms', wider: true },
    { from: {}, to: { algorithms: ['ES256'] }, setting: 'algorithms', wider: false },
    { from: {}, to: { audience: ['orders', 'api'] }, setting: 'audience', wider: true },
    { from: {}, to: { token_typ: ['at+jwt', 'JWT'] }, setting: 'token_typ', wider: true },
    { from: { token_typ: ['at+jwt', 'JWT'] }, to: {}, setting: 'token_typ', wider: false },
    { from: {}, to: { claims: { permissions: 'roles' } }, setting: 'claims', wider: true },
    { from: { claims: { require: { tenant: 'a' } } }, to: {}, setting: 'claims', wider: true },
    { from: {}, to: { jwks_origins: ['https://keys.example.com'] }, setting: 'jwks_origins', wider: true },
    { from: {}, to: { discovery_url: 'https://idp.example.com/m' }, setting: 'keys', wider: true },
  ];
  for (const { from, to, setting, wider } of rows) {
    const diff = await compare(issuer(from), issuer(to));
    t.ok(
      diff.settings.some((change) => change.setting === `issuers.idp.${setting}`),
      `${setting}: ${diff.settings.map((change) => change.setting).join(' ')}`,
    );
    t.equal(isWider(diff), wider, `${setting} ${JSON.stringify(to)}`);
  }
});

t.test('what concerns every request', async (t) => {
  const routes = [orders];
  const issuer = (more: object): ConfigTree => ({ issuers: { core: { ...core, ...more } } });
  const redis = (more: object): ConfigTree => ({ store: { redis: { url: 'redis://127.0.0.1', ...more } } });
  const rows: readonly { from?: ConfigTree; to: ConfigTree; setting: string; wider: boolean }[] = [
    { to: issuer({ clock_skew: '60s' }), setting: 'issuers.core.clock_skew', wider: true },
    { to: issuer({ clock_skew: '0s' }), setting: 'issuers.core.clock_skew', wider: false },
    { to: issuer({ max_lifetime: '24h' }), setting: 'issuers.core.max_lifetime', wider: true },
    { to: issuer({ audience: 'others' }), setting: 'issuers.core.audience', wider: true },
    { to: issuer({ source: ['microservice', 'x'] }), setting: 'issuers.core.source', wider: true },
    {
      from: issuer({ token_type: ['service', 'x'] }),
      to: issuer({}),
      setting: 'issuers.core.token_type',
      wider: false,
    },
    { to: issuer({ key_ids: { accept: ['d-*', 's-*'] } }), setting: 'issuers.core.key_ids.accept', wider: true },
    { to: issuer({ key_ids: { reject: ['d-1'] } }), setting: 'issuers.core.key_ids.reject', wider: false },
    {
      from: issuer({ key_ids: { reject: ['d-1'] } }),
      to: issuer({}),
      setting: 'issuers.core.key_ids.reject',
      wider: true,
    },
    { to: issuer({ jwks_url: 'https://other.example.com/keys?secret=1' }), setting: 'issuers.core.keys', wider: true },
    {
      to: { issuers: { core, eu: { ...core, issuer: 'https://eu.example.com' } } },
      setting: 'issuers.eu',
      wider: true,
    },
    {
      from: { issuers: { core, eu: { ...core, issuer: 'https://eu.example.com' } } },
      to: issuer({}),
      setting: 'issuers.eu',
      wider: false,
    },
    { to: { identity: { headers: { subject: 'X-User' } } }, setting: 'identity', wider: true },
    { to: { identity: { forward_authorization: true } }, setting: 'forward_authorization', wider: true },
    { to: { listen: { trust_forwarded: ['10.0.0.0/8'] } }, setting: 'listen.trust_forwarded', wider: true },
    { from: { listen: { trust_forwarded: ['10.0.0.0/8'] } }, to: {}, setting: 'listen.trust_forwarded', wider: false },
    { to: { listen: { underscore_fields: 'allow' } }, setting: 'listen.underscore_fields', wider: true },
    { to: { listen: { underscore_fields: 'refuse' } }, setting: 'listen.underscore_fields', wider: false },
    { to: { listen: { http_1_0: 'allow' } }, setting: 'listen.http_1_0', wider: true },
    { to: { listen: { body_min_rate: 499 } }, setting: 'listen.body_min_rate', wider: true },
    { to: { listen: { body_min_rate: 501 } }, setting: 'listen.body_min_rate', wider: false },
    { to: { listen: { max_header_bytes: '32KiB' } }, setting: 'listen.max_header_bytes', wider: true },
    { to: { upstream: { host: 'preserve' } }, setting: 'upstream.host', wider: true },
    { to: { upstream: { strip_fields: ['X-User'] } }, setting: 'upstream.strip_fields', wider: false },
    { from: { upstream: { strip_fields: ['X-User'] } }, to: {}, setting: 'upstream.strip_fields', wider: true },
    { to: { upstream: { pass_fields: ['CF-IPCountry'] } }, setting: 'upstream.pass_fields', wider: true },
    { to: { upstream: { reuse: 'always' } }, setting: 'upstream.reuse', wider: true },
    { to: { upstream: { reuse: 'never' } }, setting: 'upstream.reuse', wider: false },
    { from: { upstream: { reuse: 'never' } }, to: {}, setting: 'upstream.reuse', wider: true },
    { to: { receiver: { reads_bodies: true } }, setting: 'receiver.reads_bodies', wider: true },
    { from: { receiver: { reads_bodies: true } }, to: {}, setting: 'receiver.reads_bodies', wider: false },
    { from: redis({}), to: redis({ kept_per_caller: '1MiB' }), setting: 'store.redis.kept_per_caller', wider: false },
    {
      from: redis({}),
      to: redis({ start_without_revocations: true }),
      setting: 'store.redis.start_without_revocations',
      wider: true,
    },
    { to: { revoked: { token_ids: ['a'] } }, setting: 'revoked.token_ids', wider: false },
    { from: { revoked: { key_ids: ['d-1'] } }, to: {}, setting: 'revoked.key_ids', wider: true },
    {
      from: { revoked: { issued_before: '2026-01-01T00:00:00Z' } },
      to: {},
      setting: 'revoked.issued_before',
      wider: true,
    },
    { to: { revoked: { issued_before: '2026-01-01T00:00:00Z' } }, setting: 'revoked.issued_before', wider: false },
    {
      from: { revoked: { issued_before: '2026-01-02T00:00:00Z' } },
      to: { revoked: { issued_before: '2026-01-01T00:00:00Z' } },
      setting: 'revoked.issued_before',
      wider: true,
    },
  ];
  for (const { from = issuer({}), to, setting, wider } of rows) {
    const diff = await compare({ ...issuer({}), ...from, routes }, { ...issuer({}), ...to, routes });
    const found = [...diff.settings, ...diff.operations.flatMap((operation) => operation.changes)];
    t.ok(
      found.some((change) => change.setting === setting),
      `${setting}: ${found.map((change) => change.setting).join(' ')}`,
    );
    t.equal(isWider(diff), wider, `${setting} ${wider ? 'wider' : 'not wider'}`);
    t.notMatch(JSON.stringify(diff), /secret/);
  }
});

const subject = fc.constantFrom('a', 'b');
const permissions = fc.subarray(['p', 'q']);
const approval = fc.record({ subjects: fc.uniqueArray(subject, { minLength: 1 }), permissions });
const anyRoute = fc.record({
  methods: fc.subarray(['GET', 'PUT'], { minLength: 1 }),
  path: fc.constantFrom('/a', '/a/{x}', '/a/b', '/{x}/b', '/a/**', '/**', '/{x}/{y}/c', '/a/'),
  any_of: fc.array(approval, { minLength: 1, maxLength: 2 }),
  mode: fc.constantFrom('enforce', 'enforce', 'enforce', 'shadow'),
});
const routes = fc
  .uniqueArray(anyRoute, { minLength: 1, maxLength: 5, selector: ({ path }) => path })
  .map((all) => all.map((each, index) => ({ ...each, name: `r${index}` })));
const asked = fc.record({
  method: fc.constantFrom('GET', 'PUT', 'DELETE'),
  path: fc
    .array(fc.constantFrom('a', 'b', 'c', 'z'), { minLength: 1, maxLength: 4 })
    .map((segments) => `/${segments.join('/')}`),
  sub: subject,
  permissions,
});

t.test('nobody gains or loses anything that it does not tell of: random policies, callers and requests', async (t) => {
  let gained = 0;
  await fc.assert(
    fc.asyncProperty(
      routes,
      routes,
      fc.array(asked, { minLength: 10, maxLength: 10 }),
      async (one, other, requests) => {
        const [from, to] = [policy({ routes: one }), policy({ routes: other })];
        const diff = await comparePolicies({ from, to, keys, nowMs });
        for (const { method, path, sub, permissions: held } of requests) {
          const request = { method, path, headers: [], body: null };
          const decide = async (activeConfig: ActiveConfig): Promise<boolean> =>
            (
              await rule(
                headOf(request, assumeToken({ sub, permissions: held }, request, activeConfig, keys, nowMs).headers),
                0,
                activeConfig,
                nowMs,
              )
            ).decision !== 'denied';
          const [was, is] = [await decide(from), await decide(to)];
          if (!was && is && !isWider(diff)) return false;
          if (was && !is && diff.operations.every(({ loses }) => loses.length === 0)) return false;
          if (!was && is) gained += 1;
        }
        return true;
      },
    ),
    { numRuns: 25 },
  );
  t.ok(gained > 0, 'some did gain');
});
