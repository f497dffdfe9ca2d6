import fc from 'fast-check';
import t from 'tap';
import { isMeantFor, subjectOf, valueAt, verifyTokenClaims } from '../../../src/decision/token/profile-claims.js';
import type { IssuerRules } from '../../../src/decision/route/policy.js';
import type { JsonObject, JsonValue } from '../../../src/lib/strict-json.js';
import { parseStrictJson } from '../../../src/lib/strict-json.js';
import { issuerRules, nowMs, nowS } from '../samples.js';

type Changes = Readonly<Record<string, unknown>>;

const shared: Partial<IssuerRules> = {
  issuer: 'https://idp.example.com',
  expectedIssuer: 'https://idp.example.com',
  audience: 'orders',
  audiences: new Set(['orders', 'api']),
  sources: new Set(),
  tokenTypes: new Set(),
};

const rulesOf: Readonly<Record<string, IssuerRules>> = {
  oauth: issuerRules({
    ...shared,
    profile: 'oauth',
    claims: { subject: ['sub'], permissions: ['scope'], require: [] },
  }),
  kubernetes: issuerRules({
    ...shared,
    profile: 'kubernetes',
    claims: {
      subject: ['sub'],
      permissions: null,
      require: [{ path: ['kubernetes.io', 'pod', 'name'], values: ['api-0', 'api-1'] }],
    },
  }),
  spiffe: issuerRules({
    ...shared,
    profile: 'spiffe',
    issuer: 'spiffe://shop.example',
    expectedIssuer: null,
    trustDomain: 'shop.example',
    claims: { subject: ['sub'], permissions: null, require: [] },
  }),
};

const times = { iat: nowS, nbf: nowS, exp: nowS + 300 };

const good: Readonly<Record<string, Changes>> = {
  oauth: {
    ...times,
    iss: 'https://idp.example.com',
    aud: 'orders',
    sub: 'checkout',
    client_id: 'c-1',
    jti: 'j-1',
    scope: 'orders:read orders:write',
  },
  kubernetes: {
    ...times,
    iss: 'https://idp.example.com',
    aud: ['orders'],
    sub: 'system:serviceaccount:shop:checkout',
    jti: 'j-1',
    'kubernetes.io': {
      namespace: 'shop',
      serviceaccount: { name: 'checkout', uid: 'u' },
      pod: { name: 'api-0', uid: 'p' },
      node: { name: 'n-1', uid: 'n' },
    },
  },
  spiffe: { ...times, aud: ['orders'], sub: 'spiffe://shop.example/ns/shop/sa/checkout' },
};

function payloadOf(claims: Changes | string): JsonObject {
  const parsed = parseStrictJson(Buffer.from(typeof claims === 'string' ? claims : JSON.stringify(claims)), {
    maxDepth: 16,
  });
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value;
}

interface Row {
  readonly name: string;
  readonly profile: string;
  readonly changes?: Changes;
  readonly rules?: Partial<IssuerRules>;
  readonly type?: JsonValue | undefined;
  /** The reason, or what of the caller is as expected. */
  readonly expected: string | object;
}

function verdictOf({ profile, changes = {}, rules = {}, ...row }: Row): string | object {
  const type = 'type' in row ? row.type : profile === 'oauth' ? 'at+jwt' : undefined;
  const merged = { ...(rulesOf[profile] ?? issuerRules()), ...rules };
  const verdict = verifyTokenClaims(payloadOf({ ...good[profile], ...changes }), merged, nowMs, type);
  return verdict.ok ? verdict.value : verdict.error.reason;
}

const oauthClaims = (claims: Partial<IssuerRules['claims']>): Partial<IssuerRules> => ({
  claims: { subject: ['sub'], permissions: ['scope'], require: [], ...claims },
});
const pod = (changes: Changes): Changes => ({
  'kubernetes.io': { ...(good['kubernetes']?.['kubernetes.io'] as Changes), ...changes },
});

