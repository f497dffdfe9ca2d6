import t from 'tap';
import { configText, errorsOf, problemsOf, withRoutes } from '../../inspection.js';
import { type Entries, issuerText } from './issuer-of-profile.js';

const problems: readonly { name: string; profile: string; changes: Entries; expected: readonly RegExp[] }[] = [
  { name: 'core, by name', profile: 'core', changes: { profile: 'core', algorithms: '[RS256]' }, expected: [] },
  {
    name: 'a Core with another algorithm',
    profile: 'core',
    changes: { algorithms: '[RS256, ES256]' },
    expected: [
      /error: issuers\.idp\.algorithms\[1\] is "ES256", with which no Core signs; allowed: RS256 with profile: core$/,
    ],
  },
  {
    name: 'a Core with discovery',
    profile: 'core',
    changes: { discovery: 'true' },
    expected: [/error: issuers\.idp\.discovery has no use with profile: core; allowed: profile: oauth or kubernetes$/],
  },
  {
    name: 'a Core with other claims',
    profile: 'core',
    changes: { claims: '{ subject: azp }' },
    expected: [
      /error: issuers\.idp\.claims has no use with profile: core; allowed: profile: oauth or kubernetes or spiffe$/,
    ],
  },
  {
    name: 'no profile of that name',
    profile: 'oauth',
    changes: { profile: 'oidc' },
    expected: [/error: issuers\.idp\.profile is "oidc"; allowed: core, oauth, kubernetes, spiffe$/],
  },
  {
    name: 'no issuer',
    profile: 'oauth',
    changes: { issuer: null },
    expected: [/error: issuers\.idp\.issuer is missing; allowed: 1 to 512 visible ASCII characters$/],
  },
  {
    name: 'a shared secret',
    profile: 'oauth',
    changes: { algorithms: '[HS256]' },
    expected: [/error: issuers\.idp\.algorithms\[0\] is "HS256"; allowed: RS256, RS384, /],
  },
  {
    name: 'none',
    profile: 'oauth',
    changes: { algorithms: '[none]' },
    expected: [/error: issuers\.idp\.algorithms\[0\] is "none"; allowed: RS256, /],
  },
  {
    name: 'no algorithms',
    profile: 'oauth',
    changes: { algorithms: '[]' },
    expected: [/error: issuers\.idp\.algorithms is an empty list; /],
  },
  {
    name: 'no types',
    profile: 'oauth',
    changes: { token_typ: '[]' },
    expected: [/error: issuers\.idp\.token_typ is an empty list; /],
  },
  {
    name: 'a type that is none',
    profile: 'oauth',
    changes: { token_typ: '["*"]' },
    expected: [/error: issuers\.idp\.token_typ\[0\] is "\*"; allowed: a media type such as at\+jwt, or absent$/],
  },
  {
    name: 'claims of the Core',
    profile: 'oauth',
    changes: { source: 'x', token_type: 'y' },
    expected: [
      /error: issuers\.idp\.source has no use with profile: oauth; allowed: claims\.require, /,
      /error: issuers\.idp\.token_type has no use with profile: oauth; allowed: claims\.require, .*token_typ for the header$/,
    ],
  },
  {
    name: 'a path with an empty name',
    profile: 'oauth',
    changes: { claims: '{ permissions: a..b }' },
    expected: [
      /error: issuers\.idp\.claims\.permissions is "a\.\.b"; allowed: names of claims from the payload inwards/,
    ],
  },
  {
    name: 'a path that is too deep',
    profile: 'oauth',
    changes: { claims: `{ permissions: a${'.a'.repeat(16)} }` },
    expected: [/error: issuers\.idp\.claims\.permissions is /],
  },
  {
    name: 'a claim that has to be nothing',
    profile: 'oauth',
    changes: { claims: '{ require: { tenant: [] } }' },
    expected: [
      /error: issuers\.idp\.claims\.require\.tenant is an empty list; allowed: a list of values, at least one$/,
    ],
  },
  {
    name: 'a claim that has to be a map',
    profile: 'oauth',
    changes: { claims: '{ require: { tenant: { a: b } } }' },
    expected: [
      /error: issuers\.idp\.claims\.require\.tenant is a map; allowed: a text, a whole number .* or a truth value, or a list of them$/,
    ],
  },
  {
    name: 'numbers of which several are read alike',
    profile: 'oauth',
    changes: { claims: '{ require: { tenant: 1234567890123456789, team: [5, -9007199254740992], part: 0.1 } }' },
    expected: [
      /error: issuers\.idp\.claims\.require\.tenant is 1234567890123456800; allowed: .*in quotes, if the token has it as a text/,
      /error: issuers\.idp\.claims\.require\.team\[1\] is -9007199254740992; allowed: .*in quotes/,
      /error: issuers\.idp\.claims\.require\.part is 0\.1; allowed: .*in quotes/,
    ],
  },
  {
    name: 'two places for keys',
    profile: 'oauth',
    changes: { discovery: 'true', jwks_url: '"https://idp.example.com/k"' },
    expected: [/error: issuers\.idp\.discovery stands beside issuers\.idp\.jwks_url; allowed: one of them$/],
  },
  {
    name: 'metadata beside a file of keys',
    profile: 'oauth',
    changes: { discovery_url: '"https://idp.example.com/k"', jwks_file: '/k' },
    expected: [
      /error: issuers\.idp\.discovery_url stands beside issuers\.idp\.jwks_file; allowed: one of them$/,
      /warning: issuers\.idp\.jwks_file does not follow/,
    ],
  },
  {
    name: 'origins without metadata',
    profile: 'oauth',
    changes: { jwks_origins: '["https://a.example"]', jwks_url: '"https://idp.example.com/k"' },
    expected: [/error: issuers\.idp\.jwks_origins has no use with issuers\.idp\.jwks_url; allowed: discovery$/],
  },
  {
    name: 'an origin with a path',
    profile: 'oauth',
    changes: { jwks_origins: '["https://a.example/"]' },
    expected: [/error: issuers\.idp\.jwks_origins\[0\] is "https:\/\/a\.example\/"; allowed: an origin such as/],
  },
  {
    name: 'an origin in plaintext',
    profile: 'oauth',
    changes: { jwks_origins: '["http://a.example", "http://127.0.0.1:1"]' },
    expected: [
      /error: issuers\.idp\.jwks_origins\[0\] would have keys fetched over http from another host: .*; allowed: https, or allow_http: true$/,
    ],
  },
  {
    name: 'no place for keys',
    profile: 'oauth',
    changes: { discovery: 'false' },
    expected: [/error: issuers\.idp does not say where its keys are; allowed: discovery: true, jwks_url or jwks_file$/],
  },
  {
    name: 'an issuer that is no URL',
    profile: 'oauth',
    changes: { issuer: 'idp' },
    expected: [
      /error: issuers\.idp\.issuer is no URL below which metadata could be: it is "idp"; allowed: discovery_url, jwks_url or jwks_file beside it$/,
    ],
  },
  {
    name: 'an issuer with a query',
    profile: 'oauth',
    changes: { issuer: '"https://idp.example.com/?a=b"' },
    expected: [/error: issuers\.idp\.issuer is no URL below which metadata could be/],
  },
  {
    name: 'metadata in plaintext',
    profile: 'oauth',
    changes: { issuer: '"http://idp.example.com"' },
    expected: [/error: issuers\.idp would fetch keys over http from another host/],
  },
  {
    name: 'metadata of another host',
    profile: 'oauth',
    changes: { discovery_url: '"https://other.example.com/m"' },
    expected: [/warning: issuers\.idp takes keys from another host than its issuer’s/],
  },
  {
    name: 'metadata of another host, with a reason',
    profile: 'oauth',
    changes: { discovery_url: '"https://other.example.com/m"', jwks_url_because: '"its address inside"' },
    expected: [],
  },
  {
    name: 'another subject in a cluster',
    profile: 'kubernetes',
    changes: { claims: '{ subject: azp }' },
    expected: [
      /error: issuers\.idp\.claims\.subject has no use with profile: kubernetes, whose standard says who the caller is; allowed: profile: oauth$/,
    ],
  },
  {
    name: 'a token over http',
    profile: 'kubernetes',
    changes: { discovery_url: '"http://127.0.0.1:8001/m"', token_file: '/t', jwks_url_because: '"a relay"' },
    expected: [/error: issuers\.idp\.token_file has no use without https; allowed: an https discovery_url$/],
  },
  {
    name: 'a token for a file of keys',
    profile: 'kubernetes',
    changes: { jwks_file: '/k', token_file: '/t' },
    expected: [
      /error: issuers\.idp\.token_file has no use with issuers\.idp\.jwks_file; allowed: jwks_url$/,
      /warning: issuers\.idp\.jwks_file does not follow/,
    ].reverse(),
  },
  {
    name: 'a token for a provider',
    profile: 'oauth',
    changes: { token_file: '/t' },
    expected: [/error: issuers\.idp\.token_file has no use with profile: oauth; allowed: profile: kubernetes$/],
  },
  {
    name: 'no trust domain',
    profile: 'spiffe',
    changes: { trust_domain: null },
    expected: [/error: issuers\.idp\.trust_domain is missing; allowed: 1 to 255 of a-z/],
  },
  {
    name: 'a trust domain in capitals',
    profile: 'spiffe',
    changes: { trust_domain: 'Shop.example' },
    expected: [/error: issuers\.idp\.trust_domain is "Shop\.example"; allowed: 1 to 255 of a-z/],
  },
  {
    name: 'no bundle',
    profile: 'spiffe',
    changes: { bundle_file: null },
    expected: [/error: issuers\.idp does not say where its keys are; allowed: bundle_url or bundle_file$/],
  },
  {
    name: 'two bundles',
    profile: 'spiffe',
    changes: { bundle_url: '"https://spire.example.com"' },
    expected: [/error: issuers\.idp\.bundle_file stands beside issuers\.idp\.bundle_url; allowed: one of them$/],
  },
  {
    name: 'keys that are no bundle',
    profile: 'spiffe',
    changes: { bundle_file: null, jwks_url: '"https://spire.example.com"' },
    expected: [
      /error: issuers\.idp does not say where its keys are/,
      /error: issuers\.idp\.jwks_url has no use with profile: spiffe; allowed: bundle_url$/,
    ],
  },
  {
    name: 'a bundle over http',
    profile: 'spiffe',
    changes: { bundle_file: null, bundle_url: '"http://spire.example.com"' },
    expected: [/error: issuers\.idp would fetch keys over http from another host/],
  },
];

