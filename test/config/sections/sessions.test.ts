import t from 'tap';
import { compiled, problemsOf, withRoutes } from '../inspection.js';

const sessions = '{ core_url: "http://127.0.0.1:3567", api_domain: "https://api.example.com" }';
const base = 'name: a, methods: [GET], path: /a';
const who = 'subjects: [s], permissions: [p]';
const policy = 'session: { claims: { "st-role.v": support } }';
const both = `${base}, accept: [service, session], ${who}, ${policy}`;
const alone = `${base}, accept: [session], ${policy}`;

interface Case {
  readonly name: string;
  readonly route: string;
  readonly sessions?: string;
  readonly issuers?: string | null;
  readonly expected: readonly RegExp[];
}

const cases: readonly Case[] = [
  { name: 'both kinds', route: both, expected: [] },
  { name: 'sessions alone need no issuer', route: alone, issuers: null, expected: [] },
  {
    name: 'service tokens alone, and sessions that nobody accepts',
    route: `${base}, ${who}`,
    expected: [/4:11: warning: sessions has no use: no route accepts sessions/],
  },
  {
    name: 'nothing says where they come from',
    route: both,
    sessions: 'null',
    expected: [
      /6:\d+: error: routes\[0\] accepts sessions, and nothing says where they come from; allowed: core_url and api_domain in sessions$/,
    ],
  },
  {
    name: 'no policy',
    route: `${base}, accept: [session]`,
    expected: [/error: routes\[0\] accepts sessions, and routes\[0\]\.session does not say which; /],
  },
  {
    name: 'a policy for what is not accepted',
    route: `${base}, ${who}, ${policy}`,
    expected: [
      /warning: sessions has no use/,
      /error: routes\[0\]\.session has no use: the route accepts no sessions; allowed: accept: \[service, session\]$/,
    ],
  },
  {
    name: 'what service tokens are held to, on a route for sessions alone',
    route: `${alone}, ${who}, issuers: [core]`,
    expected: ['subjects', 'permissions', 'issuers'].map(
      (key) => new RegExp(`error: routes\\[0\\]\\.${key} has no use: the route accepts no service tokens; `),
    ),
  },
  {
    name: 'pairs there',
    route: `${alone}, any_of: [{ subjects: [s], permissions: [p] }]`,
    expected: [/error: routes\[0\]\.any_of has no use/],
  },
  {
    name: 'a public route',
    route: `${base}, access: public, accept: [session], ${policy}`,
    expected: [
      /error: routes\[0\]\.accept stands beside routes\[0\]\.access/,
      /error: routes\[0\]\.session stands beside routes\[0\]\.access/,
    ],
  },
  {
    name: 'no kind',
    route: `${base}, accept: [], ${who}`,
    expected: [
      /warning: sessions has no use/,
      /error: routes\[0\]\.accept is an empty list; allowed: a list of kinds of credentials, at least one$/,
    ],
  },
  {
    name: 'another kind',
    route: `${base}, accept: [cookie], ${who}`,
    expected: [/warning/, /error: routes\[0\]\.accept\[0\] is "cookie"; allowed: service, session$/],
  },
  {
    name: 'a kind twice',
    route: `${base}, accept: [service, session, session], ${who}, ${policy}`,
    expected: [/error: routes\[0\]\.accept\[2\] is "session", which the list has before; allowed: each kind once$/],
  },
  {
    name: 'a number of which several are read alike',
    route: `${base}, accept: [session], session: { claims: { a: 9007199254740992, b: 1.5 } }`,
    expected: [
      /error: routes\[0\]\.session\.claims\.a is 9007199254740992; allowed: .*in quotes, if the token has it as a text/,
      /error: routes\[0\]\.session\.claims\.b is 1\.5; allowed: /,
    ],
  },
  { name: 'every user', route: `${base}, accept: [session], session: { claims: {} }`, expected: [] },
  {
    name: 'no claims',
    route: `${base}, accept: [session], session: {}`,
    expected: [/error: routes\[0\]\.session\.claims is missing; allowed: a map of claims$/],
  },
  {
    name: 'a path with an empty name',
    route: `${base}, accept: [session], session: { claims: { "st-role..v": x } }`,
    expected: [/error: "st-role\.\.v" is no path to a claim; allowed: names with a dot between, such as st-role\.v$/],
  },
  {
    name: 'a value that is a list',
    route: `${base}, accept: [session], session: { claims: { a: [x] } }`,
    expected: [
      /error: routes\[0\]\.session\.claims\.a is a list; allowed: a text, a whole number up to 9007199254740991 /,
    ],
  },
  {
    name: 'numbers and truth values',
    route: `${base}, accept: [session], session: { claims: { a: 5, b: true, c.d: "5", e: -9007199254740991 } }`,
    expected: [],
  },
  {
    name: 'tokens that pass once',
    route: `${both}, single_use: true`,
    expected: [
      /error: routes\[0\]\.single_use needs a place/,
      /error: routes\[0\]\.single_use stands beside sessions, whose tokens have no jti/,
    ],
  },
  {
    name: 'no Core',
    route: both,
    sessions: '{ api_domain: "https://a" }',
    expected: [/4:1: error: sessions\.core_url is missing; /],
  },
  {
    name: 'no API domain',
    route: both,
    sessions: '{ core_url: "https://a" }',
    expected: [/error: sessions\.api_domain is missing; /],
  },
  {
    name: 'an API domain with a path',
    route: both,
    sessions: '{ core_url: "https://a", api_domain: "https://a/auth" }',
    expected: [
      /error: sessions\.api_domain is "https:\/\/a\/auth"; allowed: https:\/\/HOST, without a path, user or query$/,
    ],
  },
  {
    name: 'several Cores',
    route: both,
    sessions: '{ core_url: "https://a;https://b", api_domain: "https://a" }',
    expected: [/error: sessions\.core_url is /],
  },
  {
    name: 'a Core with a query',
    route: both,
    sessions: '{ core_url: "https://a?b", api_domain: "https://a" }',
    expected: [/error: sessions\.core_url is /],
  },
  {
    name: 'a Core elsewhere in plaintext',
    route: both,
    sessions: '{ core_url: "http://core:3567", api_domain: "https://a" }',
    expected: [/warning: keys and sessions\.api_key cross the network in plaintext/],
  },
  {
    name: 'a base path that is none',
    route: both,
    sessions: '{ core_url: "https://a", api_domain: "https://a", api_base_path: auth }',
    expected: [/error: sessions\.api_base_path is "auth"; allowed: a path, such as \/auth$/],
  },
  {
    name: 'a base path with a query',
    route: both,
    sessions: '{ core_url: "https://a", api_domain: "https://a", api_base_path: "/auth?x" }',
    expected: [/error: sessions\.api_base_path is /],
  },
  {
    name: 'an empty base path',
    route: both,
    sessions: '{ core_url: "https://a", api_domain: "https://a", api_base_path: "" }',
    expected: [/error: sessions\.api_base_path is ""/],
  },
  {
    name: 'an unknown key',
    route: both,
    sessions: '{ core_url: "https://a", api_domain: "https://a", apikey: x }',
    expected: [/error: unknown key "apikey" in sessions, did you mean "api_key"\?/],
  },
  {
    name: 'an issuer by the name of sessions',
    route: both,
    issuers: '{ sessions: { issuer: "https://x", audience: o, source: m, token_type: s } }',
    expected: [/error: issuers\.sessions has the name that sessions go by/],
  },
];

