import t from 'tap';
import { isOpaque, verifyIntrospection, type IntrospectionRules } from '../../../src/decision/token/introspection.js';
import type { JsonObject } from '../../../src/lib/strict-json.js';
import { keepClaims } from '../../../src/decision/token/kept-claims.js';
import { issuerRules, nowMs, nowS } from '../samples.js';

const rules: IntrospectionRules = {
  ...issuerRules({
    expectedIssuer: 'https://idp.example.com',
    audiences: new Set(['orders', 'orders-v2']),
    claims: { subject: ['client_id'], permissions: ['scope'], require: [] },
  }),
  requiresAudience: true,
  requiresTokenId: false,
};

const good: JsonObject = {
  active: true,
  iss: 'https://idp.example.com',
  aud: 'orders',
  client_id: 'checkout',
  scope: 'orders:read orders:write',
  token_type: 'Bearer',
  exp: nowS + 300,
  iat: nowS - 10,
  jti: 'one',
};

const without = (...names: readonly string[]): JsonObject =>
  Object.fromEntries(Object.entries(good).filter(([name]) => !names.includes(name)));

t.test('a token that has the form of a JWT is never opaque, however broken', (t) => {
  const header = Buffer.from('{"alg":"RS256"}').toString('base64url');
  const rows: readonly (readonly [string, boolean])[] = [
    ['2YotnFZFEjr1zCsicMWpAA', true],
    ['v1.abc', true],
    ['a.b.c', true],
    ['.b.c', true],
    ['..', true],
    [`${header}.b`, true],
    [`${header}.b.c.d`, true],
    [`${header}.b.c.d.e`, true],
    [`${header}.b.c`, false],
    [`${header}..`, false],
    [`${Buffer.from(' \n{"alg":1,"alg":2').toString('base64url')}.b.c`, false],
    [`${Buffer.from('{"a":"~~~~~~?"}').toString('base64')}.b.c`, false],
  ];
  for (const [token, expected] of rows) t.equal(isOpaque(token), expected, token);
  t.end();
});

t.test('a response that holds says who calls, and what it may do', (t) => {
  t.same(verifyIntrospection(good, rules, nowMs), {
    ok: true,
    value: {
      subject: 'checkout',
      permissions: ['orders:read', 'orders:write'],
      tokenId: 'one',
      expiresAtS: nowS + 300,
      issuedAtS: nowS - 10,
    },
  });
  const bare = without('iss', 'iat', 'jti', 'scope', 'token_type');
  t.match(verifyIntrospection(bare, rules, nowMs), {
    ok: true,
    value: { permissions: [], tokenId: null, issuedAtS: null },
  });
  t.end();
});

const nested = { ...rules, claims: { ...rules.claims, permissions: ['realm_access', 'roles'] } };
const required = {
  ...rules,
  claims: { ...rules.claims, require: [{ path: ['tenant', 'name'], values: ['acme', 1] }] },
};