t.test('what a profile does not have is refused by name', (t) => {
  for (const { name, profile, changes, expected } of problems) {
    const found = problemsOf(issuerText(profile, changes));
    t.equal(found.length, expected.length, `${name}: ${found.join('\n')}`);
    t.match(found, expected, name);
  }
  t.end();
});

t.test('two issuers that take the same tokens', (t) => {
  const both = (one: string, other: string): readonly string[] =>
    problemsOf(configText({ issuers: `{ one: { ${one} }, other: { ${other} } }` }));
  const oauth = 'issuer: "https://idp.example.com", profile: oauth';
  t.match(both(`${oauth}, audience: [a, b]`, `${oauth}, audience: [b, c]`), [
    /warning: issuers\.other takes the same tokens as issuers\.one: keys of either vouch for them; allowed: another issuer or audience$/,
  ]);
  const spiffe = 'profile: spiffe, audience: a, bundle_file: /b';
  t.match(both(`${spiffe}, trust_domain: a.example`, `${spiffe}, trust_domain: a.example`), [
    /issuers\.other takes the same/,
  ]);
  t.same(both(`${spiffe}, trust_domain: a.example`, `${spiffe}, trust_domain: b.example`), []);
  t.end();
});

t.test('two issuers whose subjects are one caller', (t) => {
  const both = (one: string, other: string): readonly string[] =>
    problemsOf(configText({ issuers: `{ one: { ${one} }, other: { ${other} } }` }));
  const oauth = 'issuer: "https://idp.example.com", profile: oauth';
  const said =
    /warning: issuers\.other has the issuer of issuers\.one: a subject that both take is one caller, with one set of limits and idempotency keys; allowed: /;
  t.match(both(`${oauth}, audience: a`, `${oauth}, audience: b`), [said]);
  t.equal(both(`${oauth}, audience: a`, `${oauth}, audience: a`).length, 1, 'what takes the same tokens is told once');
  t.same(both(`${oauth}, audience: a`, 'issuer: "https://idp2.example.com", profile: oauth, audience: a'), []);
  const spiffe = 'profile: spiffe, trust_domain: a.example, bundle_file: /b';
  t.match(both(`${spiffe}, audience: a`, `${spiffe}, audience: b`), [said]);
  t.match(both(`${spiffe}, audience: a`, `${spiffe}, issuer: "spiffe://a.example", audience: b`), [said]);
  t.match(
    both(`${spiffe}, audience: a`, `${spiffe}, issuer: "https://spire.example", audience: a`),
    [/issuers\.other takes the same tokens as issuers\.one/],
    'one without issuer takes any of its trust domain',
  );
  t.same(both(`${spiffe}, audience: a`, `${spiffe}, issuer: "https://spire.example", audience: b`), []);
  t.end();
});

