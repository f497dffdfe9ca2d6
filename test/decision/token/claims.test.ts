import fc from 'fast-check';
import t, { type Test } from 'tap';
import { verifyClaims } from '../../../src/decision/token/service-token.js';
import type { Reason } from '../../../src/decision/denial.js';
import type { IssuerRules } from '../../../src/decision/route/policy.js';
import { defaultMaxDepth, parseStrictJson, type JsonObject } from '../../../src/lib/strict-json.js';
import { malformedClaims, sessionClaimRows } from '../../support/attacks/claims.js';
import { serviceClaims, type Claims } from '../../support/tokens.js';
import { issuerRules, nowMs, nowS } from '../samples.js';

interface Case {
  readonly name: string;
  /** Replace or add claims; `undefined` takes one away. */
  readonly claims?: Claims;
  readonly rules?: Partial<IssuerRules>;
  readonly nowMs?: number;
  readonly expected: Reason | 'accepted';
}

/** Through the parser, so that claims have the form in which they arrive. */
function payloadOf(text: string): JsonObject {
  const parsed = parseStrictJson(Buffer.from(text), { maxDepth: defaultMaxDepth });
  if (!parsed.ok) throw new Error(`the test's own payload is ${parsed.error}`);
  return parsed.value;
}

function outcomeOf({ claims, rules, nowMs: at = nowMs }: Omit<Case, 'name' | 'expected'>): string {
  const result = verifyClaims(payloadOf(JSON.stringify(serviceClaims({ claims, nowMs }))), issuerRules(rules), at);
  return result.ok ? 'accepted' : result.error.reason;
}

const untimed = { iat: undefined };

function hold(t: Test, cases: readonly Case[]): void {
  for (const { name, expected, ...input } of cases) t.equal(outcomeOf(input), expected, name);
  t.end();
}

/** Each value of the table that this claim may not have. */
function malformed(claim: keyof typeof malformedClaims): readonly Case[] {
  return malformedClaims[claim].map((value: unknown): Case => ({
    name: `${claim} ${JSON.stringify([value]).slice(0, 40)}`,
    claims: { [claim]: value },
    expected: 'claim_malformed',
  }));
}

t.test('expiry, to the millisecond', (t) => {
  hold(t, [
    { name: 'the last millisecond of the skew', claims: { exp: nowS - 5 }, nowMs: nowMs - 1, expected: 'accepted' },
    { name: 'exp and skew are over', claims: { exp: nowS - 5 }, nowMs, expected: 'token_expired' },
    {
      name: 'without skew, the last millisecond',
      claims: { ...untimed, exp: nowS },
      rules: { clockSkewS: 0 },
      nowMs: nowMs - 1,
      expected: 'accepted',
    },
    {
      name: 'without skew, at exp',
      claims: { ...untimed, exp: nowS },
      rules: { clockSkewS: 0 },
      nowMs,
      expected: 'token_expired',
    },
    {
      name: 'the largest skew, the last millisecond',
      claims: { exp: nowS - 60 },
      rules: { clockSkewS: 60 },
      nowMs: nowMs - 1,
      expected: 'accepted',
    },
    {
      name: 'the largest skew is over',
      claims: { exp: nowS - 60 },
      rules: { clockSkewS: 60 },
      nowMs,
      expected: 'token_expired',
    },
    { name: 'exp 0', claims: { exp: 0 }, expected: 'token_expired' },
    { name: 'exp below 0', claims: { exp: -1 }, expected: 'token_expired' },
    { name: 'exp in milliseconds is far away', claims: { exp: nowMs + 300_000 }, expected: 'lifetime_too_long' },
  ]);
});

