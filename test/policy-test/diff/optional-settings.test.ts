import t from 'tap';
import { shippedSchema } from '../../../src/config/docs/json-schema.js';
import { saidByAnother, type KeyChanges } from '../../../src/config/schema/key-changes.js';
import { keyChanges, sectionNames } from '../../../src/config/sections/index.js';
import { targetKeys } from '../../../src/config/sections/egress/targets.js';
import { tokenKeys } from '../../../src/config/sections/egress/tokens.js';
import { issuerKeys } from '../../../src/config/sections/issuers/issuers.js';
import { routeKeys } from '../../../src/config/sections/routes/routes.js';
import { comparePolicies } from '../../../src/policy-test/diff/policy-diff.js';
import { settingsChanges } from '../../../src/policy-test/diff/setting-changes.js';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { assumedSessions, createAssumedKeys } from '../../../src/policy-test/simulate/test-keys.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import { compiled } from '../../proxy/harness.js';
import type { ConfigTree } from '../../support/proxy-process.js';

const keys = createAssumedKeys();

function policy(overrides: ConfigTree): ActiveConfig {
  const config = compiled(overrides);
  return decideOnly(config, keys.sourceOf, assumedSessions(config, keys));
}

/** Callers are tried where the settings alone tell no change: that takes longer. */
async function tellsChange(from: ActiveConfig, to: ActiveConfig): Promise<boolean> {
  if (settingsChanges(from.config, to.config).length > 0) return true;
  const { operations } = await comparePolicies({ from, to, keys, nowMs: Date.now() });
  return operations.length > 0;
}

interface Node {
  readonly type?: string | readonly string[];
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node | false;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
  readonly oneOf?: readonly Node[];
}

/** What may be left out, be null or be turned on: `issuers.*` is any issuer, `routes.[]` any route. */
function optionalSettings(node: Node, path = ''): readonly string[] {
  const alternatives = [node, ...(node.anyOf ?? []), ...(node.oneOf ?? [])];
  const types = alternatives.flatMap(({ type = [] }) => type);
  const isOptional =
    types.includes('null') || types.includes('boolean') || (types.includes('array') && node.default !== undefined);
  const below = (key: string): string => (path === '' ? key : `${path}.${key}`);
  return [
    ...(isOptional && path !== '' ? [path] : []),
    ...alternatives.flatMap(({ properties = {}, additionalProperties: any = false, items }) => [
      ...Object.entries(properties).flatMap(([key, inner]) => optionalSettings(inner, below(key))),
      ...(any === false ? [] : optionalSettings(any, below('*'))),
      ...(items === undefined ? [] : optionalSettings(items, below('[]'))),
    ]),
  ];
}

/** Where the keys of a setting are answered for, by how its name begins: the longest one counts. */
const answers: readonly (readonly [beginning: string, keys: KeyChanges<never>])[] = [
  ['issuers.*', issuerKeys],
  ['routes.[]', routeKeys],
  ['egress.tokens.*', tokenKeys],
  ['egress.targets.[]', targetKeys],
  ['decide.[]', keyChanges.decide],
  ...sectionNames.map((name) => [name, keyChanges[name]] as const),
];

/** Whether the page says of a setting, or of all that is below it, that it is not compared. */
function isSilent(setting: string): boolean {
  const [beginning, answered] = answers.find(([start]) => `${setting}.`.startsWith(`${start}.`)) ?? ['', {}];
  const rest = setting.slice(beginning.length + 1);
  const below = Object.entries(answered).filter(([key]) => rest === '' || `${key}.`.startsWith(`${rest}.`));
  return below.length > 0 && below.every(([, change]) => change.widens === undefined && change !== saidByAnother);
}