function accountRow(names: string, isName: boolean): Row {
  const [namespace = '', name = ''] = names.split(':');
  const changes = { ...pod({ namespace, serviceaccount: { name } }), sub: `system:serviceaccount:${names}` };
  const expected = isName ? { subject: `${namespace}/${name}` } : 'claim_mismatch';
  return { name: `account ${names}`, profile: 'kubernetes', changes, expected };
}

const rows: readonly Row[] = [
  {
    name: 'as RFC 9068 has it',
    profile: 'oauth',
    expected: {
      subject: 'checkout',
      permissions: ['orders:read', 'orders:write'],
      tokenId: 'j-1',
      expiresAtS: nowS + 300,
      issuedAtS: nowS,
    },
  },
  { name: 'a list that holds us', profile: 'oauth', changes: { aud: ['x', 'api'] }, expected: { subject: 'checkout' } },
  { name: 'a list of strangers', profile: 'oauth', changes: { aud: ['x', 'y'] }, expected: 'audience_mismatch' },
  { name: 'an empty list', profile: 'oauth', changes: { aud: [] }, expected: 'audience_mismatch' },
  { name: 'a list in a list', profile: 'oauth', changes: { aud: [['orders']] }, expected: 'audience_mismatch' },
  {
    name: 'a list that is not of texts',
    profile: 'oauth',
    changes: { aud: ['orders', 5] },
    expected: 'audience_mismatch',
  },
  {
    name: 'the longest list',
    profile: 'oauth',
    changes: { aud: [...Array.from({ length: 99 }, () => 'x'), 'orders'] },
    expected: { subject: 'checkout' },
  },
  {
    name: 'too long a list',
    profile: 'oauth',
    changes: { aud: [...Array.from({ length: 100 }, () => 'x'), 'orders'] },
    expected: 'audience_mismatch',
  },
  { name: 'an audience in a map', profile: 'oauth', changes: { aud: { orders: 1 } }, expected: 'audience_mismatch' },
  { name: 'an audience in another case', profile: 'oauth', changes: { aud: 'Orders' }, expected: 'audience_mismatch' },
  {
    name: 'an issuer with a slash',
    profile: 'oauth',
    changes: { iss: 'https://idp.example.com/' },
    expected: 'issuer_mismatch',
  },
  {
    name: 'a list of issuers',
    profile: 'oauth',
    changes: { iss: ['https://idp.example.com'] },
    expected: 'issuer_mismatch',
  },
  { name: 'an ID token', profile: 'oauth', changes: { at_hash: 'x' }, expected: 'token_type_mismatch' },
  { name: 'an ID token by its code', profile: 'oauth', changes: { c_hash: null }, expected: 'token_type_mismatch' },
  { name: 'a logout token', profile: 'oauth', changes: { events: {} }, expected: 'token_type_mismatch' },
  { name: 'an ID token by its state', profile: 'oauth', changes: { s_hash: 'x' }, expected: 'token_type_mismatch' },
  { name: 'a session', profile: 'oauth', changes: { sessionHandle: 'x' }, expected: 'session_claim_present' },
  ...['iat', 'jti', 'sub', 'client_id'].flatMap((claim): readonly Row[] => [
    { name: `no ${claim}`, profile: 'oauth', changes: { [claim]: undefined }, expected: 'claim_malformed' },
    { name: `${claim} null`, profile: 'oauth', changes: { [claim]: null }, expected: 'claim_malformed' },
    { name: `${claim} a list`, profile: 'oauth', changes: { [claim]: ['x'] }, expected: 'claim_malformed' },
    { name: `${claim} empty`, profile: 'oauth', changes: { [claim]: '' }, expected: 'claim_malformed' },
  ]),
  ...['exp', 'iss', 'aud'].map((claim): Row => ({
    name: `no ${claim}`,
    profile: 'oauth',
    changes: { [claim]: undefined },
    expected: { exp: 'claim_malformed', iss: 'issuer_mismatch', aud: 'audience_mismatch' }[claim] ?? '',
  })),
  {
    name: 'typ in full',
    profile: 'oauth',
    type: 'application/at+JWT',
    changes: { client_id: undefined },
    expected: 'claim_malformed',
  },
  {
    name: 'an ordinary token needs neither client_id nor jti nor iat',
    profile: 'oauth',
    type: 'JWT',
    changes: { client_id: undefined, jti: undefined, iat: undefined, nbf: undefined },
    expected: { subject: 'checkout', tokenId: null, issuedAtS: null },
  },
  {
    name: 'nor does one without typ',
    profile: 'oauth',
    type: undefined,
    changes: { client_id: undefined },
    expected: { subject: 'checkout' },
  },
  {
    name: 'another subject',
    profile: 'oauth',
    rules: oauthClaims({ subject: ['client_id'] }),
    expected: { subject: 'c-1' },
  },
  {
    name: 'another subject does not make up for sub',
    profile: 'oauth',
    rules: oauthClaims({ subject: ['client_id'] }),
    changes: { sub: undefined },
    expected: 'claim_malformed',
  },
  {
    name: 'in an ordinary token it does',
    profile: 'oauth',
    type: 'JWT',
    rules: oauthClaims({ subject: ['a', 'b'] }),
    changes: { sub: undefined, a: { b: 'deep' } },
    expected: { subject: 'deep' },
  },
  { name: 'a subject with a blank', profile: 'oauth', changes: { sub: 'a b' }, expected: 'claim_malformed' },
  { name: 'a subject beyond ASCII', profile: 'oauth', type: 'JWT', changes: { sub: 'ä' }, expected: 'claim_malformed' },
  { name: 'no scope', profile: 'oauth', changes: { scope: undefined }, expected: { permissions: [] } },
  { name: 'an empty scope', profile: 'oauth', changes: { scope: '' }, expected: { permissions: [] } },
  { name: 'blanks', profile: 'oauth', changes: { scope: '  a  b ' }, expected: { permissions: ['a', 'b'] } },
  {
    name: 'what is no scope',
    profile: 'oauth',
    changes: { scope: 'a "b" c\\d e' },
    expected: { permissions: ['a', 'e'] },
  },
  { name: 'other white space', profile: 'oauth', changes: { scope: 'a\tb c' }, expected: { permissions: ['c'] } },
  { name: 'a list', profile: 'oauth', changes: { scope: ['a', 'b c'] }, expected: { permissions: ['a'] } },
  { name: 'a list with a number', profile: 'oauth', changes: { scope: ['a', 5] }, expected: 'claim_malformed' },
  { name: 'scope null', profile: 'oauth', changes: { scope: null }, expected: 'claim_malformed' },
  { name: 'scope true', profile: 'oauth', changes: { scope: true }, expected: 'claim_malformed' },
  { name: 'scope a map', profile: 'oauth', changes: { scope: { a: 1 } }, expected: 'claim_malformed' },
  {
    name: 'the most permissions',
    profile: 'oauth',
    changes: { scope: Array.from({ length: 1_000 }, () => 'a').join(' ') },
    expected: { subject: 'checkout' },
  },
  {
    name: 'too many',
    profile: 'oauth',
    changes: { scope: Array.from({ length: 1_001 }, () => 'a').join(' ') },
    expected: 'claim_malformed',
  },
  {
    name: 'permissions at a path',
    profile: 'oauth',
    rules: oauthClaims({ permissions: ['realm_access', 'roles'] }),
    changes: { realm_access: { roles: ['a'] } },
    expected: { permissions: ['a'] },
  },
  {
    name: 'a path through a list',
    profile: 'oauth',
    rules: oauthClaims({ permissions: ['realm_access', 'roles'] }),
    changes: { realm_access: [{ roles: ['a'] }] },
    expected: { permissions: [] },
  },
  ...['__proto__', 'constructor', 'toString', 'length'].map((name): Row => ({
    name: `a path of ${name}`,
    profile: 'oauth',
    rules: oauthClaims({ permissions: ['scope', name] }),
    expected: { permissions: [] },
  })),
  {
    name: 'required',
    profile: 'oauth',
    rules: oauthClaims({ require: [{ path: ['tenant'], values: ['acme', 5, true] }] }),
    changes: { tenant: 5 },
    expected: { subject: 'checkout' },
  },
  ...[undefined, null, 'Acme', '5', 1, false, ['acme'], { acme: 1 }, 2 ** 60].map((tenant): Row => ({
    name: `required, ${JSON.stringify({ tenant })}`,
    profile: 'oauth',
    rules: oauthClaims({ require: [{ path: ['tenant'], values: ['acme', 5, true, 2 ** 60] }] }),
    changes: { tenant },
    expected: 'claim_mismatch',
  })),
  {
    name: 'all that are required',
    profile: 'oauth',
    rules: oauthClaims({
      require: [
        { path: ['a'], values: ['x'] },
        { path: ['b'], values: ['y'] },
      ],
    }),
    changes: { a: 'x' },
    expected: 'claim_mismatch',
  },
  { name: 'expired', profile: 'oauth', changes: { exp: nowS - 5 }, expected: 'token_expired' },
  { name: 'not yet', profile: 'oauth', changes: { nbf: nowS + 6 }, expected: 'token_not_yet_valid' },
  { name: 'issued later', profile: 'oauth', changes: { iat: nowS + 6 }, expected: 'token_not_yet_valid' },
  { name: 'too long', profile: 'oauth', changes: { exp: nowS + 7_206 }, expected: 'lifetime_too_long' },
  { name: 'exp with a fraction', profile: 'oauth', changes: { exp: nowS + 0.5 }, expected: 'claim_malformed' },
  { name: 'exp a text', profile: 'oauth', changes: { exp: '9' }, expected: 'claim_malformed' },
  { name: 'nbf null', profile: 'oauth', changes: { nbf: null }, expected: 'claim_malformed' },
  { name: 'iat a text', profile: 'oauth', changes: { iat: '9' }, expected: 'claim_malformed' },

  { name: 'a pod', profile: 'kubernetes', expected: { subject: 'shop/checkout', permissions: [], tokenId: 'j-1' } },
  { name: 'another pod', profile: 'kubernetes', changes: pod({ pod: { name: 'x' } }), expected: 'claim_mismatch' },
  { name: 'no pod', profile: 'kubernetes', changes: pod({ pod: undefined }), expected: 'claim_mismatch' },
  { name: 'no jti', profile: 'kubernetes', changes: { jti: undefined }, expected: { tokenId: null } },
  { name: 'no iat', profile: 'kubernetes', changes: { iat: undefined }, expected: 'claim_malformed' },
  {
    name: 'a secret of old, without exp',
    profile: 'kubernetes',
    changes: { exp: undefined },
    expected: 'claim_malformed',
  },
  {
    name: 'no kubernetes.io',
    profile: 'kubernetes',
    changes: { 'kubernetes.io': undefined },
    expected: 'claim_mismatch',
  },
  { name: 'another namespace', profile: 'kubernetes', changes: pod({ namespace: 'x' }), expected: 'claim_mismatch' },
  {
    name: 'another account',
    profile: 'kubernetes',
    changes: pod({ serviceaccount: { name: 'x' } }),
    expected: 'claim_mismatch',
  },
  {
    name: 'no account',
    profile: 'kubernetes',
    changes: pod({ serviceaccount: 'checkout' }),
    expected: 'claim_mismatch',
  },
  ...[
    'checkout',
    'system:serviceaccount:shop',
    'system:serviceaccount:shop:checkout:x',
    'system:serviceaccount:shop/x:checkout',
    'system:serviceaccount:Shop:checkout',
    'system:serviceaccount::checkout',
    'system:node:shop:checkout',
    ' system:serviceaccount:shop:checkout',
    'system:serviceaccount:shop:checkout\n',
    'system:serviceaccount:-shop:checkout',
    5,
    undefined,
  ].map((sub): Row => ({
    name: `sub ${String(sub)}`,
    profile: 'kubernetes',
    changes: { sub },
    expected: 'claim_mismatch',
  })),

  ...['shop:a..b', 'shop:a.-b', 'shop:.a', 'shop:a-', 'a.b:c', `${'n'.repeat(64)}:c`, `shop:${'x'.repeat(254)}`].map(
    (name) => accountRow(name, false),
  ),
  ...['shop:check-out.v2--1', `${'n'.repeat(63)}:${'x'.repeat(253)}`].map((name) => accountRow(name, true)),

  {
    name: 'a workload',
    profile: 'spiffe',
    expected: { subject: 'spiffe://shop.example/ns/shop/sa/checkout', permissions: [], tokenId: null },
  },
  { name: 'any iss', profile: 'spiffe', changes: { iss: 'https://spire' }, expected: { issuedAtS: nowS } },
  {
    name: 'the iss that was named',
    profile: 'spiffe',
    rules: { expectedIssuer: 'https://spire' },
    changes: { iss: 'https://spire' },
    expected: { issuedAtS: nowS },
  },
  { name: 'another iss', profile: 'spiffe', rules: { expectedIssuer: 'https://spire' }, expected: 'issuer_mismatch' },
  { name: 'no iat', profile: 'spiffe', changes: { iat: undefined }, expected: { issuedAtS: null } },
  { name: 'no exp', profile: 'spiffe', changes: { exp: undefined }, expected: 'claim_malformed' },
  { name: 'no aud', profile: 'spiffe', changes: { aud: undefined }, expected: 'audience_mismatch' },
  ...[
    'spiffe://other.example/x',
    'spiffe://shop.example',
    'spiffe://shop.example/',
    'spiffe://shop.example//x',
    'spiffe://shop.example/x/',
    'spiffe://shop.example/../x',
    'spiffe://shop.example/./x',
    'spiffe://shop.example/x%2Fy',
    'spiffe://shop.example/x?y',
    'spiffe://shop.example.evil/x',
    'spiffe://shop.example:8443/x',
    'spiffe://user@shop.example/x',
    'SPIFFE://shop.example/x',
    'https://shop.example/x',
    `spiffe://shop.example/${'a'.repeat(1_024)}`,
    5,
    undefined,
  ].map((sub): Row => ({
    name: `sub ${String(sub)}`,
    profile: 'spiffe',
    changes: { sub },
    expected: 'issuer_mismatch',
  })),
  {
    name: 'no trust domain',
    profile: 'spiffe',
    rules: { trustDomain: null },
    expected: 'issuer_mismatch',
  },
];

