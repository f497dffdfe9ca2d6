import t from 'tap';
import { refuse } from '../../../src/lib/result.js';
import { validateConfig } from '../../../src/config/load/validate-config.js';
import { changedSettings, type SettingNames, type Settings } from '../../../src/config/load/setting-names.js';
import { sections } from '../../../src/config/sections/index.js';
import { baseConfig, type ConfigTree } from '../../support/proxy-process.js';

const order = {
  name: 'orders',
  methods: ['GET'],
  path: '/orders',
  subjects: ['checkout'],
  permissions: ['orders:read'],
};
const user = {
  ...order,
  name: 'user',
  path: '/user',
  accept: ['session'],
  subjects: undefined,
  permissions: undefined,
  session: { claims: { role: 'x' } },
};
const sessions = {
  core_url: 'http://127.0.0.1:3567',
  api_key: 'first-secret-api-key',
  api_domain: 'https://shop.example',
};
const issuer = {
  issuer: 'https://b.example',
  audience: 'orders',
  source: 's',
  token_type: 't',
  jwks_url: 'http://127.0.0.1/keys',
};

function settings(config: ConfigTree): Settings {
  const input = { file: 'x', folder: '/', env: {}, readFile: () => refuse('none') };
  const { config: compiled, problems } = validateConfig(baseConfig({ routes: [order], ...config }), input);
  if (compiled === null) throw new Error(JSON.stringify(problems));
  return compiled.settings;
}

const rows: readonly { name: string; from: ConfigTree; to: ConfigTree; expected: Partial<SettingNames> }[] = [
  { name: 'nothing', from: {}, to: {}, expected: {} },
  {
    name: 'a default that is written',
    from: {},
    to: { upstream: { host: 'upstream' }, mode: 'enforce' },
    expected: {},
  },
  {
    name: 'the order of routes',
    from: { routes: [order, user], sessions },
    to: { routes: [user, order], sessions },
    expected: {},
  },
  { name: 'one setting', from: {}, to: { upstream: { host: 'preserve' } }, expected: { changed: ['upstream.host'] } },
  { name: 'a section of one value', from: {}, to: { mode: 'shadow' }, expected: { changed: ['mode'] } },
  {
    name: 'a list',
    from: {},
    to: { revoked: { subjects: ['checkout'] } },
    expected: { changed: ['revoked.subjects'] },
  },
  {
    name: 'what a route asks for',
    from: {},
    to: { routes: [{ ...order, subjects: ['reporting'], response_timeout: '3s' }] },
    expected: { changed: ['routes.orders.subjects', 'routes.orders.response_timeout'] },
  },
  {
    name: 'routes that come, go and stay',
    from: { routes: [order, { ...order, name: 'a.b', path: '/a' }] },
    to: { routes: [order, { ...order, name: 'a', path: '/a' }] },
    expected: { added: ['routes.a'], removed: ['routes.a.b'] },
  },
  {
    name: 'a section that comes',
    from: {},
    to: { store: { redis: { url: 'redis://127.0.0.1' } } },
    expected: { added: ['store'] },
  },
  {
    name: 'a part of a section that comes',
    from: {},
    to: { probes: { host: '127.0.0.1', port: 1 } },
    expected: { added: ['probes'] },
  },
  {
    name: 'a value that is secret',
    from: { routes: [user], sessions },
    to: { routes: [user], sessions: { ...sessions, api_key: 'second-secret-api-key' } },
    expected: { changed: ['sessions.api_key'] },
  },
  {
    name: 'a claim of sessions',
    from: { routes: [user], sessions },
    to: { routes: [{ ...user, session: { claims: { role: 'y' } } }], sessions },
    expected: { changed: ['routes.user.session.claims.role'] },
  },
  { name: 'an issuer that comes', from: {}, to: { issuers: { b: issuer } }, expected: { added: ['issuers.b'] } },
  {
    name: 'a setting of an issuer',
    from: {},
    to: { issuers: { core: { clock_skew: '1s' } } },
    expected: { changed: ['issuers.core.clock_skew'] },
  },
];

for (const { name, from, to, expected } of rows) {
  t.test(`what is different: ${name}`, (t) => {
    t.same(changedSettings(settings(from), settings(to)), { added: [], changed: [], removed: [], ...expected });
    t.same(
      changedSettings(settings(to), settings(to)),
      { added: [], changed: [], removed: [] },
      'and nothing compared with itself',
    );
    t.end();
  });
}

t.test('issuers that change places are different', (t) => {
  const issuers = (...names: readonly string[]): Settings => new Map(names.map((name) => [`issuers.${name}`, name]));
  t.same(changedSettings(issuers('core', 'b'), issuers('b', 'core')).changed, ['issuers']);
  t.same(changedSettings(issuers('core', 'b'), issuers('b')), { added: [], changed: [], removed: ['issuers.core'] });
  t.end();
});

t.test('every section that a config may have is among the settings', (t) => {
  const probes = { host: '127.0.0.1', port: 1 };
  const all = settings({
    sessions,
    probes,
    store: { memory: {} },
    limits: { max_in_flight: 1 },
    routes: [order, user],
    decide: { port: 9000, form: 'nginx' },
    egress: {
      targets: [{ name: 'a', prefix: '/a', url: 'https://a.example', allow: [{ methods: ['GET'], path: '/**' }] }],
    },
  });
  t.same(new Set([...all.keys()].map((name) => name.split('.')[0])), new Set(Object.keys(sections)));
  t.end();
});
