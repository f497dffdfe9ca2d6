import t from 'tap';
import type { Revocations } from '../../../src/decision/route/policy.js';
import type { Principal } from '../../../src/decision/token/principal.js';
import {
  claimsAsRead,
  isRevoked,
  revocationReasons,
  revokesClaims,
  signedClaims,
  tokenDigest,
} from '../../../src/decision/revocation/match.js';
import { nowS, principal, revocations } from '../samples.js';

interface Case {
  readonly name: string;
  readonly principal?: Partial<Principal>;
  readonly revoked: Partial<Revocations>;
  readonly expected: string | null;
}

const cases: readonly Case[] = [
  { name: 'nothing revoked', revoked: {}, expected: null },
  { name: 'nothing revoked, no iat', principal: { issuedAtS: null }, revoked: {}, expected: null },
  { name: 'the key', revoked: { keyIds: new Set(['d-1']) }, expected: 'key_revoked' },
  { name: 'another key', revoked: { keyIds: new Set(['d-2', 'd-', 'd-*']) }, expected: null },
  { name: 'the subject', revoked: { subjects: new Set(['checkout']) }, expected: 'subject_revoked' },
  { name: 'another subject', revoked: { subjects: new Set(['check', 'Checkout']) }, expected: null },
  {
    name: 'the token',
    principal: { tokenId: 't-1' },
    revoked: { tokenIds: new Set(['t-1']) },
    expected: 'token_revoked',
  },
  { name: 'another token', principal: { tokenId: 't-1' }, revoked: { tokenIds: new Set(['t-2']) }, expected: null },
  { name: 'a token without an id', revoked: { tokenIds: new Set(['', 'null', 't-1']) }, expected: null },
  {
    name: 'issued a second before',
    principal: { issuedAtS: nowS - 1 },
    revoked: { issuedBeforeS: nowS },
    expected: 'issue_time_revoked',
  },
  { name: 'issued at that second', principal: { issuedAtS: nowS }, revoked: { issuedBeforeS: nowS }, expected: null },
  {
    name: 'issued in the second that was cut',
    principal: { issuedAtS: nowS },
    revoked: { issuedBeforeS: nowS + 0.5 },
    expected: 'issue_time_revoked',
  },
  {
    name: 'issued who knows when',
    principal: { issuedAtS: null },
    revoked: { issuedBeforeS: 0 },
    expected: 'issue_time_revoked',
  },
  {
    name: 'the rule may be zero',
    principal: { issuedAtS: -1 },
    revoked: { issuedBeforeS: 0 },
    expected: 'issue_time_revoked',
  },
  { name: 'the token by its digest', revoked: { tokenDigests: new Set(['digest']) }, expected: 'token_revoked' },
  { name: 'another token by its digest', revoked: { tokenDigests: new Set(['Digest']) }, expected: null },
  {
    name: 'of this issuer',
    revoked: { issuer: 'https://api.example.com', subjects: new Set(['checkout']) },
    expected: 'subject_revoked',
  },
  {
    name: 'of another issuer',
    revoked: { issuer: 'https://api.example.com/', subjects: new Set(['checkout']), issuedBeforeS: nowS + 1 },
    expected: null,
  },
  {
    name: '__proto__ is a name',
    principal: { subject: '__proto__' },
    revoked: { subjects: new Set(['__proto__']) },
    expected: 'subject_revoked',
  },
  {
    name: 'a name of every object is nobody’s own',
    principal: { subject: 'constructor', keyId: '__proto__' },
    revoked: {},
    expected: null,
  },
];

t.test('of a token that was refused, claims may be numbers: one that stands for several is any of them', (t) => {
  const { issuer, keyId, issuedAtS } = principal();
  const of = (subject: number, subjects: readonly string[]): string | null =>
    isRevoked(
      { issuer, keyId, issuedAtS, subject, tokenId: null },
      [revocations({ subjects: new Set(subjects) })],
      () => '',
    )?.reason ?? null;
  t.equal(of(7, ['7']), 'subject_revoked', 'a number');
  t.equal(of(7, ['7.0', '07', '8']), null, 'another spelling is another name');
  t.equal(of(2 ** 53, ['9007199254740993']), 'subject_revoked', 'beyond 2^53, its neighbour too');
  t.equal(of(2 ** 53, ['9007199254740995', 'checkout']), null, 'but not the one after');
  t.end();
});

t.test('withdrawn credentials', (t) => {
  for (const { name, principal: overrides, revoked, expected } of cases) {
    t.equal(
      isRevoked(principal(overrides), [revocations(), revocations(revoked)], () => 'digest')?.reason ?? null,
      expected,
      name,
    );
  }
  t.end();
});