const rows: readonly {
  readonly name: string;
  readonly answer: JsonObject;
  readonly by?: IntrospectionRules;
  /** Permissions where it holds, else the reason. */
  readonly expected: readonly string[] | string;
}[] = [
  { name: 'another issuer', answer: { ...good, iss: 'https://other.example.com' }, expected: 'issuer_mismatch' },
  { name: 'an issuer that is no text', answer: { ...good, iss: null }, expected: 'issuer_mismatch' },
  { name: 'no audience', answer: without('aud'), expected: 'audience_mismatch' },
  {
    name: 'no audience, where none is asked for',
    answer: without('aud'),
    by: { ...rules, requiresAudience: false },
    expected: ['orders:read', 'orders:write'],
  },
  {
    name: 'another audience, where none is asked for',
    answer: { ...good, aud: 'billing' },
    by: { ...rules, requiresAudience: false },
    expected: 'audience_mismatch',
  },
  {
    name: 'a list of audiences',
    answer: { ...good, aud: ['billing', 'orders-v2'] },
    expected: ['orders:read', 'orders:write'],
  },
  { name: 'a list of strangers', answer: { ...good, aud: ['billing'] }, expected: 'audience_mismatch' },
  { name: 'an empty list', answer: { ...good, aud: [] }, expected: 'audience_mismatch' },
  { name: 'a list with what is no text', answer: { ...good, aud: ['orders', 1] }, expected: 'audience_mismatch' },
  { name: 'an audience that is a number', answer: { ...good, aud: 1 }, expected: 'audience_mismatch' },
  { name: 'a token bound to a key', answer: { ...good, cnf: { jkt: 'x' } }, expected: 'binding_unknown' },
  {
    name: 'a token that is not bound',
    answer: good,
    by: { ...rules, binding: 'require' },
    expected: 'binding_missing',
  },
  {
    name: 'one for DPoP that is bound',
    answer: { ...good, token_type: 'DPoP', cnf: { jkt: 'A'.repeat(43) } },
    expected: ['orders:read', 'orders:write'],
  },
  {
    name: 'one for DPoP that is bound to a certificate',
    answer: { ...good, token_type: 'DPoP', cnf: { 'x5t#S256': 'A'.repeat(43) } },
    expected: 'token_type_mismatch',
  },
  {
    name: 'one for DPoP beside a key and what nobody knows, where cnf says nothing',
    answer: { ...good, token_type: 'DPoP', cnf: { jkt: 'A'.repeat(43), kid: 'x' } },
    by: { ...rules, binding: 'none' },
    expected: ['orders:read', 'orders:write'],
  },
  {
    name: 'one for DPoP beside what is no key, where cnf says nothing',
    answer: { ...good, token_type: 'DPoP', cnf: { jkt: null } },
    by: { ...rules, binding: 'none' },
    expected: 'token_type_mismatch',
  },
  { name: 'a token for DPoP', answer: { ...good, token_type: 'DPoP' }, expected: 'token_type_mismatch' },
  { name: 'a type that is no text', answer: { ...good, token_type: null }, expected: 'token_type_mismatch' },
  {
    name: 'bearer in lower case',
    answer: { ...good, token_type: 'bearer' },
    expected: ['orders:read', 'orders:write'],
  },
  { name: 'no exp', answer: without('exp'), expected: 'claim_malformed' },
  { name: 'exp as text', answer: { ...good, exp: String(nowS + 300) }, expected: 'claim_malformed' },
  { name: 'exp in the past', answer: { ...good, exp: nowS - 5 }, expected: 'token_expired' },
  { name: 'exp too far away', answer: { ...good, exp: nowS + 7206, iat: nowS }, expected: 'lifetime_too_long' },
  { name: 'nbf ahead', answer: { ...good, nbf: nowS + 6 }, expected: 'token_not_yet_valid' },
  { name: 'nbf as text', answer: { ...good, nbf: 'now' }, expected: 'claim_malformed' },
  { name: 'iat as text', answer: { ...good, iat: 'now' }, expected: 'claim_malformed' },
  { name: 'no subject', answer: without('client_id'), expected: 'claim_malformed' },
  { name: 'a subject with a blank', answer: { ...good, client_id: 'a b' }, expected: 'claim_malformed' },
  {
    name: 'a subject of a prototype',
    answer: good,
    by: { ...rules, claims: { ...rules.claims, subject: ['toString'] } },
    expected: 'claim_malformed',
  },
  {
    name: 'no jti, where one is asked for',
    answer: without('jti'),
    by: { ...rules, requiresTokenId: true },
    expected: 'claim_malformed',
  },
  { name: 'jti as number', answer: { ...good, jti: 1 }, expected: 'claim_malformed' },
  {
    name: 'jti, where one is asked for',
    answer: good,
    by: { ...rules, requiresTokenId: true },
    expected: ['orders:read', 'orders:write'],
  },
  { name: 'a scope of blanks', answer: { ...good, scope: '  ' }, expected: [] },
  { name: 'a scope that is a number', answer: { ...good, scope: 1 }, expected: 'claim_malformed' },
  { name: 'a list as scope', answer: { ...good, scope: ['a', 'b c'] }, expected: ['a'] },
  { name: 'a list with a number', answer: { ...good, scope: ['a', 1] }, expected: 'claim_malformed' },
  { name: 'too many permissions', answer: { ...good, scope: 'a '.repeat(1_001) }, expected: 'claim_malformed' },
  { name: 'nested permissions', answer: { ...good, realm_access: { roles: ['x'] } }, by: nested, expected: ['x'] },
  { name: 'nothing nested', answer: { ...good, realm_access: 'x' }, by: nested, expected: [] },
  {
    name: 'no permissions at all',
    answer: good,
    by: { ...rules, claims: { ...rules.claims, permissions: null } },
    expected: [],
  },
  {
    name: 'a claim that is required',
    answer: { ...good, tenant: { name: 'acme' } },
    by: required,
    expected: ['orders:read', 'orders:write'],
  },
  {
    name: 'another value of it',
    answer: { ...good, tenant: { name: '1' } },
    by: required,
    expected: 'claim_mismatch',
  },
  { name: 'without it', answer: good, by: required, expected: 'claim_mismatch' },
  {
    name: 'a number of which several are read alike',
    answer: { ...good, tenant: { name: 2 ** 53 } },
    by: { ...rules, claims: { ...rules.claims, require: [{ path: ['tenant', 'name'], values: [2 ** 53] }] } },
    expected: 'claim_mismatch',
  },
];

t.test('every rule holds for itself', (t) => {
  for (const { name, answer, by = rules, expected } of rows) {
    const verdict = verifyIntrospection(answer, by, nowMs);
    t.same(verdict.ok ? verdict.value.permissions : verdict.error.reason, expected, name);
    const kept = verifyIntrospection(keepClaims(answer, by.claims).claims, by, nowMs);
    t.same(kept, verdict, `${name}: and so by what is kept of it`);
  }
  t.end();
});
