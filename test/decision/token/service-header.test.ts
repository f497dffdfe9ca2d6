import t from 'tap';
import { headerProblem, nearestProblem } from '../../../src/decision/token/service-header.js';
import { parseTokenForm } from '../../../src/decision/token/service-token.js';
import { algorithmNames } from '../../../src/decision/token/profiles.js';
import type { IssuerRules } from '../../../src/decision/route/policy.js';
import type { JsonObject } from '../../../src/lib/strict-json.js';
import { issuerRules } from '../samples.js';

const oauth = issuerRules({
  profile: 'oauth',
  algorithms: new Set(['RS256', 'ES256']),
  headerTypes: new Set(['at+jwt']),
  keyIds: { accept: ['*'], reject: ['old'] },
});
const lax = { ...oauth, headerTypes: new Set(['jwt', 'absent']) };
const kubernetes = { ...lax, profile: 'kubernetes' as const };
const spiffe = { ...oauth, profile: 'spiffe' as const, headerTypes: new Set(['jwt', 'jose', 'absent']) };

const good = { alg: 'ES256', kid: 'a', typ: 'at+jwt' };
const bare = { alg: 'ES256', kid: 'a' };

const rows: readonly { name: string; header: JsonObject; rules: IssuerRules; expected: string | null }[] = [
  { name: 'as RFC 9068 has it', header: good, rules: oauth, expected: null },
  {
    name: 'typ in full, in another case',
    header: { ...good, typ: 'application/AT+JWT' },
    rules: oauth,
    expected: null,
  },
  { name: 'another typ', header: { ...good, typ: 'JWT' }, rules: oauth, expected: 'token_malformed' },
  { name: 'no typ', header: bare, rules: oauth, expected: 'token_malformed' },
  { name: 'no typ, where none is needed', header: bare, rules: lax, expected: null },
  { name: 'a typ that says absent', header: { ...bare, typ: 'absent' }, rules: lax, expected: 'token_malformed' },
  { name: 'a typ of null', header: { ...bare, typ: null }, rules: lax, expected: 'token_malformed' },
  { name: 'a typ that is a list', header: { ...bare, typ: ['JWT'] }, rules: lax, expected: 'token_malformed' },
  { name: 'an ID of a logout', header: { ...bare, typ: 'logout+jwt' }, rules: lax, expected: 'token_malformed' },
  { name: 'no alg', header: { kid: 'a', typ: 'at+jwt' }, rules: oauth, expected: 'algorithm_refused' },
  { name: 'an alg that is a list', header: { ...good, alg: ['ES256'] }, rules: oauth, expected: 'algorithm_refused' },
  { name: 'another alg', header: { ...good, alg: 'ES384' }, rules: oauth, expected: 'algorithm_refused' },
  { name: 'an alg in another case', header: { ...good, alg: 'es256' }, rules: oauth, expected: 'algorithm_refused' },
  ...['none', 'None', 'HS256', 'HS384', 'HS512', 'ES256K', 'RSA-OAEP', 'dir', '', '__proto__', 'constructor'].map(
    (alg) => ({
      name: `alg ${alg}`,
      header: { ...good, alg },
      rules: { ...oauth, algorithms: new Set(algorithmNames) },
      expected: 'algorithm_refused',
    }),
  ),
  { name: 'no kid', header: { alg: 'ES256', typ: 'at+jwt' }, rules: oauth, expected: 'key_id_refused' },
  { name: 'a kid with a blank', header: { ...good, kid: 'a b' }, rules: oauth, expected: 'key_id_refused' },
  { name: 'a kid that is refused', header: { ...good, kid: 'old' }, rules: oauth, expected: 'key_id_refused' },
  ...['x5t', 'x5t#S256', 'cty', 'nonce', 'foo'].map((name) => ({
    name: `${name}, which is ignored`,
    header: { ...good, [name]: 'x' },
    rules: oauth,
    expected: null,
  })),
  ...['crit', 'jku', 'jwk', 'x5u', 'x5c', 'b64', 'enc', 'zip'].flatMap((name) =>
    [oauth, lax, kubernetes, spiffe].map((rules) => ({
      name: `${name} with ${rules.profile}`,
      header: { ...(rules === oauth ? good : bare), [name]: name === 'crit' ? [] : 'x' },
      rules,
      expected: 'token_malformed',
    })),
  ),
  { name: 'Kubernetes', header: bare, rules: kubernetes, expected: null },
  { name: 'Kubernetes with x5t', header: { ...bare, x5t: 'x' }, rules: kubernetes, expected: 'token_malformed' },
  { name: 'SPIFFE with JOSE', header: { ...bare, typ: 'JOSE' }, rules: spiffe, expected: null },
  { name: 'SPIFFE with JWT', header: { ...bare, typ: 'JWT' }, rules: spiffe, expected: null },
  { name: 'SPIFFE with at+jwt', header: good, rules: spiffe, expected: 'token_malformed' },
  { name: 'SPIFFE with cty', header: { ...bare, cty: 'JWT' }, rules: spiffe, expected: 'token_malformed' },
  { name: 'the Core', header: { alg: 'RS256', kid: 'd-1', typ: 'JWT' }, rules: issuerRules(), expected: null },
  { name: 'the Core, without typ', header: { alg: 'RS256', kid: 'd-1' }, rules: issuerRules(), expected: null },
  {
    name: 'the Core, typ in another case',
    header: { alg: 'RS256', kid: 'd-1', typ: 'jwt' },
    rules: issuerRules(),
    expected: 'token_malformed',
  },
  {
    name: 'the Core with x5t',
    header: { alg: 'RS256', kid: 'd-1', x5t: 'x' },
    rules: issuerRules(),
    expected: 'token_malformed',
  },
  {
    name: 'the Core with ES256',
    header: { alg: 'ES256', kid: 'd-1' },
    rules: issuerRules(),
    expected: 'algorithm_refused',
  },
];