t.test('what can be withdrawn of a token whose claims did not hold', (t) => {
  const nothing = { issuer: '', keyId: 'd-1', subject: '', tokenId: null, issuedAtS: null };
  t.same(signedClaims('d-1', {}), nothing);
  t.same(signedClaims('d-1', { iss: 5, sub: ['mallory'], jti: true, iat: '1' }), nothing, 'of another type');
  t.same(signedClaims('d-1', { sub: 42, jti: 7 }), { ...nothing, subject: 42, tokenId: 7 }, 'numbers');
  const whole = { issuer: 'i', keyId: 'd-1', subject: 'mallory', tokenId: 'lost', issuedAtS: nowS };
  t.same(signedClaims('d-1', { iss: 'i', sub: 'mallory', jti: 'lost', iat: nowS, exp: 1 }), whole);
  t.equal(
    isRevoked(
      signedClaims('d-1', {}),
      [revocations({ subjects: new Set(['mallory']), tokenIds: new Set(['lost']) })],
      () => '',
    ),
    null,
  );
  t.end();
});

t.test('a number is revoked by each text of it', (t) => {
  const big = 1234567890123456789n;
  const rows = [
    { claims: { sub: 42 }, rules: { subjects: new Set(['bob', '42']) }, expected: 'subject_revoked' },
    { claims: { sub: 42 }, rules: { subjects: new Set(['421', '4', 'bob']) }, expected: undefined },
    { claims: { sub: 0 }, rules: { subjects: new Set(['bob', '1']) }, expected: undefined },
    { claims: { sub: Number(big) }, rules: { subjects: new Set([String(big)]) }, expected: 'subject_revoked' },
    { claims: { jti: 7 }, rules: { tokenIds: new Set(['7']) }, expected: 'token_revoked' },
    { claims: { jti: 7 }, rules: { tokenIds: new Set(['8']) }, expected: undefined },
  ];
  for (const { claims, rules, expected } of rows) {
    t.equal(isRevoked(signedClaims('d-1', claims), [revocations(rules)], () => '')?.reason, expected);
  }
  t.end();
});

t.test('claims as readers have them that match names without case', (t) => {
  const usual = { sub: 'bob', jti: '1', aud: 'orders', SCOPE: 'x' };
  t.same(claimsAsRead(usual), [usual]);
  const odd = { sub: 'bob', Sub: 'eve', JTI: 2 };
  t.same(claimsAsRead(odd), [odd, { ...odd, sub: 'eve' }, { ...odd, jti: 2 }]);
  const long = { '\u017fub': 'eve' };
  t.same(claimsAsRead(long), [long, { ...long, sub: 'eve' }], 'a long s is an s without case');
  t.end();
});

t.test('whether claims are asked for at all', (t) => {
  t.equal(revokesClaims(revocations({ keyIds: new Set(['d-1']) })), false);
  t.equal(revokesClaims(revocations({ subjects: new Set(['mallory']) })), true);
  t.equal(revokesClaims(revocations({ tokenIds: new Set(['lost']) })), true);
  t.equal(revokesClaims(revocations({ issuedBeforeS: 0 })), true);
  t.end();
});

t.test('a digest names a token by what was signed, and is made only where one is needed', (t) => {
  t.equal(tokenDigest('e30.b.c'), tokenDigest('e30.b.d'));
  t.not(tokenDigest('e30.b.c'), tokenDigest('e30.c.c'));
  t.not(tokenDigest('a'), tokenDigest(''));
  t.match(tokenDigest('e30.b.c'), /^[\w-]{43}$/);
  // What stands behind the last dot of an opaque token is as much of it as the rest.
  t.not(tokenDigest('v1.one'), tokenDigest('v1.two'));
  t.not(tokenDigest('a.b.c'), tokenDigest('a.b.d'));
  // Whether these are one token, only the issuer knows: RFC 6750 §2.1, RFC 4648 §3.2 and §5.
  for (const spelling of ['a-b_c=', 'a-b_c==', 'a-b_c===', 'a+b/c', 'a+b/c=', 'a-b/c']) {
    t.equal(tokenDigest(spelling), tokenDigest('a-b_c'), spelling);
  }
  t.not(tokenDigest('a-b_C'), tokenDigest('a-b_c'));
  t.equal(
    isRevoked(principal(), [revocations()], () => {
      throw new Error('asked');
    }),
    null,
  );
  t.end();
});

t.test('what was withdrawn is known by its reason, for shadow mode lets none of it pass', (t) => {
  t.same([...revocationReasons], ['key_revoked', 'subject_revoked', 'token_revoked', 'issue_time_revoked']);
  t.end();
});
