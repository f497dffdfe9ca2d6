import fc from 'fast-check';
import t from 'tap';
import { substitute } from '../../../src/config/load/placeholders.js';
import { accept, refuse } from '../../../src/lib/result.js';
import { compiled, configText, errorsOf, problemsOf, withRoutes } from '../inspection.js';

const sources = {
  env: { NAME: 'value', EMPTY: '', NESTED: '${env:NAME}', LONG: 'x'.repeat(65_536), LONGER: 'x'.repeat(65_537) },
  readFile: (path: string) =>
    path.startsWith('/files/') ? accept(`content of ${path.slice(7)}\n`) : refuse('no such file'),
};

const replaced = [
  { name: 'no placeholder', input: 'text', expected: { text: 'text', substituted: false, whole: false } },
  { name: 'a dollar sign', input: '$5 {x} $', expected: { text: '$5 {x} $', substituted: false, whole: false } },
  { name: 'a whole text', input: '${env:NAME}', expected: { text: 'value', substituted: true, whole: true } },
  { name: 'within a text', input: 'a ${env:NAME} b', expected: { text: 'a value b', substituted: true, whole: false } },
  {
    name: 'two of them',
    input: '${env:NAME}${env:NAME}',
    expected: { text: 'valuevalue', substituted: true, whole: false },
  },
  { name: 'an empty variable', input: '${env:EMPTY}', expected: { text: '', substituted: true, whole: true } },
  {
    name: 'a file',
    input: '${file:/files/a b.txt}',
    expected: { text: 'content of a b.txt', substituted: true, whole: true },
  },
  {
    name: 'a text with a placeholder in it is text',
    input: '${env:NESTED}',
    expected: { text: '${env:NAME}', substituted: true, whole: true },
  },
  {
    name: 'one that is escaped',
    input: '$${env:NAME}',
    expected: { text: '${env:NAME}', substituted: false, whole: false },
  },
  {
    name: 'one that is escaped beside one that is not',
    input: '$${x}${env:NAME}',
    expected: { text: '${x}value', substituted: true, whole: false },
  },
  {
    name: 'a dollar sign in front of an escape',
    input: '$$${x}',
    expected: { text: '$${x}', substituted: false, whole: false },
  },
  {
    name: 'as long as may be',
    input: '${env:LONG}',
    expected: { text: 'x'.repeat(65_536), substituted: true, whole: true },
  },
];

const forms = '${env:NAME}, ${file:PATH}; $${ where ${ itself is meant';
const refused = [
  {
    name: 'a variable that is not set',
    input: '${env:OTHER}',
    expected: [['${env:OTHER} is not set in the environment', 'a variable that is set']],
  },
  {
    name: 'a name of the language',
    input: '${env:constructor}',
    expected: [['${env:constructor} is not set in the environment', 'a variable that is set']],
  },
  { name: 'no name', input: '${env:}', expected: [['"${env:}" is no placeholder', forms]] },
  {
    name: 'a malformed name',
    input: '${env:A-B}',
    expected: [['${env:A-B} does not name an environment variable', 'letters, digits and _']],
  },
  {
    name: 'a file that is not there',
    input: '${file:/x}',
    expected: [['${file:/x} cannot be read: no such file', 'a file that can be read']],
  },
  { name: 'no path', input: '${file:}', expected: [['"${file:}" is no placeholder', forms]] },
  { name: 'another kind', input: '${vault:x}', expected: [['"${vault:x}" is no placeholder', forms]] },
  {
    name: 'as in a shell',
    input: '${NAME}',
    expected: [['"${NAME}" is no placeholder, did you mean ${env:NAME}?', forms]],
  },
  { name: 'one that stays open', input: 'a ${env:NAME', expected: [['"${env:NAME" is no placeholder', forms]] },
  {
    name: 'too long',
    input: '${env:LONGER}',
    expected: [['${env:LONGER} stands for too long a text', 'at most 64 KiB']],
  },
  {
    name: 'several at once',
    input: '${env:A} ${file:/x}',
    expected: [
      ['${env:A} is not set in the environment', 'a variable that is set'],
      ['${file:/x} cannot be read: no such file', 'a file that can be read'],
    ],
  },
];