t.test('nbf and iat not after now + skew', (t) => {
  const early = nowMs - 1;
  hold(t, [
    { name: 'nbf at now + skew', claims: { ...untimed, nbf: nowS + 5 }, expected: 'accepted' },
    {
      name: 'nbf a millisecond after',
      claims: { ...untimed, nbf: nowS + 5 },
      nowMs: early,
      expected: 'token_not_yet_valid',
    },
    { name: 'nbf without skew', claims: { ...untimed, nbf: nowS }, rules: { clockSkewS: 0 }, expected: 'accepted' },
    {
      name: 'nbf without skew, a millisecond after',
      claims: { ...untimed, nbf: nowS },
      rules: { clockSkewS: 0 },
      nowMs: early,
      expected: 'token_not_yet_valid',
    },
    { name: 'nbf long ago', claims: { nbf: 0 }, expected: 'accepted' },
    { name: 'iat at now + skew', claims: { iat: nowS + 5 }, expected: 'accepted' },
    { name: 'iat a millisecond after', claims: { iat: nowS + 5 }, nowMs: early, expected: 'token_not_yet_valid' },
    { name: 'iat in milliseconds', claims: { iat: nowMs }, expected: 'token_not_yet_valid' },
    { name: 'no iat', claims: untimed, expected: 'accepted' },
  ]);
});

t.test('the longest lifetime', (t) => {
  hold(t, [
    { name: 'exp at now + cap + skew', claims: { ...untimed, exp: nowS + 7205 }, expected: 'accepted' },
    {
      name: 'exp a millisecond beyond',
      claims: { ...untimed, exp: nowS + 7205 },
      nowMs: nowMs - 1,
      expected: 'lifetime_too_long',
    },
    {
      name: 'exp at now + cap, without skew',
      claims: { ...untimed, exp: nowS + 7200 },
      rules: { clockSkewS: 0 },
      expected: 'accepted',
    },
    {
      name: 'exp a second beyond, without skew',
      claims: { ...untimed, exp: nowS + 7201 },
      rules: { clockSkewS: 0 },
      expected: 'lifetime_too_long',
    },
    { name: 'exp − iat at the cap', claims: { exp: nowS + 7200 }, expected: 'accepted' },
    { name: 'exp − iat beyond the cap, within the skew', claims: { exp: nowS + 7201 }, expected: 'lifetime_too_long' },
    { name: 'iat in the near future at the cap', claims: { iat: nowS + 5, exp: nowS + 7205 }, expected: 'accepted' },
    {
      name: 'an old token whose rest is short',
      claims: { iat: nowS - 7000, exp: nowS + 201 },
      expected: 'lifetime_too_long',
    },
    {
      name: 'a hundred years, the default of the SDK',
      claims: { exp: nowS + 3_153_600_000 },
      expected: 'lifetime_too_long',
    },
    {
      name: 'a hundred years without iat',
      claims: { ...untimed, exp: nowS + 3_153_600_000 },
      expected: 'lifetime_too_long',
    },
    {
      name: 'the largest integer',
      claims: { ...untimed, exp: Number.MAX_SAFE_INTEGER },
      expected: 'lifetime_too_long',
    },
    { name: 'the smallest iat', claims: { iat: Number.MIN_SAFE_INTEGER }, expected: 'lifetime_too_long' },
  ]);
});

t.test('times are integers', (t) => {
  hold(t, [
    ...(['exp', 'nbf', 'iat'] as const).flatMap(malformed),
    { name: 'exp as text', claims: { exp: String(nowS + 300) }, expected: 'claim_malformed' },
    { name: 'exp in an array', claims: { exp: [nowS] }, expected: 'claim_malformed' },
    { name: 'exp in an object', claims: { exp: { value: nowS } }, expected: 'claim_malformed' },
  ]);
});

t.test('a number is its value, however the issuer spells it', (t) => {
  const cases = [
    { name: 'as the Core writes integers of the payload', exp: '1.7500003E9', ok: true },
    { name: 'with a fraction of zero', exp: '1750000300.0', ok: true },
    { name: 'with a fraction', exp: '1750000300.5', ok: false },
    { name: 'beyond exact doubles', exp: '9007199254740993', ok: false },
  ];
  for (const { name, exp, ok } of cases) {
    const text = JSON.stringify(serviceClaims({ nowMs, claims: { exp: 0 } })).replace('"exp":0', `"exp":${exp}`);
    t.equal(verifyClaims(payloadOf(text), issuerRules(), nowMs).ok, ok, name);
  }
  t.end();
});

