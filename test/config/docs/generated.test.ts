import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import t from 'tap';
import { parse } from 'yaml';
import { chartValuesSchema } from '../../../src/config/docs/chart-schema.js';
import { annotatedSchema, shippedSchema, type JsonSchema } from '../../../src/config/docs/json-schema.js';
import { configReference } from '../../../src/config/docs/reference.js';
import { projectDir } from '../../support/project-dir.js';
import { tempDir } from '../../support/temp-dir.js';
import { compiled, configText, problemsOf, withRoutes } from '../inspection.js';

function projectFile(path: string): string {
  return readFileSync(`${projectDir}/${path}`, 'utf8');
}

t.test('config.schema.json and docs/configuration.md are what the schema says', (t) => {
  t.equal(projectFile('config.schema.json'), `${JSON.stringify(shippedSchema(), null, 2)}\n`);
  t.equal(projectFile('docs/configuration.md'), configReference());
  t.end();
});

t.test("the chart's schema of values knows every key of the config, and nothing of it is required there", (t) => {
  const text = projectFile('helm/sallyport/values.schema.json');
  t.equal(text, chartValuesSchema(text));
  const {
    properties: { config },
  } = JSON.parse(text) as { readonly properties: { readonly config: JsonSchema } };
  t.same([...new Set(keysOf(config))].sort(), [...new Set(keysOf(shippedSchema()))].sort());
  t.notMatch(JSON.stringify(config), /"(?:required|pattern)":/);
  t.end();
});

t.test('generate.js --check tells what is stale, and generate.js mends it', (t) => {
  const cwd = tempDir(t);
  const generate = (...args: readonly string[]): { readonly code: number | null; readonly output: string } => {
    const { status, stderr } = spawnSync(
      process.execPath,
      [`${projectDir}/.build/src/config/docs/generate.js`, ...args],
      { cwd, encoding: 'utf8' },
    );
    return { code: status, output: stderr };
  };
  t.match(generate('--check'), { code: 1, output: /config\.schema\.json is not[^]*docs\/configuration\.md is not/ });
  t.equal(generate().code, 0);
  t.equal(readFileSync(`${cwd}/docs/configuration.md`, 'utf8'), configReference());
  t.match(generate('--check'), { code: 0, output: '' });
  t.end();
});

const example = projectFile('config.example.yaml');

t.test('config.example.yaml has no errors, and says the defaults', (t) => {
  t.same(problemsOf(example), []);
  const config = compiled(example);
  const tls = '{ cert_file: /tls/tls.crt, key_file: /tls/tls.key, client_ca_file: /tls/ca.crt }';
  const dpop = '{ origins: [https://orders.example.com] }';
  const listen = `{ host: 0.0.0.0, port: 8443, tls: ${tls}, dpop: ${dpop} }`;
  const bare = compiled(configText({ listen, store: '{ memory: {} }', probes: '{}' }));
  for (const section of [
    'listen',
    'admin',
    'probes',
    'upstream',
    'issuers',
    'identity',
    'revoked',
    'shutdown',
    'log',
  ] as const) {
    t.same(config[section], bare[section], section);
  }
  const { name: _name, paths: _paths, approvals: _approvals, issuers: _issuers, ...written } = config.routes[0] ?? {};
  const {
    name: _bareName,
    paths: _barePaths,
    approvals: _bareApprovals,
    issuers: _bareIssuers,
    ...standard
  } = bare.routes[0] ?? {};
  t.same(written, standard, 'routes');
  t.end();
});