const listen = (more: object): ConfigTree => ({ listen: { ...more } });
const tls = (more: object): ConfigTree => listen({ tls: { cert_file: '/c', key_file: '/k', ...more } });
const store = { store: { memory: {} } };
const dpop = (more: object): ConfigTree => ({
  ...listen({ dpop: { origins: ['https://api.example.com'], ...more } }),
  ...store,
});
const upstream = (more: object): ConfigTree => ({ upstream: { url: 'https://app.example', ...more } });
const issuer = (more: object): ConfigTree => ({ issuers: { core: { ...more } } });
const idp = (more: object): ConfigTree =>
  issuer({ profile: 'oauth', source: undefined, token_type: undefined, ...more });
const question = { client_id: 'me', client_secret_file: '/s' };
const introspection = (more: object): ConfigTree =>
  idp({ introspection: { url: 'https://idp.example.com/introspect', ...question, ...more } });
const byKey = { client_auth: 'private_key_jwt', client_secret_file: undefined, key_file: '/k' };
const byCertificate = { client_auth: 'tls_client_auth', client_secret_file: undefined, key_file: '/k' };
const spiffe = (more: object): ConfigTree =>
  idp({ profile: 'spiffe', issuer: undefined, jwks_url: undefined, trust_domain: 'prod.example', ...more });
const kubernetes = (more: object): ConfigTree => idp({ profile: 'kubernetes', jwks_url: undefined, ...more });
const discovering = (more: object): ConfigTree => idp({ jwks_url: undefined, ...more });
const plain = { name: 'r', methods: ['GET'], path: '/r', subjects: ['a'], permissions: [] };
const route = (more: object, rest: ConfigTree = {}): ConfigTree => ({ ...rest, routes: [{ ...plain, ...more }] });
const user = { name: 'r', methods: ['GET'], path: '/r', accept: ['session'] };
const core = { core_url: 'http://127.0.0.1:3567', api_domain: 'https://api.example.com' };
const sessions = (more: object, own: object = {}): ConfigTree => ({
  sessions: { ...core, ...more },
  routes: [{ ...user, session: { claims: {}, ...own } }],
});
const redis = (more: object): ConfigTree => ({ store: { redis: { url: 'rediss://redis-a', ...more } } });
const sentinel = { url: undefined, sentinel: { name: 'a', nodes: ['x:1'] } };
const cluster = { url: undefined, cluster: { nodes: ['x:1'] } };
const writing = { methods: ['POST'], path: '/r', idempotency: 'required' };
const write = (more: object): ConfigTree => route({ ...writing, idempotency: { mode: 'required', ...more } }, store);
const headers = (more: object): ConfigTree => ({ identity: { headers: { ...more } } });
const target = { name: 'o', prefix: '/o', url: 'https://o.example', allow: [{ methods: ['GET'], path: '/a' }] };
const tokens = { f: { file: '/t' } };
const egress = (more: object, own: object = {}): ConfigTree => ({
  egress: { tokens, targets: [{ ...target, token: 'f', ...more }], ...own },
});
const socket = (more: object): ConfigTree => egress({}, { listen: { unix: '/s', ...more } });
const token = (more: object): ConfigTree => egress({}, { tokens: { f: more } });
const place = { curl_config: '/core.curl', issuer: 'https://api.example.com' };
const claims = { aud: 'o', sub: 's', source: 'x', token_type: 'y', permissions: [] };
const minted = (more: object, inner: object = {}): ConfigTree =>
  token({ core: { ...place, ...inner }, claims, ...more });
const client = { issuer: 'https://idp.example.com', client_id: 'me', auth: { secret_file: '/s' } };
const granted = (more: object): ConfigTree => token({ oauth: { ...client, ...more } });
const signed = { private_key_file: '/k' };
const shown = { certificate_file: '/c', key_file: '/k' };
const decide = (more: object): ConfigTree => ({ decide: { port: 9_000, form: 'envoy', ...more } });
const decides = (more: object): ConfigTree => ({
  decide: [
    { port: 9_000, form: 'envoy' },
    { port: 9_001, form: 'envoy', ...more },
  ],
});
const collector = { endpoint: 'https://collector.example' };
const telemetry = (more: object, own: object = {}): ConfigTree => ({
  telemetry: { otlp: { ...collector, ...more }, ...own },
});