t.test('placeholders are replaced', (t) => {
  for (const { name, input, expected } of replaced) t.same(substitute(input, sources), accept(expected), name);
  t.end();
});

t.test('a placeholder that stands for nothing is an error', (t) => {
  for (const { name, input, expected } of refused) {
    t.same(substitute(input, sources), refuse(expected.map(([message, allowed]) => ({ message, allowed }))), name);
  }
  t.end();
});

const endings = [
  { name: 'one newline', input: 'a\n', expected: 'a' },
  { name: 'a carriage return and a newline', input: 'a\r\n', expected: 'a' },
  { name: 'two newlines', input: 'a\n\n', expected: 'a\n' },
  { name: 'none', input: 'a', expected: 'a' },
  { name: 'a space', input: 'a ', expected: 'a ' },
  { name: 'nothing else', input: '\n', expected: '' },
];

t.test('a file’s last newline is left out, and nothing else', (t) => {
  for (const { name, input, expected } of endings) {
    t.same(
      substitute('${file:/f}', { env: {}, readFile: () => accept(input) }),
      accept({ text: expected, substituted: true, whole: true }),
      name,
    );
  }
  t.end();
});

t.test('a string that is one placeholder is read as its key asks for', (t) => {
  const listen = '{ host: "${env:HOST}", port: "${env:PORT}", max_in_flight: "${env:MANY}" }';
  const upstream = '{ url: "http://${env:HOST}:1${env:PORT}" }';
  const issuers =
    '{ core: { issuer: "${env:NUMBER}", jwks_file: /k, audience: a, source: "${env:FLAG}", token_type: t, allow_http: "${env:FLAG}" } }';
  const config = compiled(configText({ listen, upstream, issuers, log: '\n  level: ${env:LEVEL}' }), {
    env: { HOST: '127.0.0.2', PORT: '8080', MANY: '7', NUMBER: '007', FLAG: 'true', LEVEL: 'debug' },
  });
  t.match(config.listen, { host: '127.0.0.2', port: 8080, maxInFlight: 7 });
  t.equal(config.upstream.url, 'http://127.0.0.2:18080');
  t.equal(config.issuers[0]?.rules.issuer, '007', 'a text stays one');
  t.same(config.issuers[0]?.rules.sources, new Set(['true']));
  t.equal(config.log.level, 'debug');
  t.end();
});

t.test('truth values of placeholders', (t) => {
  const receiver =
    '{ case_sensitive: "${env:A}", strict_slash: "${env:B}", format_suffix: false, trailing_dots: false }';
  const routes = [
    'name: a, methods: [GET], path: /a, subjects: [s], permissions: [p]',
    'name: b, methods: [GET], path: "/**", access: public',
  ];
  t.notMatch(problemsOf(withRoutes(routes, { receiver }), { env: { A: 'true', B: 'TRUE' } }).join(), /error/);
  t.match(
    problemsOf(withRoutes(routes, { receiver }), { env: { A: 'false', B: 'True' } }).join(),
    /a router that ignores case takes/,
  );
  t.match(problemsOf(withRoutes(routes, { receiver }), { env: { A: 'yes', B: '1' } }), [
    /receiver\.case_sensitive is what \$\{env:A\} stands for; allowed: true or false$/,
    /receiver\.strict_slash is what \$\{env:B\} stands for; allowed: true or false$/,
  ]);
  t.end();
});

const guarded = 'name: a, methods: [GET], path: /a, subjects: [s], permissions: []';
const written = 'name: a, methods: [GET, POST], path: /a, subjects: [s], permissions: []';