t.test('claims by profile', (t) => {
  for (const row of rows) {
    const verdict = verdictOf(row);
    if (typeof row.expected === 'string') t.equal(verdict, row.expected, `${row.profile}: ${row.name}`);
    else t.match(verdict, row.expected, `${row.profile}: ${row.name}`);
  }
  t.end();
});

t.test('the Core is held to its own rules', (t) => {
  const claims = {
    ...times,
    iss: 'https://api.example.com',
    aud: 'orders',
    source: 'microservice',
    token_type: 'service',
  };
  const verdict = (changes: Changes): string => {
    const payload = payloadOf(JSON.stringify({ ...claims, sub: 'checkout', permissions: ['a'], ...changes }));
    const result = verifyTokenClaims(payload, issuerRules(), nowMs, 'JWT');
    return result.ok ? result.value.subject : result.error.reason;
  };
  t.equal(verdict({}), 'checkout');
  t.equal(verdict({ aud: ['orders'] }), 'audience_mismatch', 'no list');
  t.equal(verdict({ permissions: 'a' }), 'claim_malformed', 'no text');
  t.end();
});

t.test('the example of RFC 9068 §2.2', (t) => {
  const payload = payloadOf(
    JSON.stringify({
      iss: 'https://authorization-server.example.com/',
      sub: '5ba552d67',
      aud: 'https://rs.example.com/',
      exp: 1639528912,
      iat: 1618354090,
      jti: 'dbe39bf3a3ba4238a513f51d6e1691c4',
      client_id: 's6BhdRkqt3',
      scope: 'openid profile reademail',
    }),
  );
  const rules: IssuerRules = {
    ...(rulesOf['oauth'] ?? issuerRules()),
    expectedIssuer: 'https://authorization-server.example.com/',
    audiences: new Set(['https://rs.example.com/']),
    maxLifetimeS: 30_000_000,
  };
  const verdict = verifyTokenClaims(payload, rules, 1618354090_000, 'at+JWT');
  t.match(verdict, { ok: true, value: { subject: '5ba552d67', permissions: ['openid', 'profile', 'reademail'] } });
  t.end();
});