t.test('so has what it says of the calling side, where somebody takes it in', (t) => {
  const [before = '', rest = ''] = example.split('# egress:');
  const taken = rest.replaceAll(/^# ?/gm, '');
  const text = `${before}egress:${taken}`;
  t.same(
    problemsOf(text).filter((problem) => !/is a token that no target names/.test(problem)),
    [],
  );
  t.match(compiled(text).egress, {
    listen: { port: 8181, maxInFlight: 512 },
    tokens: [{ kind: 'core' }, { kind: 'oauth' }, { kind: 'file' }],
    targets: [{ name: 'orders', token: 'as-checkout', missingKey: 'pass' }],
  });
  t.end();
});

/** Every key of the config, as its last name. */
function keysOf(schema: JsonSchema): readonly string[] {
  const inner = [...(schema.anyOf ?? []), ...(schema.items === undefined ? [] : [schema.items])];
  if (typeof schema.additionalProperties === 'object') inner.push(schema.additionalProperties);
  return [
    ...Object.entries(schema.properties ?? {}).flatMap(([key, child]) => [key, ...keysOf(child)]),
    ...inner.flatMap(keysOf),
  ];
}

t.test('config.example.yaml names every key', (t) => {
  const keys = new Set(keysOf(annotatedSchema()));
  t.ok(keys.size > 80, `${keys.size} keys`);
  for (const key of keys) t.match(example, new RegExp(`\\b${key}:`), key);
  t.end();
});

t.test('every key of the schema is described, and has words for what is allowed', (t) => {
  const walk = (schema: JsonSchema, path: string): void => {
    for (const [key, child] of Object.entries(schema.properties ?? {})) {
      t.match(child.description, /^[\p{Lu}`].*\.$/su, `${path}.${key}`);
      walk(child, `${path}.${key}`);
    }
    for (const inner of [...(schema.anyOf ?? []), schema.items, schema.additionalProperties]) {
      if (typeof inner === 'object') walk(inner, path);
    }
  };
  walk(annotatedSchema(), '');
  t.notMatch(configReference(), /\| {2}\| \| \|/);
  t.end();
});

const documents = [
  { name: 'the example', text: example, expected: true },
  { name: 'the least', text: configText(), expected: true },
  {
    name: 'placeholders anywhere',
    text: configText({
      listen: '{ host: "${env:H}", port: "${env:P}", header_timeout: "${env:T}", underscore_fields: "${file:/u}" }',
      upstream: '{ url: "http://${env:H}" }',
    }),
    expected: true,
  },
  { name: 'an unknown key', text: configText({ lisen: '1' }), expected: false },
  { name: 'a missing key', text: configText({ listen: '{ port: 1 }' }), expected: false },
  { name: 'no upstream', text: configText({ upstream: null }), expected: false },
  { name: 'no host, beside an upstream', text: configText({ listen: '{ port: 1, dpop: null }' }), expected: false },
  { name: 'nothing to do', text: 'admin: { port: 1 }', expected: false },
  ...[
    'decide: { port: 9000, form: nginx, trust: [10.0.0.1] }\nlisten: { dpop: { origins: [https://a] } }',
    'issuers: {}',
  ].map((doors) => ({
    name: doors,
    text: `${doors}\nroutes: [{ name: a, methods: [GET], path: /a, access: public }]`,
    expected: true,
  })),
  {
    name: 'the calling side alone',
    text: 'egress: { targets: [{ name: a, prefix: /a, url: https://a, allow: [{ methods: [GET], path: / }] }] }',
    expected: true,
  },
  {
    name: 'a malformed duration',
    text: configText({ listen: '{ host: a, port: 1, header_timeout: 5 s }' }),
    expected: false,
  },
  { name: 'a port in quotes', text: configText({ listen: '{ host: a, port: "1" }' }), expected: false },
  { name: 'an unknown word', text: configText({ log: '{ level: loud }' }), expected: false },
  {
    name: 'an unknown key of a route',
    text: withRoutes(['name: a, methods: [GET], path: /a, permisions: []']),
    expected: false,
  },
  { name: 'what is not supported yet', text: configText({ sessions: '{}' }), expected: false },
  {
    name: 'a store and a route that reserves',
    text: withRoutes(
      [
        'name: a, methods: [POST], path: /a, subjects: [s], permissions: [p], idempotency: optional',
        'name: b, methods: [POST], path: /b, subjects: [s], permissions: [p], idempotency: { mode: required, max_body: "${env:MAX}" }',
      ],
      { store: '{ redis: { url: "redis://redis", replicas: 1 } }' },
    ),
    expected: true,
  },
  {
    name: 'an unknown mode',
    text: withRoutes(['name: a, methods: [POST], path: /a, idempotency: maybe']),
    expected: false,
  },
  {
    name: 'an unknown key of a map',
    text: withRoutes(['name: a, methods: [POST], path: /a, idempotency: { mode: none, retntion: 1h }']),
    expected: false,
  },
  {
    name: 'a malformed name of an issuer',
    text: configText({ issuers: '{ "a b": { issuer: i, audience: a, source: s, token_type: t } }' }),
    expected: false,
  },
];

t.test('editors tell good from bad by config.schema.json', (t) => {
  const ajv = new Ajv({ allErrors: true, allowUnionTypes: true, validateFormats: false });
  const isGood = ajv.compile(JSON.parse(projectFile('config.schema.json')) as object);
  for (const { name, text, expected } of documents) {
    t.equal(isGood(parse(text)), expected, `${name}: ${ajv.errorsText(isGood.errors)}`);
  }
  t.end();
});