const judgedAlike = [
  { name: 'single_use without a store', route: `${guarded}, single_use: VALUE` },
  {
    name: 'single_use of a public route',
    route: 'name: a, methods: [GET], path: /a, access: public, single_use: VALUE',
    store: '{ memory: {} }',
  },
  { name: 'single_use beside sessions', route: `${guarded}, single_use: VALUE, accept: [session], session: {}` },
  {
    name: 'websocket with other methods, and keys',
    route: `${written}, websocket: VALUE, idempotency: required`,
    store: '{ memory: {} }',
  },
  {
    name: 'single_use beside websocket',
    route: `${guarded}, websocket: VALUE, single_use: VALUE`,
    store: '{ memory: {} }',
  },
  { name: 'origins', route: `${guarded}, websocket: VALUE, origins: ["https://a.example"]`, isRight: true },
  { name: 'shared limits of a route', route: `${guarded}, limits: { requests_per_second: 1, shared: VALUE }` },
  { name: 'shared limits of the file', route: guarded, limits: '{ requests_per_second: 1, shared: VALUE }' },
  { name: 'a route that is wrong otherwise too', route: `${guarded}, single_use: VALUE, zzz: 1` },
];

t.test('a truth value of a placeholder is judged as one that is written', (t) => {
  for (const { name, route, store = null, limits = null, isRight = false } of judgedAlike) {
    const told = (value: string): readonly string[] => {
      const text = withRoutes([route], { store, limits }).replaceAll('VALUE', value);
      return errorsOf(text, { env: { X: 'true' } }).map((line) => line.replace(/^c\.yaml:\d+:\d+: /, ''));
    };
    t.same(told('"${env:X}"'), told('true'), name);
    t.equal(told('true').length === 0, isRight, name);
  }
  t.end();
});

t.test('fractions, and numbers beside words', (t) => {
  const text = configText({
    store: '{ redis: { url: "redis://127.0.0.1" } }',
    workers: '"${env:W}"',
    limits: '{ requests_per_second: "${env:F}", burst: "${env:B}" }',
    telemetry: '{ traces: { ratio: "${env:R}" } }',
  });
  const config = compiled(text, { env: { W: '4', F: '0.5', B: '1', R: '1e-2' } });
  t.equal(config.workers, 4);
  t.match(config.routes[0]?.limits, { rate: { perSecond: 0.5, burst: 1 } });
  t.equal(config.telemetry.ratio, 0.01);
  t.equal(compiled(text, { env: { W: 'auto', F: '1.', B: '1', R: '.5' } }).workers, 'auto');
  t.match(errorsOf(text, { env: { W: '4.5', F: '1,5', B: '1.5', R: '50%' } }), [
    /workers is what \$\{env:W\} stands for; allowed: a whole number from 1 to 64/,
    /limits\.requests_per_second is what \$\{env:F\} stands for/,
    /limits\.burst is what \$\{env:B\} stands for/,
    /telemetry\.traces\.ratio is what \$\{env:R\} stands for/,
  ]);
  t.end();
});

const mistyped = [
  { name: 'no number', env: 'abc' },
  { name: 'nothing', env: '' },
  { name: 'a hexadecimal number', env: '0x10' },
  { name: 'a space', env: ' 80' },
  { name: 'a list', env: '[80]' },
  { name: 'too great a number', env: '65536' },
  { name: 'a fraction', env: '80.5' },
];

t.test('what does not fit its key is an error that does not show it', (t) => {
  for (const { name, env } of mistyped) {
    t.same(
      problemsOf(configText({ listen: '{ host: 127.0.0.1, port: "${env:PORT}" }' }), { env: { PORT: env } }),
      ['c.yaml:1:34: error: listen.port is what ${env:PORT} stands for; allowed: a whole number from 0 to 65535'],
      name,
    );
  }
  t.same(
    problemsOf(configText({ listen: '{ host: 127.0.0.1, port: "1${env:PORT}" }' }), { env: { PORT: '0' } }),
    ['c.yaml:1:34: error: listen.port is what 1${env:PORT} stands for; allowed: a whole number from 0 to 65535'],
    'a part of a text is text',
  );
  t.end();
});