const idp = 'issuer: "https://idp.example.com", audience: a, profile: oauth';
const clients = `${idp}, claims: { subject: client_id }`;
const ofKeys = `${clients}, key_ids: { accept: [b-*, c] }`;
const ofKind = `${idp}, claims: { subject: client_id, require: { kind: y } }`;
const workloads = 'profile: spiffe, trust_domain: a.example, audience: a, bundle_file: /b';
const approved = 'subjects: [s], permissions: [p]';
const single = 'single_use: true';
const keyed = 'idempotency: required';

const holders: readonly {
  readonly name: string;
  readonly one?: string;
  readonly other?: string;
  /** What the routes of all issuers reserve, or of those named. */
  readonly routes?: readonly string[];
  readonly refused: boolean;
}[] = [
  { name: 'a single-use token', routes: [single], refused: true },
  { name: 'a key', routes: [keyed], refused: true },
  { name: 'nothing is reserved', routes: ['idempotency: none'], refused: false },
  { name: 'sessions alone are reserved', routes: [`${keyed}, accept: [session]`], refused: false },
  {
    name: 'one token on two routes',
    routes: [`${single}, issuers: [one]`, `${single}, issuers: [other]`],
    refused: true,
  },
  {
    name: 'keys of two operations',
    routes: [`${keyed}, issuers: [one]`, `${keyed}, issuers: [other]`],
    refused: false,
  },
  {
    name: 'keys of one operation',
    routes: ['one', 'other'].map((name) => `idempotency: { mode: required, operation: o }, issuers: [${name}]`),
    refused: true,
  },
  { name: 'one of them is reserved', routes: [`${single}, issuers: [one]`, 'issuers: [other]'], refused: false },
  { name: 'the same subject', other: `${idp}, claims: { subject: sub }`, refused: false },
  {
    name: 'another audience',
    other: `${idp.replace('audience: a', 'audience: b')}, claims: { subject: azp }`,
    refused: false,
  },
  { name: 'a service account', other: `${idp.replace('oauth', 'kubernetes')}, token_typ: [at+jwt]`, refused: true },
  { name: 'another typ', other: idp.replace('oauth', 'kubernetes'), refused: false },
  { name: 'another algorithm', one: `${idp}, algorithms: [ES256]`, refused: true },
  { name: 'no common algorithm', one: `${idp}, algorithms: [PS256]`, refused: false },
  { name: 'no common key id', other: ofKeys, one: `${idp}, key_ids: { accept: [a-*] }`, refused: false },
  { name: 'a common key id', other: ofKeys, one: `${idp}, key_ids: { accept: [a-*, b-1] }`, refused: true },
  { name: 'another value of a claim', other: ofKind, one: `${idp}, claims: { require: { kind: x } }`, refused: false },
  {
    name: 'a common value of a claim',
    other: ofKind,
    one: `${idp}, claims: { require: { kind: [x, y] } }`,
    refused: true,
  },
  {
    name: 'a value of another claim',
    other: ofKind,
    one: `${idp}, claims: { require: { of.kind: x, kinds: x } }`,
    refused: true,
  },
  {
    name: 'a claim that is a text in one and has members in the other',
    other: ofKind,
    one: `${idp}, claims: { require: { kind.of: y } }`,
    refused: false,
  },
  {
    name: 'the same the other way round',
    other: `${idp}, claims: { subject: client_id, require: { kind.of.it: y } }`,
    one: `${idp}, claims: { require: { kind: y } }`,
    refused: false,
  },
  {
    name: 'members of one claim',
    other: `${idp}, claims: { subject: client_id, require: { kind.of: y } }`,
    one: `${idp}, claims: { require: { kind.it: y } }`,
    refused: true,
  },
  { name: 'a trust domain', one: workloads, other: `${workloads}, issuer: "https://spire.example"`, refused: true },
  {
    name: 'the other way round',
    one: `${workloads}, issuer: "https://spire.example"`,
    other: workloads,
    refused: true,
  },
  { name: 'its own name', one: workloads, other: `${workloads}, issuer: "spiffe://a.example"`, refused: false },
];

t.test('two issuers that name the holder of one token differently', (t) => {
  for (const { name, one = idp, other = clients, routes = [single], refused } of holders) {
    const text = withRoutes(
      routes.map((route, index) => `name: r${index}, methods: [POST], path: /r${index}, ${approved}, ${route}`),
      { store: '{ memory: {} }', issuers: `{ one: { ${one} }, other: { ${other} } }` },
    );
    const found = errorsOf(text).filter((line) => line.includes('names its caller differently'));
    t.equal(found.length, refused ? 1 : 0, name);
    if (refused) t.match(found, [/error: issuers\.other can accept a token of issuers\.one and names/], name);
  }
  t.end();
});
