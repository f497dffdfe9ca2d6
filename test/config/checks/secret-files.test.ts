import t from 'tap';
import { validateConfig } from '../../../src/config/load/validate-config.js';
import { formatProblem, secretFileKeys } from '../../../src/config/load/report.js';
import { configSchema } from '../../../src/config/sections/index.js';
import { valueKeysOf } from '../../../src/config/load/zod-issues.js';
import { accept } from '../../../src/lib/result.js';
import { configText, problemsOf, withRoutes } from '../inspection.js';

const open = 'every user of this machine may read (mode 0644)';

/** What is said of secrets in a config whose files with `open` in their names are. */
function saidOf(text: string, env: Readonly<Record<string, string>> = {}): readonly string[] {
  const exposureOf = (path: string): string | null => (path.includes('open') ? open : null);
  const { problems } = validateConfig(text, {
    file: 'c.yaml',
    folder: '/etc',
    env,
    readFile: () => accept('abcdefghij0123456789\n'),
    exposureOf,
  });
  return problems.map(formatProblem).filter((line) => /file|environment|secret/.test(line));
}

const session = 'name: a, methods: [GET], path: /a, accept: [session], session: { claims: { r: x } }';
const sessions = (apiKey: string): string =>
  withRoutes([session], {
    sessions: `{ core_url: "http://127.0.0.1:3567", api_domain: "https://api.example.com", api_key: ${apiKey} }`,
  });

const places: readonly { readonly name: string; readonly text: (file: string) => string; readonly at: string }[] = [
  {
    name: 'the key of the listener',
    at: 'listen.tls.key_file names',
    text: (file) =>
      configText({ listen: `{ host: 127.0.0.1, port: 8443, tls: { cert_file: /open.crt, key_file: "${file}" } }` }),
  },
  {
    name: 'the key of assertions',
    at: 'identity.assertion.key_file names',
    text: (file) => configText({ identity: `{ assertion: { key_file: "${file}", audience: orders } }` }),
  },
  {
    name: 'the password of Redis',
    at: 'store.redis.password_file names',
    text: (file) => configText({ store: `{ redis: { url: "redis://127.0.0.1", password_file: "${file}" } }` }),
  },
  {
    name: 'the API key of the Core',
    at: 'sessions.api_key comes from',
    text: (file) => sessions(`"\${file:${file}}"`),
  },
];

t.test('a key, password or API key in a file that others may read is a warning with its place', (t) => {
  for (const { name, text, at } of places) {
    t.same(saidOf(text('/secrets/closed')), [], name);
    const [said = '', ...more] = saidOf(text('/secrets/open'));
    t.same(more, [], name);
    t.match(said, /^c\.yaml:\d+:\d+: warning: /);
    t.match(
      said,
      `: warning: ${at} a file that ${open}; allowed: mode 0600 or stricter, or 0640 where it is root’s and the group is the one that runs ` +
        'Sallyport; in Kubernetes defaultMode: 0400 and an fsGroup',
      name,
    );
  }
  t.match(
    saidOf(places[0]?.text('${env:SECRETS}/open') ?? '', { SECRETS: '/run' }),
    [/listen\.tls\.key_file names a file that every user/],
    'a path from a variable',
  );
  t.same(
    saidOf(configText({ upstream: '{ url: "https://a", ca_file: /open.pem }' })),
    [],
    'certificates are no secret',
  );
  t.end();
});

t.test('of each file that a config can name it is known whether it holds a secret', (t) => {
  const named = [...valueKeysOf(configSchema)].filter((key) => key.endsWith('_file') || key === 'curl_config');
  const open = ['bundle_file', 'ca_file', 'cert_file', 'certificate_file', 'client_ca_file', 'jwks_file'];
  t.same(named.toSorted(), [...open, ...secretFileKeys].toSorted());
  t.end();
});

t.test('a secret that comes from the environment is a warning, and none is ever proposed to', (t) => {
  t.match(saidOf(sessions('"${env:CORE_KEY}"'), { CORE_KEY: 'abcdefghij0123456789' }), [
    /: warning: sessions\.api_key comes from the environment, which other programs of this user, dumps and child processes have too; allowed: \$\{file:PATH\}, with/,
  ]);
  const wrong = [
    sessions('abcdefghij0123456789'),
    sessions('$CORE_KEY'),
    sessions('$(CORE_KEY)'),
    sessions('"${CORE_KEY}"'),
    sessions('"${env:CORE_KEY}"'),
    sessions('"${CORE-KEY}"'),
    sessions('"${vault:key}"'),
    sessions('"${env:"'),
    configText({ store: '{ redis: { url: "redis://:${REDIS_PASSWORD}@127.0.0.1" } }' }),
    configText({ store: '{ redis: { url: "redis://:$(REDIS_PASSWORD)@127.0.0.1" } }' }),
    configText({ store: '{ redis: { url: "redis://:${env:REDIS_PASSWORD}@127.0.0.1" } }' }),
    configText({ store: '{ redis: { url: "redis://127.0.0.1", password: $REDIS_PASSWORD } }' }),
    configText({ store: '{ redis: { url: "redis://127.0.0.1", username: $REDIS_TOKEN } }' }),
  ];
  for (const text of wrong) {
    const said = problemsOf(text);
    t.not(said.length, 0, text);
    // What was found may be the environment; what is allowed instead may not.
    for (const line of said) {
      t.notMatch(line.slice(line.indexOf('; allowed: ')) + (/did you mean.*/.exec(line)?.[0] ?? ''), /env/i, line);
    }
  }
  t.match(
    problemsOf(configText({ store: '{ redis: { url: "redis://127.0.0.1", password_file: $REDIS_PASSWORD_FILE } }' })),
    [/allowed: "\$\{env:REDIS_PASSWORD_FILE\}" for a variable/],
    'a path is no secret',
  );
  t.end();
});