t.test('routes that accept sessions', (t) => {
  for (const { name, route, expected, issuers, sessions: section } of cases) {
    const changes = { sessions: section ?? sessions, ...(issuers === undefined ? {} : { issuers }) };
    const found = problemsOf(withRoutes([route], changes));
    t.equal(found.length, expected.length, `${name}: ${found.join('\n')}`);
    expected.forEach((pattern, index) => t.match(found[index], pattern, name));
  }
  t.end();
});

const key = 'aaaaaaaaaaaaaaaaaaaa-secret';

t.test('the Core’s key is never shown, however wrong it is', (t) => {
  const withKey = (value: string): readonly string[] =>
    problemsOf(
      withRoutes([both], { sessions: `{ core_url: "https://a", api_domain: "https://a", api_key: ${value} }` }),
      { env: { KEY: key, SHORT: 'short-secret' }, files: { '/key': `${key}\n` } },
    );
  t.match(withKey(key), [
    /warning: sessions\.api_key stands in the config: who reads the file may mint any token; allowed: \$\{file:PATH\}, with a file that others/,
  ]);
  t.match(withKey('"${env:KEY}"'), [/warning: sessions\.api_key comes from the environment/]);
  t.same(withKey('"${file:/key}"'), []);
  for (const wrong of ['short-secret', '"short-secret!"', '[short-secret]', '"${env:SHORT}"', '{ secret: secret }']) {
    const found = withKey(wrong);
    t.match(found, [/error: sessions\.api_key is something else; allowed: a key of 20 to 256 letters/], wrong);
  }
  for (const wrong of [key, 'short-secret', '[short-secret]', '"${env:SHORT}"']) {
    t.notMatch(withKey(wrong).join('\n'), /[a-z]-secret/, wrong);
  }
  t.end();
});

