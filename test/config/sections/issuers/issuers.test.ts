import t from 'tap';
import { compiled, configText, errorsOf, problemsOf } from '../../inspection.js';

type Entries = Readonly<Record<string, string | null>>;

const usual: Entries = {
  issuer: '"https://api.example.com"',
  audience: 'orders',
  source: 'microservice',
  token_type: 'service',
};

function issuerText(changes: Entries = {}, name = 'core'): string {
  const entries = Object.entries({ ...usual, ...changes }).flatMap(([key, value]) =>
    value === null ? [] : [`${key}: ${value}`],
  );
  return configText({ issuers: `{ ${name}: { ${entries.join(', ')} } }` });
}

const cases = [
  { name: 'as usual', changes: {}, expected: [] },
  {
    name: 'no issuer',
    changes: { issuer: null },
    expected: [/3:12: error: issuers\.core\.issuer is missing; allowed: 1 to 512 visible ASCII characters$/],
  },
  {
    name: 'an issuer with a space',
    changes: { issuer: '"https://api example.com"' },
    expected: [/3:28: error: issuers\.core\.issuer is "https:\/\/api example\.com"; allowed: 1 to 512/],
  },
  {
    name: 'an issuer beyond ASCII',
    changes: { issuer: '"https://äpi.example.com"' },
    expected: [/error: issuers\.core\.issuer is "https:\/\/äpi\.example\.com"; allowed: 1 to 512/],
  },
  {
    name: 'the longest issuer',
    changes: { issuer: `"https://${'a'.repeat(504)}"`, jwks_url: '"http://127.0.0.1/k"' },
    expected: [],
  },
  {
    name: 'too long an issuer',
    changes: { issuer: `"https://${'a'.repeat(505)}"`, jwks_url: '"https://x/k"' },
    expected: [/error: issuers\.core\.issuer is "https:\/\/a+…; allowed/],
  },
  { name: 'no audience', changes: { audience: null }, expected: [/error: issuers\.core\.audience is missing; /] },
  {
    name: 'no source',
    changes: { source: null },
    expected: [/error: issuers\.core\.source is missing; allowed: one or a list of texts$/],
  },
  { name: 'no token type', changes: { token_type: null }, expected: [/error: issuers\.core\.token_type is missing; /] },
  {
    name: 'several audiences',
    changes: { audience: '[a, b]' },
    expected: [/error: issuers\.core\.audience is a list; allowed: a text of 1 to 256/],
  },
  {
    name: 'no sources',
    changes: { source: '[]' },
    expected: [/error: issuers\.core\.source is an empty list; allowed: a list of texts, at least one$/],
  },
  {
    name: 'a number among sources',
    changes: { source: '[a, 5]' },
    expected: [/error: issuers\.core\.source\[1\] is 5; allowed: a text/],
  },
  {
    name: 'an empty source',
    changes: { source: '""' },
    expected: [/error: issuers\.core\.source is ""; allowed: a text/],
  },
  { name: 'the most skew', changes: { clock_skew: '60s' }, expected: [] },
  {
    name: 'too much skew',
    changes: { clock_skew: '61s' },
    expected: [/error: issuers\.core\.clock_skew is "61s"; allowed: a duration from 0ms to 60s/],
  },
  { name: 'no skew', changes: { clock_skew: '0s' }, expected: [] },
  { name: 'the usual life', changes: { max_lifetime: '2h' }, expected: [] },
  {
    name: 'a long life',
    changes: { max_lifetime: '7201s' },
    expected: [
      /3:\d+: warning: issuers\.core\.max_lifetime is long: a stolen token is of use for "7201s"; allowed: 2h or less$/,
    ],
  },
  {
    name: 'the longest life',
    changes: { max_lifetime: '24h' },
    expected: [/warning: issuers\.core\.max_lifetime is long/],
  },
  {
    name: 'too long a life',
    changes: { max_lifetime: '25h' },
    expected: [/error: issuers\.core\.max_lifetime is "25h"; /],
  },
  {
    name: 'an issuer that is no URL',
    changes: { issuer: 'api.example.com' },
    expected: [
      /error: issuers\.core\.issuer is no URL below which keys could be: it is "api\.example\.com"; allowed: jwks_url or jwks_file beside it$/,
    ],
  },
  {
    name: 'the same beside a URL of keys',
    changes: { issuer: 'api.example.com', jwks_url: '"https://api.example.com/k"' },
    expected: [],
  },
  {
    name: 'keys of the issuer’s host, spelt otherwise',
    changes: { jwks_url: '"https://API.example.com.:8443/k"' },
    expected: [],
  },
  {
    name: 'keys of another host',
    changes: { jwks_url: '"https://keys.example.com/k"' },
    expected: [
      /3:\d+: warning: issuers\.core takes keys from another host than its issuer’s: who can publish them there signs tokens in the issuer’s name; allowed: the issuer’s host; or jwks_url_because: "…" beside it/,
    ],
  },
  {
    name: 'a host below the issuer’s is another',
    changes: { jwks_url: '"https://x.api.example.com/k"' },
    expected: [/warning: issuers\.core takes keys from another host/],
  },
  {
    name: 'the host of an issuer without a scheme',
    changes: { issuer: 'api.example.com/auth', jwks_url: '"https://api.example.com/k"' },
    expected: [],
  },
  {
    name: 'the host and port of an issuer without a scheme',
    changes: { issuer: '"api.example.com:3567"', jwks_url: '"https://api.example.com/k"' },
    expected: [],
  },
  {
    name: 'an issuer that names no host',
    changes: { issuer: '"urn:example:core"', jwks_url: '"https://api.example.com/k"' },
    expected: [/warning: issuers\.core takes keys from another host/],
  },
  {
    name: 'keys of another host, with the reason',
    changes: { jwks_url: '"https://keys.example.com/k"', jwks_url_because: 'the Core in the cluster' },
    expected: [],
  },
  {
    name: 'a reason that says nothing',
    changes: { jwks_url: '"https://keys.example.com/k"', jwks_url_because: '" "' },
    expected: [/error: issuers\.core\.jwks_url_because is " "; /],
  },
  {
    name: 'a reason for nothing',
    changes: { jwks_url_because: 'why not' },
    expected: [/3:\d+: error: issuers\.core\.jwks_url_because has no use without a jwks_url; /],
  },
  {
    name: 'several sources',
    changes: { source: '[microservice, batch]' },
    expected: [
      /3:\d+: warning: issuers\.core\.source has 2 values: tokens with any of them count, with every permission that they have; allowed: one value; a list only while names change/,
    ],
  },
  {
    name: 'several types of tokens',
    changes: { token_type: '[service, machine, other]' },
    expected: [/warning: issuers\.core\.token_type has 3 values/],
  },
  { name: 'a list of one', changes: { source: '[microservice]', token_type: '[service]' }, expected: [] },
  { name: 'keys over http from here', changes: { jwks_url: '"http://127.0.0.1:3567/k"' }, expected: [] },
  { name: 'keys over http from here by name', changes: { jwks_url: '"http://localhost:3567/k"' }, expected: [] },
  {
    name: 'keys over http from elsewhere',
    changes: { jwks_url: '"http://core:3567/k"' },
    expected: [
      /3:\d+: error: issuers\.core would fetch keys over http from another host: whoever can change the response signs tokens; allowed: https, or allow_http: true$/,
    ],
  },
  {
    name: 'the same by the issuer',
    changes: { issuer: '"http://core"' },
    expected: [/3:28: error: issuers\.core would fetch keys over http/],
  },
  {
    name: 'the same, allowed',
    changes: { jwks_url: '"http://core:3567/k"', allow_http: 'true' },
    expected: [
      /warning: keys cross the network in plaintext: issuers\.core /,
      /warning: issuers\.core takes keys from another host/,
    ],
  },
  {
    name: 'almost localhost',
    changes: { jwks_url: '"http://localhost.evil.example/k"' },
    expected: [/error: issuers\.core would fetch keys over http/],
  },
  {
    name: 'a URL with a user',
    changes: { jwks_url: '"https://a@x/k"' },
    expected: [/error: issuers\.core\.jwks_url is "https:\/\/\*\*\*@x\/k"; allowed: an http or https URL without user/],
  },
  {
    name: 'a URL with a fragment',
    changes: { jwks_url: '"https://x/k#"' },
    expected: [/error: issuers\.core\.jwks_url is /],
  },
  {
    name: 'a URL with an at sign in its path',
    changes: { jwks_url: '"https://api.example.com/@k?a=@"' },
    expected: [],
  },
  { name: 'a URL of a file', changes: { jwks_url: '"file:///k"' }, expected: [/error: issuers\.core\.jwks_url is /] },
  {
    name: 'a file',
    changes: { jwks_file: '/k.json' },
    expected: [/warning: issuers\.core\.jwks_file does not follow the issuer’s key rotation/],
  },
  {
    name: 'a file beside a URL',
    changes: { jwks_file: '/k.json', jwks_url: '"https://api.example.com/k"' },
    expected: [
      /error: issuers\.core\.jwks_file stands beside issuers\.core\.jwks_url; allowed: one of them$/,
      /warning: issuers\.core\.jwks_file does not/,
    ],
  },
  {
    name: 'an authority for a file',
    changes: { jwks_file: '/k.json', ca_file: '/ca' },
    expected: [/warning: /, /error: issuers\.core\.ca_file has no use with /],
  },
  {
    name: 'an authority for http',
    changes: { jwks_url: '"http://127.0.0.1/k"', ca_file: '/ca' },
    expected: [/error: issuers\.core\.ca_file has no use without https/],
  },
  { name: 'an authority for https', changes: { ca_file: '/ca' }, expected: [] },
  {
    name: 'no key id',
    changes: { key_ids: '{ accept: [] }' },
    expected: [/error: issuers\.core\.key_ids\.accept is an empty list; allowed: a list of key ids, at least one$/],
  },
  { name: 'every key id', changes: { key_ids: '{ accept: ["*"], reject: ["s-*", "d-1"] }' }, expected: [] },
  {
    name: 'an asterisk in front',
    changes: { key_ids: '{ accept: ["*-d"] }' },
    expected: [/error: issuers\.core\.key_ids\.accept\[0\] is "\*-d"; /],
  },
  { name: 'two asterisks', changes: { key_ids: '{ accept: ["d-**"] }' }, expected: [/accept\[0\] is "d-\*\*"; /] },
  { name: 'an empty key id', changes: { key_ids: '{ accept: [""] }' }, expected: [/accept\[0\] is ""; /] },
  { name: 'a key id with a space', changes: { key_ids: '{ accept: ["a b"] }' }, expected: [/accept\[0\] is "a b"; /] },
  { name: 'the longest key id', changes: { key_ids: `{ accept: ["${'d'.repeat(256)}"] }` }, expected: [] },
  {
    name: 'too long a key id',
    changes: { key_ids: `{ accept: ["${'d'.repeat(257)}"] }` },
    expected: [/accept\[0\] is "d+…; allowed: /],
  },
  {
    name: 'ages that contradict',
    changes: { jwks: '{ min_age: 11m }' },
    expected: [/error: issuers\.core\.jwks\.min_age is more than max_age; allowed: at most max_age$/],
  },
  { name: 'a default that gives way', changes: { jwks: '{ max_age: 1s }' }, expected: [] },
  {
    name: 'keys that end with a short outage',
    changes: { jwks: '{ max_stale: 299s }' },
    expected: [
      /3:\d+: warning: issuers\.core\.jwks\.max_stale is short: keys that cannot be refreshed end "299s" after their lifetime; allowed: 5m or more$/,
    ],
  },
  {
    name: 'a cool-down that nobody waits for',
    changes: { jwks: '{ cooldown: 10001ms }' },
    expected: [
      /3:\d+: warning: issuers\.core\.jwks\.cooldown is longer than callers wait: for up to "10001ms" one with a new key is refused; allowed: 10s or less$/,
    ],
  },
  { name: 'the longest that they wait for', changes: { jwks: '{ cooldown: 10s }' }, expected: [] },
  { name: 'keys that outlast one', changes: { jwks: '{ max_stale: 5m }' }, expected: [] },
  { name: 'keys that last as the issuer says', changes: { jwks: '{ max_stale: null }' }, expected: [] },
  { name: 'a long age: max_stale comes on top of it', changes: { jwks: '{ max_age: 2h }' }, expected: [] },
  {
    name: 'an unknown key',
    changes: { jwks: '{ maxage: 2h }' },
    expected: [/error: unknown key "maxage" in issuers\.core\.jwks, did you mean "max_age"\?; /],
  },
] as const;

t.test('an issuer that lacks a key, or has one out of range, is told of with its place', (t) => {
  for (const { name, changes, expected } of cases) {
    const problems = problemsOf(issuerText(changes));
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    t.match(problems, expected, name);
  }
  t.end();
});

const pairs: readonly { readonly name: string; readonly other: Entries; readonly warned: boolean }[] = [
  { name: 'all the same', other: {}, warned: true },
  {
    name: 'from another place',
    other: { jwks_url: '"https://other.example.com/k"', jwks_url_because: 'it moves' },
    warned: true,
  },
  { name: 'one source in common', other: { source: '[batch, microservice]' }, warned: true },
  { name: 'one token type in common', other: { token_type: '[service, machine]' }, warned: true },
  { name: 'another issuer', other: { issuer: '"https://api.example.com/eu"' }, warned: false },
  { name: 'another audience', other: { audience: 'invoices' }, warned: false },
  { name: 'another source', other: { source: 'batch' }, warned: false },
  { name: 'another token type', other: { token_type: 'machine' }, warned: false },
];

t.test('two issuers that take the same tokens are doubtful', (t) => {
  const entries = (changes: Entries): string =>
    Object.entries({ ...usual, ...changes })
      .map(([key, value]) => `${key}: ${String(value)}`)
      .join(', ');
  for (const { name, other, warned } of pairs) {
    const problems = problemsOf(configText({ issuers: `{ core: { ${entries({})} }, more: { ${entries(other)} } }` }));
    const expected =
      /3:\d+: warning: issuers\.more takes the same tokens as issuers\.core: keys of either vouch for them; allowed: another issuer, audience, source or token_type$/;
    const doubts = problems.filter((problem) => !/ has 2 values: | is one caller, /.test(problem));
    t.match(doubts, warned ? [expected] : [], name);
    t.equal(doubts.length, warned ? 1 : 0, `${name}: ${problems.join('\n')}`);
  }
  const three = problemsOf(
    configText({ issuers: `{ a: { ${entries({})} }, b: { ${entries({})} }, c: { ${entries({})} } }` }),
  );
  t.match(three, [/issuers\.b takes the same tokens as issuers\.a/, /issuers\.c takes the same tokens as issuers\.a/]);
  t.end();
});

const names = [
  { input: 'core', expected: true },
  { input: 'Core-1.a_b', expected: true },
  { input: 'constructor', expected: true },
  { input: 'c'.repeat(64), expected: true },
  { input: 'c'.repeat(65), expected: false },
  { input: '"a b"', expected: false },
  { input: '_a', expected: false },
  { input: '""', expected: false },
  { input: '"${env:X}"', expected: false },
];

t.test('names of issuers', (t) => {
  for (const { input, expected } of names) {
    const problems = problemsOf(issuerText({}, input));
    if (expected) t.same(problems, [], input);
    else t.match(problems, [/^c\.yaml:3:12: error: ".*" is no name of an issuer; allowed: 1 to 64 letters, /], input);
  }
  t.match(problemsOf(issuerText({}, '__proto__')), [
    /^c\.yaml:3:12: error: issuers has the key "__proto__", which is never read; allowed: another key$/,
    /routes\[0\] needs credentials, and no issuer is configured/,
  ]);
  t.end();
});

const missing = [
  {
    name: 'none',
    input: null,
    expected: [/^c\.yaml:4:10: error: routes\[0\] needs credentials, and no issuer is configured; /],
  },
  {
    name: 'an empty map',
    input: '{}',
    expected: [/error: routes\[0\] needs credentials, and no issuer is configured; /],
  },
  {
    name: 'a list',
    input: '[]',
    expected: [/^c\.yaml:3:10: error: issuers is an empty list; allowed: a map of issuers$/],
  },
  { name: 'null', input: 'null', expected: [/^c\.yaml:3:10: error: issuers is empty; allowed: a map of issuers$/] },
  {
    name: 'one that is no map',
    input: '{ core: x }',
    expected: [/^c\.yaml:3:18: error: issuers\.core is a text; allowed: a map$/],
  },
];

t.test('protected routes need an issuer', (t) => {
  for (const { name, input, expected } of missing) {
    const place = input === null ? expected.map((line) => new RegExp(line.source.replace('4:10', '3:10'))) : expected;
    const problems = problemsOf(configText({ issuers: input }));
    t.equal(problems.length, expected.length, `${name}: ${problems.join('\n')}`);
    t.match(problems, place, name);
  }
  t.same(
    errorsOf(configText({ issuers: null, routes: '[{ name: a, methods: [GET], path: /a, access: public }]' })),
    [],
  );
  t.end();
});

t.test('issuers, compiled', (t) => {
  t.same(compiled(issuerText()).issuers, [
    {
      rules: {
        name: 'core',
        profile: 'core',
        issuer: 'https://api.example.com',
        expectedIssuer: 'https://api.example.com',
        audience: 'orders',
        audiences: new Set(['orders']),
        sources: new Set(['microservice']),
        tokenTypes: new Set(['service']),
        algorithms: new Set(['RS256']),
        headerTypes: new Set(['jwt', 'absent']),
        claims: { subject: ['sub'], permissions: ['permissions'], require: [] },
        trustDomain: null,
        clockSkewS: 5,
        maxLifetimeS: 7_200,
        keyIds: { accept: ['d-*'], reject: [] },
        binding: 'accept',
      },
      introspection: null,
      allowsHttp: false,
      keys: {
        source: { kind: 'url', url: 'https://api.example.com/auth/jwt/jwks.json' },
        rules: { algorithms: new Set(['RS256']), use: 'sig' },
        caFile: null,
        tokenFile: null,
        minAgeMs: 10_000,
        maxAgeMs: 600_000,
        maxStaleMs: null,
        cooldownMs: 5_000,
        timeoutMs: 5_000,
        maxBytes: 262_144,
      },
    },
  ]);
  const keys = (changes: Readonly<Record<string, string>>) => compiled(issuerText(changes)).issuers[0]?.keys;
  t.same(keys({ issuer: '"https://api.example.com/"' })?.source, {
    kind: 'url',
    url: 'https://api.example.com/auth/jwt/jwks.json',
  });
  t.same(keys({ issuer: '"https://api.example.com/t1"' })?.source, {
    kind: 'url',
    url: 'https://api.example.com/t1/auth/jwt/jwks.json',
  });
  t.same(keys({ jwks_file: '/k' })?.source, { kind: 'file', path: '/k' });
  t.match(keys({ jwks: '{ max_age: 1s }' }), { minAgeMs: 1_000, maxAgeMs: 1_000 });
  t.same(compiled(issuerText({ source: '[a, b]', token_type: '[c]' })).issuers[0]?.rules.sources, new Set(['a', 'b']));
  t.end();
});

const revoked = [
  {
    name: 'nothing',
    input: '{}',
    expected: { keyIds: new Set(), subjects: new Set(), tokenIds: new Set(), issuedBeforeS: null },
  },
  {
    name: 'everything',
    input: '{ key_ids: [d-1], subjects: [x], token_ids: [j], issued_before: 2026-01-31T12:00:00Z }',
    expected: {
      keyIds: new Set(['d-1']),
      subjects: new Set(['x']),
      tokenIds: new Set(['j']),
      issuedBeforeS: 1_769_860_800,
    },
  },
  {
    name: 'another zone',
    input: '{ issued_before: "2026-01-31T13:00:00+01:00" }',
    expected: { issuedBeforeS: 1_769_860_800 },
  },
  {
    name: 'a fraction counts as begun',
    input: '{ issued_before: 2026-01-31T12:00:00.001Z }',
    expected: { issuedBeforeS: 1_769_860_801 },
  },
];

t.test('what is revoked is read, and what cannot be is told of with its place', (t) => {
  for (const { name, input, expected } of revoked) {
    t.match(compiled(configText({ revoked: input })).revoked, expected, name);
  }
  for (const time of [
    'yesterday',
    '2026-01-31',
    '2026-02-30T12:00:00Z',
    '2026-01-31T12:00:00',
    '1769860800',
    '2026-01-31 12:00:00Z',
  ]) {
    t.match(
      problemsOf(configText({ revoked: `{ issued_before: ${time} }` })),
      [/^c\.yaml:5:27: error: revoked\.issued_before is .*; allowed: a time such as 2026-01-31T12:00:00Z$/],
      time,
    );
  }
  t.match(problemsOf(configText({ revoked: '{ subjects: ["a b"], token_ids: [""], key_ids: [5] }' })), [
    /revoked\.subjects\[0\]/,
    /revoked\.token_ids\[0\]/,
    /revoked\.key_ids\[0\]/,
  ]);
  t.end();
});
