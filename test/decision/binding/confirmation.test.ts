import t from 'tap';
import { readConfirmation, requiredProof, type Binding } from '../../../src/decision/binding/confirmation.js';
import { refusedCertificate } from '../../../src/decision/binding/certificate.js';
import { verifyTokenClaims } from '../../../src/decision/token/profile-claims.js';
import type { Profile } from '../../../src/decision/token/profiles.js';
import { parseStrictJson, type JsonObject, type JsonValue } from '../../../src/lib/strict-json.js';
import { issuerRules, nowMs, nowS } from '../samples.js';

/** As RFC 8705 §3.1 and RFC 9449 §6.1 show them. */
const certificate = 'A4DtL2JmUMhAsvJj5tKyn64SqzmuXbMrJa0n761y5v0';
const key = '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I';

const rows: readonly { readonly name: string; readonly cnf: JsonValue; readonly expected: object | null }[] = [
  { name: 'the certificate of RFC 8705', cnf: { 'x5t#S256': certificate }, expected: { certificate, key: null } },
  { name: 'the key of RFC 9449', cnf: { jkt: key }, expected: { certificate: null, key } },
  { name: 'both', cnf: { jkt: key, 'x5t#S256': certificate }, expected: { certificate, key } },
  { name: 'nothing', cnf: {}, expected: null },
  { name: 'null', cnf: null, expected: null },
  { name: 'a text', cnf: key, expected: null },
  { name: 'a list', cnf: [{ jkt: key }], expected: null },
  ...['jwk', 'kid', 'jku', 'jwe', 'x5t', 'x5t#s256', 'JKT', 'wth', '__proto__'].flatMap((name) => [
    { name, cnf: { [name]: key }, expected: null },
    { name: `${name} beside a key`, cnf: { jkt: key, [name]: key }, expected: null },
  ]),
  ...['jkt', 'x5t#S256'].flatMap((name) =>
    [
      null,
      5,
      true,
      '',
      [key],
      { value: key },
      `${key}=`,
      key.slice(1),
      `${key}A`,
      `${key.slice(1)}+`,
      `${key.slice(0, -1)}J`,
    ].map((value) => ({ name: `${name}: ${JSON.stringify(value)}`, cnf: { [name]: value }, expected: null })),
  ),
  { name: 'one good, one not', cnf: { jkt: key, 'x5t#S256': null }, expected: null },
];

function read(value: JsonValue): JsonValue {
  const parsed = parseStrictJson(Buffer.from(JSON.stringify({ value })), { maxDepth: 16 });
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value['value'] ?? null;
}

for (const { name, cnf, expected } of rows) {
  t.test(`cnf: ${name}`, (t) => {
    // An object of the test has a prototype, and a member of that name would set it.
    const value = name.startsWith('__proto__') ? parsedWithProto(name) : read(cnf);
    t.same(readConfirmation(value), expected);
    t.end();
  });
}

function parsedWithProto(name: string): JsonValue {
  const rest = name.endsWith('key') ? `"jkt":"${key}",` : '';
  const parsed = parseStrictJson(Buffer.from(`{"value":{${rest}"__proto__":"${key}"}}`), { maxDepth: 16 });
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value['value'] ?? null;
}

t.test('what has to be proved, by the binding of the issuer', (t) => {
  const cases: readonly {
    readonly binding: Binding;
    readonly cnf: JsonValue | undefined;
    readonly expected: unknown;
  }[] = [
    { binding: 'none', cnf: undefined, expected: null },
    { binding: 'none', cnf: { jkt: key }, expected: null },
    { binding: 'none', cnf: { kid: 'x' }, expected: null },
    { binding: 'accept', cnf: undefined, expected: null },
    { binding: 'accept', cnf: { jkt: key }, expected: { certificate: null, key } },
    { binding: 'accept', cnf: { kid: 'x' }, expected: 'binding_unknown' },
    { binding: 'accept', cnf: null, expected: 'binding_unknown' },
    { binding: 'require', cnf: undefined, expected: 'binding_missing' },
    { binding: 'require', cnf: { jkt: key }, expected: { certificate: null, key } },
    { binding: 'require', cnf: { kid: 'x' }, expected: 'binding_unknown' },
  ];
  for (const { binding, cnf, expected } of cases) {
    t.same(requiredProof(cnf, binding), expected, `${binding} ${JSON.stringify(cnf)}`);
  }
  t.end();
});

t.test('the claims of every profile are held to it, last', (t) => {
  const claims = { aud: 'orders', sub: 'checkout', exp: nowS + 60 };
  const rows: readonly { readonly profile: Profile; readonly more: JsonObject; readonly trustDomain?: string }[] = [
    { profile: 'core', more: { source: 'microservice', token_type: 'service', permissions: [] } },
    { profile: 'oauth', more: {} },
    { profile: 'spiffe', more: { sub: 'spiffe://shop.example/checkout' }, trustDomain: 'shop.example' },
    {
      profile: 'kubernetes',
      more: {
        iat: nowS,
        sub: 'system:serviceaccount:shop:checkout',
        'kubernetes.io': { namespace: 'shop', serviceaccount: { name: 'checkout' } },
      },
    },
  ];
  for (const { profile, more, trustDomain = null } of rows) {
    const verdict = (changes: JsonObject, binding: Binding): unknown => {
      const given = { iss: 'https://api.example.com', ...claims, ...more, ...changes };
      const payload = parseStrictJson(Buffer.from(JSON.stringify(given)), { maxDepth: 16 });
      if (!payload.ok) throw new Error(payload.error);
      const rules = issuerRules({ profile, binding, trustDomain });
      const read = verifyTokenClaims(payload.value, rules, nowMs, undefined);
      return read.ok ? (read.value.confirmation ?? 'unbound') : read.error.reason;
    };
    t.same(verdict({ cnf: { jkt: key } }, 'accept'), { certificate: null, key }, profile);
    t.equal(verdict({}, 'accept'), 'unbound', profile);
    t.equal(verdict({}, 'require'), 'binding_missing', profile);
    t.equal(verdict({ cnf: null }, 'accept'), 'binding_unknown', profile);
    t.equal(verdict({ cnf: { kid: 'x' } }, 'require'), 'binding_unknown', profile);
    t.equal(verdict({ cnf: { kid: 'x' } }, 'none'), 'unbound', profile);
    t.equal(verdict({ cnf: { kid: 'x' }, exp: 1 }, 'accept'), 'token_expired', profile);
  }
  t.end();
});

t.test('a certificate is the one that the token is bound to, whoever signed it', (t) => {
  const shown = (digest: string) => ({ digest, isVerified: false, name: null, endsAtMs: Infinity });
  t.equal(refusedCertificate({ certificate: null }, null), null);
  t.equal(refusedCertificate({ certificate: null }, shown(key)), null);
  t.equal(refusedCertificate({ certificate }, shown(certificate)), null);
  t.same(refusedCertificate({ certificate }, shown(key)), { reason: 'certificate_mismatch' });
  t.same(refusedCertificate({ certificate }, null), { reason: 'certificate_missing' });
  t.end();
});