t.test('iss, aud, source and token_type equal as strings', (t) => {
  const equal: readonly { claim: string; right: string; reason: Reason }[] = [
    { claim: 'iss', right: 'https://api.example.com', reason: 'issuer_mismatch' },
    { claim: 'aud', right: 'orders', reason: 'audience_mismatch' },
    { claim: 'source', right: 'microservice', reason: 'source_mismatch' },
    { claim: 'token_type', right: 'service', reason: 'token_type_mismatch' },
  ];
  hold(t, [
    { name: 'all as configured', expected: 'accepted' },
    ...equal.flatMap(({ claim, right, reason }) =>
      [
        undefined,
        null,
        '',
        [right],
        [right, 'other'],
        { value: right },
        true,
        1,
        `${right}/`,
        ` ${right}`,
        right.toUpperCase(),
        right.slice(1),
      ].map((value): Case => ({
        name: `${claim} ${JSON.stringify(value)}`,
        claims: { [claim]: value },
        expected: reason,
      })),
    ),
    {
      name: 'one of several sources',
      claims: { source: 'legacy' },
      rules: { sources: new Set(['microservice', 'legacy']) },
      expected: 'accepted',
    },
    {
      name: 'one of several token types',
      claims: { token_type: 's2s' },
      rules: { tokenTypes: new Set(['service', 's2s']) },
      expected: 'accepted',
    },
    {
      name: 'none of several sources',
      claims: { source: 'web' },
      rules: { sources: new Set(['microservice', 'legacy']) },
      expected: 'source_mismatch',
    },
    { name: 'no source configured', rules: { sources: new Set() }, expected: 'source_mismatch' },
    { name: 'a source named __proto__', claims: { source: 'constructor' }, expected: 'source_mismatch' },
  ]);
});

t.test('sub is 1 to 1,024 visible ASCII characters', (t) => {
  hold(t, [
    { name: 'as long as may be', claims: { sub: 's'.repeat(1024) }, expected: 'accepted' },
    { name: '__proto__', claims: { sub: '__proto__' }, expected: 'accepted' },
    ...malformed('sub'),
  ]);
});

t.test('permissions is a list of strings', (t) => {
  const many = (count: number): string[] => Array.from({ length: count }, (_, at) => `p${String(at)}`);
  hold(t, [
    { name: 'none', claims: { permissions: [] }, expected: 'accepted' },
    {
      name: 'every character of a scope-token',
      claims: { permissions: ["!#$%&'()*+,-./09:;<=>?@AZ[]^_`az{|}~"] },
      expected: 'accepted',
    },
    { name: '__proto__', claims: { permissions: ['__proto__', 'constructor'] }, expected: 'accepted' },
    { name: 'as many as may be', claims: { permissions: many(1000) }, expected: 'accepted' },
    { name: 'one too many', claims: { permissions: many(1001) }, expected: 'claim_malformed' },
    ...malformed('permissions'),
  ]);
});

t.test('ADR 0010: a permission with a blank or beyond ASCII grants nothing, and the rest of its token counts', (t) => {
  const odd = [
    '',
    ' ',
    'orders:read orders:write',
    ' orders:read',
    'a"b',
    'a\\b',
    'a\nb',
    'a\tb',
    'a\u007f',
    'a\u0000',
    'é',
    'a\u00a0b',
    'a\u2028b',
    '日本',
  ];
  const read = (permissions: readonly string[]): readonly string[] => {
    const verdict = verifyClaims(
      payloadOf(JSON.stringify(serviceClaims({ nowMs, claims: { permissions } }))),
      issuerRules(),
      nowMs,
    );
    if (!verdict.ok) throw new Error(verdict.error.reason);
    return verdict.value.permissions;
  };
  for (const permission of odd) {
    const name = encodeURIComponent(permission);
    t.same(read([permission]), [], name);
    t.same(read(['z', permission, 'orders:read', permission, 'a']), ['z', 'orders:read', 'a'], name);
  }
  t.same(read(odd), []);
  t.end();
});