t.test('a placeholder’s text is never read as YAML', (t) => {
  const env = { X: 'checkout]\nrevoked: { subjects: [x] }\n# "\'{[&*!|>%@`' };
  t.same(
    problemsOf(withRoutes(['name: a, methods: [GET], path: /a, subjects: ["${env:X}"], permissions: [p]']), { env }),
    [
      'c.yaml:5:51: error: routes[0].subjects[0] is what ${env:X} stands for; allowed: 1 to 256 visible ASCII characters',
    ],
  );
  t.same(
    problemsOf(configText({ log: '{ "${env:K}": debug }' }), { env: { K: 'level' } }),
    [
      'c.yaml:5:8: error: unknown key "${env:K}" in log; allowed: level, client_address, user_agent, refusals_per_second',
    ],
    'nor as a key',
  );
  t.end();
});

t.test('a value whose placeholder fails is told of once', (t) => {
  t.same(problemsOf(configText({ log: '{ level: "${env:A} ${env:B}" }' })), [
    'c.yaml:5:15: error: log.level: ${env:A} is not set in the environment; allowed: a variable that is set',
    'c.yaml:5:15: error: log.level: ${env:B} is not set in the environment; allowed: a variable that is set',
  ]);
  t.end();
});

const secret = 's3cr3t-VALUE';

/** Every place where a value may stand, and a few rules that compare one with another. */
const places: readonly ((value: string) => string)[] = [
  ...[
    'host',
    'port',
    'tls',
    'tls_terminated_by',
    'trust_forwarded',
    'max_target',
    'header_timeout',
    'max_in_flight',
    'underscore_fields',
    'zzz',
  ].map(
    (key) => (value: string) => configText({ listen: `{ ${key}: ${value}${key === 'host' ? '' : ', host: "::"'} }` }),
  ),
  ...['url', 'host', 'ca_file', 'server_name', 'connect_timeout', 'max_connections'].map(
    (key) => (value: string) => configText({ upstream: `{ ${key}: ${value} }` }),
  ),
  ...[
    'issuer',
    'jwks_url',
    'jwks_file',
    'audience',
    'source',
    'clock_skew',
    'max_lifetime',
    'key_ids',
    'ca_file',
    'allow_http',
  ].map((key) => (value: string) => configText({ issuers: `{ core: { ${key}: ${value} } }` })),
  (value) =>
    configText({ issuers: `{ core: { issuer: ${value}, audience: a, source: [a, ${value}], token_type: t } }` }),
  ...['subject', 'issuer', 'kind'].map(
    (key) => (value: string) => configText({ identity: `{ headers: { ${key}: ${value}, permissions: ${value} } }` }),
  ),
  ...['subjects', 'key_ids', 'token_ids'].map(
    (key) => (value: string) => configText({ revoked: `{ ${key}: [${value}] }` }),
  ),
  (value) =>
    configText({ revoked: `{ issued_before: ${value} }`, mode: value, sessions: value, log: `{ level: ${value} }` }),
  ...[
    'name',
    'methods',
    'path',
    'subjects',
    'permissions',
    'access',
    'mode',
    'accept',
    'idempotency',
    'max_body',
    'session',
    'response_timeout',
  ].map((key) => (value: string) => withRoutes([`${key}: ${value}`, `${key}: [${value}, ${value}]`])),
  (value) =>
    withRoutes(
      Array<string>(2).fill(
        `name: ${value}, methods: [GET], path: ${value}, subjects: [${value}], permissions: [], issuers: [${value}]`,
      ),
    ),
  (value) =>
    withRoutes([
      `name: a, methods: [GET], path: "/x/${value.slice(1)}, subjects: [a], permissions: []`,
      'name: b, methods: [GET], path: /**, access: public',
    ]),
];

t.test('what a placeholder stands for is in no problem', (t) => {
  const parts = fc.constantFrom('', '/', 'http://', '{', '"', '/../', '@h/', '#', '\n');
  fc.assert(
    fc.property(fc.constantFrom(...places), parts, parts, (place, before, after) => {
      for (const value of ['"${env:SECRET}"', '"${file:/secret}"', '"x${env:SECRET}"']) {
        const lines = problemsOf(place(value), {
          env: { SECRET: `${before}${secret}${after}` },
          files: { '/secret': `${before}${secret}${after}\n` },
        });
        if (lines.join('\n').toLowerCase().includes(secret.toLowerCase())) throw new Error(lines.join('\n'));
      }
    }),
    { numRuns: 300 },
  );
  t.end();
});
