import t from 'tap';
import { decideOnly } from '../../../src/policy-test/simulate/offline-config.js';
import { createAssumedKeys } from '../../../src/policy-test/simulate/test-keys.js';
import { comparePolicies, isWider } from '../../../src/policy-test/diff/policy-diff.js';
import type { ActiveConfig } from '../../../src/proxy/auth/active-config.js';
import { compiled } from '../../proxy/harness.js';
import type { ConfigTree } from '../../support/proxy-process.js';

const keys = createAssumedKeys();
const route = { name: 'r', methods: ['GET'], path: '/r', subjects: ['a'], permissions: [] };
const routes = [route];

function policy(overrides: ConfigTree): ActiveConfig {
  return decideOnly(compiled({ routes, ...overrides }), keys.sourceOf, null);
}

t.test('what guards less is told, and widens access; back again it does not', async (t) => {
  const redis = (more: object): ConfigTree => ({ store: { redis: { url: 'redis://127.0.0.1', ...more } } });
  const dpop = (more: object): ConfigTree => ({
    listen: { dpop: { origins: ['https://api.example.com'], ...more } },
    store: { memory: {} },
  });
  const tlsRedis = (more: object): ConfigTree => redis({ url: 'rediss://redis-a:6379', ...more });
  const sentinel = (name: string, ...nodes: readonly string[]): ConfigTree =>
    redis({ url: undefined, sentinel: { name, nodes } });
  const cluster = (...nodes: readonly string[]): ConfigTree => redis({ url: undefined, cluster: { nodes } });
  const target = {
    name: 'o',
    prefix: '/o',
    url: 'https://o.example',
    token: 'f',
    allow: [{ methods: ['GET'], path: '/a' }],
    idempotency: 'require',
  };
  const tokens = { f: { file: '/run/t1' }, admin: { file: '/run/t2' } };
  const egress = (more: object, own: object = {}): ConfigTree => ({
    egress: { tokens, targets: [{ ...target, ...more }], ...own },
  });
  const minted = (core: object, more: object = {}): ConfigTree =>
    egress(
      {},
      {
        tokens: {
          f: {
            core: { curl_config: '/core.curl', issuer: 'https://api.example.com', ...core },
            claims: { aud: 'o', sub: 's', source: 'x', token_type: 'y', permissions: ['a'] },
            ...more,
          },
        },
      },
    );
  const https = (more: object): ConfigTree => ({ upstream: { url: 'https://app.example', ...more } });
  const idp = (more: object): ConfigTree => ({
    issuers: { idp: { issuer: 'https://idp.example.com', profile: 'oauth', audience: 'orders', ...more } },
  });
  const signed = { jwks_url: 'https://idp.example.com/k' };
  const opaque = idp({
    ...signed,
    introspection: { url: 'https://idp.example.com/i', client_id: 'me', client_secret_file: '/s' },
  });
  const decides = (first: object, second: object): ConfigTree => ({
    decide: [
      { port: 9_000, form: 'envoy', ...first },
      { port: 9_001, form: 'envoy', ...second },
    ],
  });
  const asking = { port: 9_000, form: 'nginx', trust: ['10.0.0.1'], accept: ['unreserved'] };
  const other = { port: 9_001, form: 'envoy', trust: ['10.0.0.2'], accept: ['connections'] };
  const changes: readonly { weak: ConfigTree; strong: ConfigTree; setting: string; both?: true }[] = [
    { weak: dpop({}), strong: dpop({ nonce_key_file: '/nk' }), setting: 'listen.dpop.nonce_key_file' },
    {
      weak: { listen: { max_websockets: 2 } },
      strong: { listen: { max_websockets: 1 } },
      setting: 'listen.max_websockets',
    },
    {
      weak: idp({ jwks: { min_age: '10m' } }),
      strong: idp({ jwks: { min_age: '10s' } }),
      setting: 'issuers.idp.jwks.min_age',
    },
    { weak: idp({ allow_http: true }), strong: idp({}), setting: 'issuers.idp.allow_http' },
    {
      weak: idp({ jwks_url: 'https://idp.example.com/k?secret=1' }),
      strong: idp({ jwks_url: 'https://idp.example.com/k?secret=2' }),
      setting: 'issuers.idp.keys',
      both: true,
    },
    { weak: opaque, strong: idp(signed), setting: 'issuers.idp.introspection' },
    {
      weak: decides({ accept: ['unreserved'] }, {}),
      strong: decides({}, { accept: ['unreserved'] }),
      setting: 'decide.accept',
      both: true,
    },
    ...['decide.form', 'decide.trust', 'decide.accept'].flatMap((setting) => [
      { weak: { decide: [asking, other] }, strong: { decide: [other] }, setting },
      { weak: { decide: [other, asking] }, strong: { decide: [other] }, setting },
      { weak: { decide: [{ ...asking, port: 0 }, other] }, strong: { decide: other }, setting },
    ]),
    {
      weak: decides({ trust: ['10.0.0.1'] }, { trust: ['10.0.0.2'] }),
      strong: decides({ trust: ['10.0.0.2'] }, { trust: ['10.0.0.1'] }),
      setting: 'decide.trust',
      both: true,
    },
    { weak: { upstream: { url: 'http://app.example' } }, strong: https({}), setting: 'upstream.url' },
    ...['unix:/run/app.sock', 'http://127.0.0.1:3000', 'http://localhost:3000', 'http://[::1]:3000'].map((url) => ({
      weak: { upstream: { url: 'http://10.9.8.7:3000' } },
      strong: { upstream: { url } },
      setting: 'upstream.url',
    })),
    { weak: https({}), strong: https({ ca_file: '/ca' }), setting: 'upstream.ca_file' },
    { weak: https({}), strong: https({ server_name: 'x.example' }), setting: 'upstream.server_name', both: true },
    ...['case_sensitive', 'strict_slash'].map((key) => ({
      weak: { receiver: { [key]: true } },
      strong: { receiver: { [key]: false } },
      setting: `receiver.${key}`,
    })),
    ...['format_suffix', 'trailing_dots', 'head_as_get', 'options_as_get', 'path_info'].map((key) => ({
      weak: { receiver: { [key]: false } },
      strong: { receiver: { [key]: true } },
      setting: `receiver.${key}`,
    })),
    { weak: { store: { memory: {} } }, strong: redis({}), setting: 'store' },
    { weak: {}, strong: redis({}), setting: 'store' },
    { weak: tlsRedis({}), strong: tlsRedis({ prefix: 'other' }), setting: 'store.redis.prefix', both: true },
    { weak: tlsRedis({}), strong: tlsRedis({ url: 'rediss://redis-b' }), setting: 'store.redis.url', both: true },
    { weak: tlsRedis({}), strong: tlsRedis({ url: 'rediss://redis-a/1' }), setting: 'store.redis.url', both: true },
    { weak: redis({ url: 'redis://redis-a' }), strong: tlsRedis({}), setting: 'store.redis.tls' },
    { weak: tlsRedis({}), strong: tlsRedis({ tls: { ca_file: '/ca' } }), setting: 'store.redis.tls' },
    { weak: tlsRedis({}), strong: tlsRedis({ tls: { server_name: 'x' } }), setting: 'store.redis.tls', both: true },
    { weak: sentinel('a', 'x:1'), strong: sentinel('b', 'x:1'), setting: 'store.redis.sentinel', both: true },
    { weak: sentinel('a', 'x:1'), strong: sentinel('a', 'y:1'), setting: 'store.redis.sentinel', both: true },
    { weak: cluster('x:1'), strong: cluster('y:1'), setting: 'store.redis.cluster', both: true },
    { weak: cluster('x:1'), strong: sentinel('a', 'x:1'), setting: 'store.redis.cluster', both: true },
    {
      weak: egress({ allow: [{ methods: ['*'], path: '/**' }] }),
      strong: egress({}),
      setting: 'egress.targets.o.allow',
      both: true,
    },
    {
      weak: egress({ allow: [...target.allow, { methods: ['GET', 'PUT'], path: '/b' }] }),
      strong: egress({}),
      setting: 'egress.targets.o.allow',
    },
    { weak: egress({ token: 'admin' }), strong: egress({}), setting: 'egress.targets.o.token', both: true },
    { weak: egress({}), strong: egress({ token: null }), setting: 'egress.targets.o.token' },
    { weak: egress({ url: 'https://x.example' }), strong: egress({}), setting: 'egress.targets.o.url', both: true },
    { weak: egress({ url: 'https://o.example/b' }), strong: egress({}), setting: 'egress.targets.o.url', both: true },
    { weak: egress({}), strong: egress({ ca_file: '/ca' }), setting: 'egress.targets.o.ca_file' },
    { weak: egress({}), strong: egress({ server_name: 'x' }), setting: 'egress.targets.o.server_name', both: true },
    { weak: egress({ idempotency: 'pass' }), strong: egress({}), setting: 'egress.targets.o.idempotency' },
    { weak: egress({ idempotency: 'generate' }), strong: egress({}), setting: 'egress.targets.o.idempotency' },
    {
      weak: egress({ idempotency: 'pass' }),
      strong: egress({ idempotency: 'generate' }),
      setting: 'egress.targets.o.idempotency',
    },
    { weak: egress({}), strong: egress({ key_from: { header: 'X-Id' } }), setting: 'egress.targets.o.key_from' },
    { weak: egress({}), strong: egress({ max_body: '1KiB' }), setting: 'egress.targets.o.max_body' },
    { weak: egress({ websocket: true }), strong: egress({}), setting: 'egress.targets.o.websocket' },
    {
      weak: egress({}, { targets: [target, { ...target, name: 'p', prefix: '/p' }] }),
      strong: egress({}),
      setting: 'egress.targets.p',
    },
    {
      weak: egress({}, { tokens: { ...tokens, f: { file: '/run/t3' } } }),
      strong: egress({}),
      setting: 'egress.tokens.f.file',
      both: true,
    },
    { weak: minted({}), strong: egress({}), setting: 'egress.tokens.f.core.issuer', both: true },
    { weak: minted({ allow_http: true }), strong: minted({}), setting: 'egress.tokens.f.core.allow_http' },
    { weak: minted({}), strong: minted({}, { single_use: true }), setting: 'egress.tokens.f.single_use' },
    { weak: minted({}), strong: minted({}, { dpop: true }), setting: 'egress.tokens.f.dpop' },
    { weak: minted({}), strong: minted({}, { lifetime: '1m' }), setting: 'egress.tokens.f.lifetime' },
    {
      weak: egress({}, { listen: { unix: '/s', mode: '0660' } }),
      strong: egress({}, { listen: { unix: '/s' } }),
      setting: 'egress.listen.mode',
    },
    { weak: egress({}), strong: egress({}, { listen: { unix: '/s' } }), setting: 'egress.listen.unix' },
    { weak: egress({}, { listen: { unix: '/s' } }), strong: {}, setting: 'egress.targets.o' },
  ];
  for (const { weak, strong, setting, both = false } of changes) {
    for (const [from, to, wider] of [
      [strong, weak, true],
      [weak, strong, both],
    ] as const) {
      const diff = await comparePolicies({ from: policy(from), to: policy(to), keys, nowMs: Date.now() });
      const found = diff.settings.map((change) => change.setting);
      t.ok(found.includes(setting), `${setting}: ${found.join(' ')}`);
      t.equal(isWider(diff), wider, `${setting} ${wider ? 'wider' : 'not wider'}`);
      t.notMatch(JSON.stringify(diff), /secret/);
    }
  }
});