t.test('what a header may say, by profile', (t) => {
  for (const { name, header, rules, expected } of rows) t.equal(headerProblem(header, rules), expected, name);
  t.end();
});

t.test('a header that is none for anybody is told of by the issuer that it comes nearest to', (t) => {
  t.equal(nearestProblem({ alg: 'ES256', kid: 'a', typ: 'x' }, [issuerRules(), oauth]), 'token_malformed');
  t.equal(nearestProblem({ alg: 'ES256', kid: 'a', typ: 'x' }, [oauth, issuerRules()]), 'token_malformed');
  t.equal(
    nearestProblem({ alg: 'RS256', kid: 'a', typ: 'JWT' }, [issuerRules(), oauth]),
    'token_malformed',
    'its key id',
  );
  t.equal(nearestProblem({ alg: 'RS256', kid: 'old', typ: 'JWT' }, [oauth, issuerRules()]), 'key_id_refused');
  t.equal(nearestProblem({ alg: 'RS256', kid: 5, typ: 'JWT' }, [oauth, issuerRules()]), 'key_id_refused');
  t.equal(nearestProblem({ alg: 'none', kid: 'a' }, [issuerRules(), oauth]), 'algorithm_refused');
  t.equal(nearestProblem(good, []), 'key_id_refused', 'no issuer at all');
  t.equal(nearestProblem(good, [oauth]), 'key_id_refused', 'nothing is wrong with it');
  t.end();
});

t.test('the form of a token, whoever issued it', (t) => {
  const token = (header: object): string => `${Buffer.from(JSON.stringify(header)).toString('base64url')}.e30.AA`;
  t.match(parseTokenForm(token({ ...good, alg: 'x' })), { ok: true, value: { keyId: 'a', header: { alg: 'x' } } });
  t.match(parseTokenForm(token({ alg: 'x' })), { ok: true, value: { keyId: '' } }, 'no key is called so');
  t.match(parseTokenForm('a.b'), { ok: false, error: { reason: 'token_malformed' } });
  t.end();
});