t.test('jti is absent, or 1 to 256 visible ASCII characters', (t) => {
  hold(t, [
    { name: 'none', claims: { jti: undefined }, expected: 'accepted' },
    { name: 'one character', claims: { jti: 'x' }, expected: 'accepted' },
    { name: '256 bytes', claims: { jti: 'x'.repeat(256) }, expected: 'accepted' },
    ...malformed('jti'),
  ]);
});

t.test('what sessions carry is no service token, in any form', (t) => {
  hold(
    t,
    sessionClaimRows.map(([name, value]): Case => ({
      name: `${name} ${JSON.stringify(value)}`,
      claims: { [name]: value },
      expected: 'session_claim_present',
    })),
  );
});

t.test('claims that nobody asked about change nothing, and none is inherited', (t) => {
  hold(t, [
    {
      name: 'unknown claims',
      claims: { admin: true, scope: 'orders:delete', constructor: 1, SUB: 'x', 'st-role': { v: ['admin'] } },
      expected: 'accepted',
    },
  ]);
});

t.test('a claim named __proto__ lends nothing', (t) => {
  const claims = JSON.stringify(serviceClaims({ nowMs }));
  t.same(verifyClaims(payloadOf(`{"__proto__":${claims}}`), issuerRules(), nowMs), {
    ok: false,
    error: { reason: 'issuer_mismatch' },
  });
  t.end();
});

t.test('what the principal gets', (t) => {
  const claims = { sub: 'reporting', permissions: ['b', 'a', 'b'], jti: 't-1', exp: nowS + 60 };
  t.same(verifyClaims(payloadOf(JSON.stringify(serviceClaims({ claims, nowMs }))), issuerRules(), nowMs), {
    ok: true,
    value: {
      subject: 'reporting',
      permissions: ['b', 'a', 'b'],
      tokenId: 't-1',
      expiresAtS: nowS + 60,
      issuedAtS: nowS,
    },
  });
  const bare = verifyClaims(payloadOf(JSON.stringify(serviceClaims({ claims: untimed, nowMs }))), issuerRules(), nowMs);
  t.strictSame(bare.ok && [bare.value.tokenId, bare.value.issuedAtS], [null, null]);
  t.end();
});

t.test('what a token is comes before what time it is', (t) => {
  hold(t, [
    {
      name: 'a session of another issuer',
      claims: { sessionHandle: 'x', iss: 'y' },
      expected: 'session_claim_present',
    },
    { name: 'another issuer, expired', claims: { iss: 'y', exp: 0 }, expected: 'issuer_mismatch' },
    { name: 'another audience, without sub', claims: { aud: 'y', sub: undefined }, expected: 'audience_mismatch' },
    { name: 'expired, without sub', claims: { exp: 0, sub: undefined }, expected: 'token_expired' },
  ]);
});

t.test('whatever the claims are, a verdict comes back, and an accepted one is safe to hand on', (t) => {
  const names = ['iss', 'aud', 'sub', 'source', 'token_type', 'permissions', 'exp', 'nbf', 'iat', 'jti'];
  const change = fc.tuple(
    fc.constantFrom(...names),
    fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.integer({ min: nowS - 10, max: nowS + 8000 }), fc.string()),
  );
  fc.assert(
    fc.property(fc.array(change, { maxLength: 3 }), (changes) => {
      const payload = payloadOf(JSON.stringify(serviceClaims({ nowMs, claims: Object.fromEntries(changes) })));
      const result = verifyClaims(payload, issuerRules(), nowMs);
      if (!result.ok) return true;
      const { subject, permissions, tokenId, expiresAtS } = result.value;
      return (
        [subject, ...permissions, tokenId ?? '-'].every((text) => /^[\x21-\x7e]+$/.test(text)) &&
        expiresAtS * 1000 + 5000 > nowMs
      );
    }),
    { numRuns: 1000 },
  );
  t.end();
});