t.test('decide listeners that change places are the same ones', async (t) => {
  const one = { port: 9_000, form: 'nginx', trust: ['10.0.0.1'], accept: ['unreserved'] };
  const other = { host: '::1', port: 9_001, form: 'envoy', trust: ['10.0.0.2'] };
  const [from, to] = [policy({ decide: [one, other] }), policy({ decide: [other, one] })];
  t.same((await comparePolicies({ from, to, keys, nowMs: Date.now() })).settings, []);
  const none = policy({ decide: [one] });
  const { settings } = await comparePolicies({ from: none, to: from, keys, nowMs: Date.now() });
  t.match(
    settings.find(({ setting }) => setting === 'decide.form'),
    { from: '127.0.0.1:9000 nginx', to: '127.0.0.1:9000 nginx [::1]:9001 envoy', widens: true },
  );
});

t.test('servers of one group come and go', async (t) => {
  const sentinel = (...nodes: readonly string[]): ConfigTree => ({
    store: { redis: { sentinel: { name: 'a', nodes } } },
  });
  const [from, to] = [policy(sentinel('x:1', 'y:1')), policy(sentinel('y:1', 'z:1'))];
  const diff = await comparePolicies({ from, to, keys, nowMs: Date.now() });
  t.same(
    diff.settings.map(({ setting, widens }) => [setting, widens]),
    [['store.redis.sentinel', false]],
  );
});