t.test('sessions, compiled', (t) => {
  const whole = compiled(
    withRoutes([both], {
      sessions:
        '{ core_url: "https://core.example.com/app/", api_domain: "https://API.example.com:443", api_base_path: /v1/auth/, check_database: true, ' +
        'cookie_domain: example.com, cookie_same_site: none }',
    }),
  );
  t.match(whole.sessions, {
    coreUrl: 'https://core.example.com/app',
    apiKey: null,
    apiDomain: 'https://api.example.com',
    apiBasePath: '/v1/auth',
    issuer: 'https://api.example.com/v1/auth',
    checkDatabase: true,
    cookie: { domain: 'example.com', sameSite: 'none', secure: true },
    keys: {
      source: { kind: 'url', url: 'https://core.example.com/app/.well-known/jwks.json' },
      maxAgeMs: 600_000,
      cooldownMs: 5_000,
    },
  });
  t.match(whole.routes[0], {
    acceptsService: true,
    session: { claims: [{ path: ['st-role', 'v'], value: 'support' }], forwardsTokens: false },
  });
  const lone = compiled(
    withRoutes([`${base}, accept: [session], session: { claims: { a.b.c: 5 }, forward_tokens: true }`], {
      sessions: '{ core_url: "http://127.0.0.1:3567", api_domain: "http://localhost:3000", api_base_path: / }',
    }),
  );
  t.match(lone.sessions, {
    issuer: 'http://localhost:3000',
    apiBasePath: '',
    checkDatabase: false,
    cookie: { domain: null, sameSite: 'lax', secure: false },
  });
  t.match(lone.routes[0], {
    acceptsService: false,
    approvals: [],
    session: { claims: [{ path: ['a', 'b', 'c'], value: 5 }], forwardsTokens: true },
  });
  t.equal(compiled(withRoutes([`${base}, ${who}`], { sessions })).sessions, null, 'the SDK is not loaded for nothing');
  t.end();
});

t.test('a spelling that reaches a route for more users is told of', (t) => {
  const routes = (first: string, second: string): readonly string[] =>
    problemsOf(
      withRoutes(
        [
          `name: a, methods: [GET], path: /a, accept: [session], session: { claims: ${first} }`,
          `name: b, methods: [GET], path: /A, accept: [session], session: { claims: ${second} }`,
        ],
        { sessions },
      ),
    ).filter((line) => line.includes(' error: '));
  t.same(routes('{ r: x }', '{ r: x }'), []);
  t.match(routes('{ r: x, s: y }', '{ r: x }'), [/route "b" .* is less restrictive than route "a"/]);
  t.end();
});