t.test('whom a token says that it is from', (t) => {
  const oauth = rulesOf['oauth'] ?? issuerRules();
  t.equal(isMeantFor(payloadOf(good['oauth'] ?? {}), oauth), true);
  t.equal(isMeantFor(payloadOf({ ...good['oauth'], iss: 'x' }), oauth), false);
  t.equal(isMeantFor(payloadOf({ ...good['oauth'], aud: 'x' }), oauth), false);
  t.equal(isMeantFor(payloadOf(good['spiffe'] ?? {}), rulesOf['spiffe'] ?? oauth), true, 'any iss');
  const other = payloadOf(Object.assign({}, good['spiffe'], { sub: 'spiffe://other.example/ns/shop' }));
  t.equal(isMeantFor(other, rulesOf['spiffe'] ?? oauth), false, 'another trust domain');
  t.equal(isMeantFor(payloadOf({ iss: 'https://api.example.com', aud: 'orders' }), issuerRules()), true);
  t.equal(isMeantFor(payloadOf({ iss: 'https://api.example.com', aud: ['orders'] }), issuerRules()), false);
  t.end();
});

t.test('a path finds members of the token, and nothing else', (t) => {
  const payload = payloadOf('{"a":{"b":{"__proto__":{"c":1}}},"__proto__":{"admin":true}}');
  t.equal(valueAt(payload, ['a', 'b', '__proto__', 'c']), 1);
  t.equal(valueAt(payload, ['admin']), undefined);
  t.equal(valueAt(payload, ['a', 'constructor', 'name']), undefined);
  t.equal(valueAt(payload, ['a', 'b', 'c']), undefined);
  t.equal(subjectOf(payload, rulesOf['oauth'] ?? issuerRules()), null);
  t.end();
});

t.test('whatever the claims are, somebody is let in only with the right ones', (t) => {
  for (const profile of Object.keys(rulesOf)) {
    const names = Object.keys(good[profile] ?? {});
    fc.assert(
      fc.property(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 3 }), (name, value) => {
        const verdict = verdictOf({ name: '', profile, changes: { [name]: value }, expected: '' });
        if (typeof verdict === 'string') return true;
        const isOptional = ['nbf', 'iat', 'jti', 'scope', 'client_id', 'sub', 'exp', 'iss', 'aud'].includes(name);
        const { subject, permissions } = verdict as { subject: string; permissions: readonly string[] };
        return isOptional && /^[\x21-\x7e]+$/.test(subject) && permissions.every((held) => /^[\x21-\x7e]+$/.test(held));
      }),
      { numRuns: 500 },
    );
  }
  t.end();
});
