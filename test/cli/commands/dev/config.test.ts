import t from 'tap';
import { parse } from 'yaml';
import { composeDevConfig, shownConfig, type DevPlaces } from '../../../../src/cli/commands/dev/config.js';
import { anyServiceRoutes, demoRoutes, devProfiles } from '../../../../src/cli/commands/dev/profiles.js';
import { validateConfig } from '../../../../src/config/load/validate-config.js';
import { memoryWarning } from '../../../../src/config/sections/store.js';
import { refuse } from '../../../../src/lib/result.js';

const places: DevPlaces = {
  port: 0,
  profile: 'core',
  issuerUrl: 'http://127.0.0.1:4567',
  upstreamUrl: 'http://127.0.0.1:3000',
};
const input = { file: 'dev.yaml', folder: '/', env: {}, readFile: () => refuse('is not read here') };

function composed(text: string): Record<string, unknown> {
  return parse(composeDevConfig(text, places)) as Record<string, unknown>;
}

const route = '{ name: a, methods: [GET], path: /a, subjects: [checkout], permissions: [] }';

t.test('sessions are those of the emulator, by the names of the service that makes them', async (t) => {
  const named =
    'core_url: "https://core", api_key: k, api_domain: "https://a.example", api_base_path: /v1, check_database: true';
  const cases = [
    {
      sessions: named,
      expected: { core_url: 'http://127.0.0.1:4567', api_domain: 'https://a.example', api_base_path: '/v1' },
    },
    {
      sessions: 'core_url: "https://core"',
      expected: { core_url: 'http://127.0.0.1:4567', api_domain: 'http://127.0.0.1:4567' },
    },
  ];
  for (const { sessions, expected } of cases) {
    t.same(composed(`sessions: { ${sessions} }\nroutes: [${route}]\n`)['sessions'], expected);
  }
  t.equal(composed(`sessions: null\nroutes: [${route}]\n`)['sessions'], undefined);
});

t.test('routes and identity come from the text, everything else is for loopback', async (t) => {
  const cases = [
    {
      name: 'block style',
      text: `listen:\n  host: 0.0.0.0 # all\n  tls: { cert_file: /x }\nroutes:\n  - ${route}\nidentity: { headers: { kind: null } }\nstore:\n  redis: {}\n`,
    },
    {
      name: 'flow style',
      text: `{ listen: { host: 0.0.0.0 }, routes: [${route}], identity: { headers: { kind: null } }, store: {} }`,
    },
    {
      name: 'flow style, the last pair kept',
      text: `{ store: {}, identity: { headers: { kind: null } }, routes: [${route}] }`,
    },
    {
      name: 'JSON over several lines',
      text: `{"store": {},\n "identity": {"headers": {"kind": null}},\n "routes": [${route}],\n}`,
    },
    { name: 'indented', text: `  routes:\n    - ${route}\n  identity:\n    headers: { kind: null }\n  mode: shadow\n` },
    {
      name: 'with document markers',
      text: `---\nadmin: { port: 1 }\nroutes:\n- ${route}\nidentity: { headers: { kind: null } }\n...\n`,
    },
    { name: 'a section without a value', text: `store:\nroutes: [${route}]\nidentity: { headers: { kind: null } }` },
    {
      name: 'text of many lines',
      text: `store:\n  note: |\n    routes: no\n    more\nidentity: { headers: { kind: null } }\nroutes: [${route}]\n`,
    },
  ];
  for (const { name, text } of cases) {
    t.same(
      composed(text),
      {
        routes: [{ name: 'a', methods: ['GET'], path: '/a', subjects: ['checkout'], permissions: [] }],
        identity: { headers: { kind: null } },
        listen: { host: '127.0.0.1', port: 0 },
        admin: { host: '127.0.0.1', port: 0 },
        upstream: { url: 'http://127.0.0.1:3000' },
        issuers: {
          core: {
            issuer: 'http://127.0.0.1:4567',
            audience: 'dev-core',
            source: 'sallyport-dev',
            token_type: 'service',
          },
        },
        store: { memory: {} },
        shutdown: { delay: '0s', grace: '1s' },
        reload: { least_age: '0s' },
      },
      name,
    );
  }
});

t.test('names of issuers stay, because routes may name them; all of them mean the emulator', async (t) => {
  const issuers = composed(
    `issuers:\n  core: { issuer: https://a.example }\n  partner: { issuer: https://b.example }\nroutes: [${route}]`,
  )['issuers'];
  t.match(issuers, {
    core: { issuer: places.issuerUrl, audience: 'dev-core' },
    partner: { issuer: places.issuerUrl, audience: 'dev-partner' },
  });
});

t.test('every line keeps its number, so that problems are found where they stand', async (t) => {
  const text =
    '# mine\nlisten:\n  host: 0.0.0.0\nissuers: { core: {} }\nroutes:\n  - { name: a, methods: [GET], path: a, subjects: [x], permissions: [] }\n';
  const { problems } = validateConfig(composeDevConfig(text, places), input);
  t.match(problems, [{ severity: 'error', file: 'dev.yaml', line: 6, column: 38 }]);
});

t.test('what is no YAML map is left to the reader of configs, which says so', async (t) => {
  for (const text of ['', 'routes: [', '- a', 'text', 'routes: 1\nroutes: 2\n']) {
    t.equal(composeDevConfig(text, places), text);
    t.equal(validateConfig(composeDevConfig(text, places), input).config, null, JSON.stringify(text));
  }
});

t.test('the routes of dev itself are a config without a warning but that of its store', async (t) => {
  for (const profile of devProfiles) {
    for (const routes of [demoRoutes(profile), anyServiceRoutes(profile)]) {
      const composed = composeDevConfig(routes, { ...places, profile });
      const { config, problems } = validateConfig(composed, input);
      t.not(config, null, profile);
      t.equal(config?.issuers[0]?.rules.profile, profile);
      t.same(
        problems.filter(({ message }) => message !== memoryWarning),
        [],
      );
      t.same(parse(shownConfig(composed)), parse(composed), 'people are shown the same');
    }
  }
});