/** Each setting without, and with it. */
const pairs: Readonly<Record<string, readonly [off: ConfigTree, on: ConfigTree]>> = {
  'listen.tls': [{}, tls({})],
  'listen.tls.client_ca_file': [tls({}), tls({ client_ca_file: '/ca' })],
  'listen.tls_terminated_by': [{}, listen({ tls_terminated_by: 'the mesh' })],
  'listen.trust_forwarded': [{}, listen({ trust_forwarded: ['10.0.0.0/8'] })],
  'listen.client_cert_header': [
    listen({ trust_forwarded: ['10.0.0.0/8'], tls_terminated_by: 'x' }),
    listen({ trust_forwarded: ['10.0.0.0/8'], tls_terminated_by: 'x', client_cert_header: true }),
  ],
  'listen.dpop': [store, dpop({})],
  'listen.dpop.nonce_key_file': [dpop({}), dpop({ nonce_key_file: '/n' })],
  'listen.http2': [{}, listen({ http2: true })],
  'admin.console': [{}, { admin: { console: false } }],
  probes: [{}, { probes: { host: '127.0.0.1', port: 9_902 } }],
  'upstream.ca_file': [upstream({}), upstream({ ca_file: '/ca' })],
  'upstream.server_name': [upstream({}), upstream({ server_name: 'x.example' })],
  'upstream.begin_trace': [{}, { upstream: { begin_trace: false } }],
  'upstream.strip_fields': [{}, { upstream: { strip_fields: ['X-Tenant'] } }],
  'upstream.pass_fields': [{}, { upstream: { pass_fields: ['CF-IPCountry'] } }],
  'upstream.http2': [{}, { upstream: { http2: true } }],
  ...Object.fromEntries(
    Object.entries({
      case_sensitive: true,
      strict_slash: true,
      format_suffix: false,
      trailing_dots: false,
      head_as_get: false,
      options_as_get: false,
      path_info: false,
      reads_bodies: true,
    }).map(([key, value]) => [`receiver.${key}`, [{}, { receiver: { [key]: value } }] as const]),
  ),
  'issuers.*.discovery': [idp({ jwks_url: 'https://api.example.com/k' }), discovering({ discovery: true })],
  'issuers.*.discovery_url': [
    discovering({ discovery: true }),
    discovering({ discovery_url: 'https://x.example/.well-known/openid-configuration' }),
  ],
  'issuers.*.jwks_origins': [
    discovering({ discovery: true }),
    discovering({ discovery: true, jwks_origins: ['https://keys.example'] }),
  ],
  'issuers.*.token_file': [kubernetes({ token_file: null }), kubernetes({ token_file: '/t' })],
  'issuers.*.bundle_url': [spiffe({ bundle_file: '/b' }), spiffe({ bundle_url: 'https://x.example/b' })],
  'issuers.*.bundle_file': [spiffe({ bundle_url: 'https://x.example/b' }), spiffe({ bundle_file: '/b' })],
  'issuers.*.claims.require.*': [idp({}), idp({ claims: { require: { tenant: 'a' } } })],
  'issuers.*.claims.require.*.[]': [
    idp({ claims: { require: { verified: true } } }),
    idp({ claims: { require: { verified: [true, false] } } }),
  ],
  'issuers.*.jwks_url': [discovering({ discovery: true }), idp({ jwks_url: 'https://api.example.com/k' })],
  'issuers.*.jwks_url_because': [
    idp({ jwks_url: 'https://x.example/k' }),
    idp({ jwks_url: 'https://x.example/k', jwks_url_because: 'a mirror' }),
  ],
  'issuers.*.jwks_file': [idp({}), idp({ jwks_url: undefined, jwks_file: '/k' })],
  'issuers.*.key_ids.reject': [{}, issuer({ key_ids: { reject: ['old'] } })],
  'issuers.*.jwks.max_stale': [{}, issuer({ jwks: { max_stale: '2h' } })],
  'issuers.*.introspection': [idp({}), introspection({})],
  'issuers.*.introspection.url': [
    discovering({ discovery: true, introspection: question }),
    discovering({ discovery: true, introspection: { ...question, url: 'https://idp.example.com/i' } }),
  ],
  'issuers.*.introspection.client_secret_file': [introspection({}), introspection({ client_secret_file: '/s2' })],
  'issuers.*.introspection.key_file': [introspection({}), introspection(byKey)],
  'issuers.*.introspection.cert_file': [introspection({}), introspection({ ...byCertificate, cert_file: '/c' })],
  'issuers.*.introspection.key_id': [introspection(byKey), introspection({ ...byKey, key_id: 'k' })],
  'issuers.*.introspection.algorithm': [introspection(byKey), introspection({ ...byKey, algorithm: 'ES256' })],
  'issuers.*.introspection.require_aud': [introspection({}), introspection({ require_aud: false })],
  'issuers.*.introspection.has_jti': [introspection({}), introspection({ has_jti: true })],
  'issuers.*.ca_file': [
    idp({ jwks_url: 'https://x.example/k' }),
    idp({ jwks_url: 'https://x.example/k', ca_file: '/ca' }),
  ],
  'issuers.*.allow_http': [{}, issuer({ allow_http: true })],
  token_cache: [{}, { token_cache: null }],
  sessions: [{}, sessions({})],
  'sessions.api_key': [sessions({}), sessions({ api_key: 'a-key-of-the-core-0123' })],
  'sessions.check_database': [sessions({}), sessions({ check_database: true })],
  'sessions.cookie_domain': [sessions({}), sessions({ cookie_domain: 'example.com' })],
  ...Object.fromEntries(
    ['subject', 'issuer', 'permissions', 'token_id', 'kind'].map((key) => [
      `identity.headers.${key}`,
      [headers({ [key]: null }), {}] as const,
    ]),
  ),
  'identity.headers.client_certificate': [
    tls({ client_ca_file: '/ca' }),
    { ...tls({ client_ca_file: '/ca' }), ...headers({ client_certificate: 'X-Auth-Client' }) },
  ],
  'identity.forward_authorization': [{}, { identity: { forward_authorization: true } }],
  'identity.assertion': [{}, { identity: { assertion: { key_file: '/k', audience: 'orders', issuer: 'sallyport' } } }],
  store: [{}, store],
  'store.redis': [store, redis({})],
  'store.redis.url': [redis(sentinel), redis({})],
  'store.redis.sentinel': [redis({}), redis(sentinel)],
  'store.redis.cluster': [redis({}), redis(cluster)],
  'store.redis.username': [redis({}), redis({ username: 'u', password_file: '/p' })],
  'store.redis.password_file': [redis({}), redis({ password_file: '/p' })],
  'store.redis.tls': [redis({}), redis({ tls: { ca_file: '/ca' } })],
  'store.redis.tls.ca_file': [
    redis({ tls: { server_name: 'x' } }),
    redis({ tls: { server_name: 'x', ca_file: '/c' } }),
  ],
  'store.redis.tls.server_name': [
    redis({ tls: { ca_file: '/c' } }),
    redis({ tls: { server_name: 'x', ca_file: '/c' } }),
  ],
  'store.redis.start_without_revocations': [redis({}), redis({ start_without_revocations: true })],
  'store.redis.kept_per_caller': [redis({ kept_per_caller: null }), redis({ kept_per_caller: '1MiB' })],
  'store.memory': [{}, store],
  'revoked.key_ids': [{}, { revoked: { key_ids: ['k'] } }],
  'revoked.subjects': [{}, { revoked: { subjects: ['s'] } }],
  'revoked.token_ids': [{}, { revoked: { token_ids: ['t'] } }],
  'revoked.issued_before': [{}, { revoked: { issued_before: '2026-01-01T00:00:00Z' } }],
  'log.client_address': [{}, { log: { client_address: false } }],
  'log.user_agent': [{}, { log: { user_agent: false } }],
  'log.refusals_per_second': [{}, { log: { refusals_per_second: null } }],
  limits: [{}, { limits: { requests_per_second: 5 } }],
  'limits.requests_per_second': [
    { limits: { max_in_flight: 5 } },
    { limits: { max_in_flight: 5, requests_per_second: 5 } },
  ],
  'limits.max_in_flight': [
    { limits: { requests_per_second: 5 } },
    { limits: { max_in_flight: 5, requests_per_second: 5 } },
  ],
  'limits.shared': [
    { ...redis({}), limits: { requests_per_second: 5 } },
    { ...redis({}), limits: { requests_per_second: 5, shared: true } },
  ],
  'routes.[].accept': [
    route({}, { sessions: core }),
    route({ accept: ['service', 'session'], session: { claims: {} } }, { sessions: core }),
  ],
  'routes.[].session': [route({}, { sessions: core }), sessions({})],
  'routes.[].session.claims.*': [sessions({}), sessions({}, { claims: { admin: true } })],
  'routes.[].session.forward_tokens': [sessions({}), sessions({}, { forward_tokens: true })],
  'routes.[].limits': [route({}), route({ limits: { requests_per_second: 5 } })],
  'routes.[].limits.requests_per_second': [
    route({ limits: { max_in_flight: 5 } }),
    route({ limits: { max_in_flight: 5, requests_per_second: 5 } }),
  ],
  'routes.[].limits.max_in_flight': [
    route({ limits: { requests_per_second: 5 } }),
    route({ limits: { max_in_flight: 5, requests_per_second: 5 } }),
  ],
  'routes.[].limits.shared': [
    route({ limits: { requests_per_second: 5 } }, redis({})),
    route({ limits: { requests_per_second: 5, shared: true } }, redis({})),
  ],
  'routes.[].websocket': [route({}), route({ websocket: true })],
  'routes.[].forward_authorization': [route({}), route({ forward_authorization: true })],
  'routes.[].idempotency.fields': [write({}), write({ fields: ['X-Tenant'] })],
  'routes.[].idempotency.store_headers': [write({}), write({ store_headers: ['X-Total'] })],
  'routes.[].single_use': [route(writing, store), route({ ...writing, single_use: true }, store)],
  egress: [{}, egress({})],
  'egress.listen.unix': [egress({}), socket({})],
  'egress.listen.owner': [socket({}), socket({ owner: '1000:1000' })],
  'egress.listen.http2': [egress({}), egress({}, { listen: { http2: true } })],
  'egress.tokens.*.core': [egress({}), minted({})],
  'egress.tokens.*.core.allow_http': [minted({}), minted({}, { allow_http: true })],
  'egress.tokens.*.core.allow_public_core': [minted({}), minted({}, { allow_public_core: true })],
  'egress.tokens.*.claims': [egress({}), minted({})],
  'egress.tokens.*.claims.permissions': [minted({}), minted({ claims: { ...claims, permissions: ['read'] } })],
  'egress.tokens.*.lifetime': [minted({}), minted({ lifetime: '1m' })],
  'egress.tokens.*.single_use': [minted({}), minted({ single_use: true })],
  'egress.tokens.*.dpop': [minted({}), minted({ dpop: true })],
  'egress.tokens.*.oauth': [egress({}), granted({})],
  'egress.tokens.*.oauth.token_url': [granted({}), granted({ token_url: 'https://idp.example.com/token' })],
  'egress.tokens.*.oauth.auth.secret_file': [granted({ auth: signed }), granted({})],
  'egress.tokens.*.oauth.auth.secret_in': [granted({}), granted({ auth: { secret_file: '/s', secret_in: 'body' } })],
  'egress.tokens.*.oauth.auth.private_key_file': [granted({}), granted({ auth: signed })],
  'egress.tokens.*.oauth.auth.key_id': [granted({ auth: signed }), granted({ auth: { ...signed, key_id: 'k' } })],
  'egress.tokens.*.oauth.auth.algorithm': [
    granted({ auth: signed }),
    granted({ auth: { ...signed, algorithm: 'ES256' } }),
  ],
  'egress.tokens.*.oauth.auth.certificate_file': [granted({}), granted({ auth: shown })],
  'egress.tokens.*.oauth.auth.key_file': [granted({}), granted({ auth: shown })],
  'egress.tokens.*.oauth.scope': [granted({}), granted({ scope: 'a' })],
  'egress.tokens.*.oauth.audience': [granted({}), granted({ audience: 'a' })],
  'egress.tokens.*.oauth.resource': [granted({}), granted({ resource: 'https://o.example' })],
  'egress.tokens.*.oauth.ca_file': [granted({}), granted({ ca_file: '/ca' })],
  'egress.tokens.*.file': [granted({}), egress({})],
  'egress.targets.[].ca_file': [egress({}), egress({ ca_file: '/ca' })],
  'egress.targets.[].server_name': [egress({}), egress({ server_name: 'x' })],
  'egress.targets.[].cert_file': [egress({}), egress({ cert_file: '/c', key_file: '/k' })],
  'egress.targets.[].key_file': [egress({}), egress({ cert_file: '/c', key_file: '/k' })],
  'egress.targets.[].token': [
    egress(
      {},
      {
        targets: [
          { ...target, token: null },
          { ...target, name: 'p', prefix: '/p', token: 'f' },
        ],
      },
    ),
    egress(
      {},
      {
        targets: [
          { ...target, token: 'f' },
          { ...target, name: 'p', prefix: '/p', token: 'f' },
        ],
      },
    ),
  ],
  'egress.targets.[].key_from': [
    egress({ idempotency: 'require' }),
    egress({ idempotency: 'require', key_from: { header: 'X-Id' } }),
  ],
  'egress.targets.[].websocket': [egress({}), egress({ websocket: true })],
  'egress.targets.[].http2': [egress({}), egress({ http2: true })],
  decide: [{}, decide({})],
  'decide.trust': [decide({}), decide({ trust: ['10.0.0.1'] })],
  'decide.tls_terminated_by': [decide({}), decide({ tls_terminated_by: 'the mesh' })],
  'decide.prefix': [decide({}), decide({ prefix: '/d' })],
  'decide.accept': [decide({}), decide({ accept: ['unreserved'] })],
  'decide.[].trust': [decides({}), decides({ trust: ['10.0.0.1'] })],
  'decide.[].tls_terminated_by': [decides({}), decides({ tls_terminated_by: 'the mesh' })],
  'decide.[].prefix': [decides({}), decides({ prefix: '/d' })],
  'decide.[].accept': [decides({}), decides({ accept: ['unreserved'] })],
  'telemetry.otlp': [{}, telemetry({})],
  'telemetry.otlp.headers_file': [telemetry({}), telemetry({ headers_file: '/h' })],
  'telemetry.otlp.ca_file': [telemetry({}), telemetry({ ca_file: '/ca' })],
  'telemetry.metrics': [telemetry({}), telemetry({}, { metrics: true })],
  'telemetry.logs': [telemetry({}), telemetry({}, { logs: true })],
};

const settings = [...new Set(optionalSettings(shippedSchema() as Node))];

t.test('each optional setting of the config has a pair of configs without and with it', (t) => {
  t.same(
    settings.filter((setting) => !Object.hasOwn(pairs, setting)),
    [],
  );
  t.same(
    Object.keys(pairs).filter((setting) => !settings.includes(setting)),
    [],
  );
  t.end();
});

t.test('what is turned on or off is told, or the page says that it is not compared', async (t) => {
  for (const [setting, [off, on]] of Object.entries(pairs)) {
    await t.test(setting, async (t) => {
      const [without, having] = [policy(off), policy(on)];
      if (isSilent(setting)) return;
      t.ok(await tellsChange(without, having), 'turned on');
      t.ok(await tellsChange(having, without), 'turned off');
    });
  }
});
