import fc from 'fast-check';
import t from 'tap';
import { maxTokenBytes, readPayload } from '../../../src/decision/token/compact-jws.js';
import { parseServiceToken } from '../../../src/decision/token/service-token.js';
import { base64url } from '../../support/tokens.js';

const header = '{"alg":"RS256","kid":"d-1"}';
const payload = '{"sub":"checkout"}';

/** A token of right form but of no signature: form is all that is judged here. */
function token(headerText: string | Buffer = header, payloadText: string | Buffer = payload): string {
  return `${base64url(headerText)}.${base64url(payloadText)}.c2ln`;
}

function reasonOf(text: string): string {
  const result = parseServiceToken(text);
  return result.ok ? 'accepted' : result.error.reason;
}

t.test('a token is taken apart', (t) => {
  const text = token();
  const result = parseServiceToken(text);
  t.ok(result.ok);
  if (!result.ok) return t.end();
  t.equal(result.value.keyId, 'd-1');
  t.equal(
    result.value.signingInput.toString('latin1'),
    text.slice(0, text.lastIndexOf('.')),
    'the bytes that were signed, as they came',
  );
  t.equal(result.value.signature.toString(), 'sig');
  const claims = readPayload(result.value);
  t.equal(claims.ok && claims.value['sub'], 'checkout');
  return t.end();
});

t.test('exactly three non-empty canonical base64url parts of at most 8 KiB', (t) => {
  const [head = '', body = '', signature = ''] = token().split('.');
  // Either length leaves a canonical payload, so that nothing but the length tells them apart.
  const fill = (length: number): string =>
    `${head}.${'A'.repeat(length - head.length - signature.length - 2)}.${signature}`;
  const cases = [
    { name: 'as it should be', input: `${head}.${body}.${signature}`, expected: 'accepted' },
    { name: 'nothing', input: '', expected: 'token_malformed' },
    { name: 'one part', input: head, expected: 'token_malformed' },
    {
      name: 'no dot, and a header but for the last character',
      input: `${base64url(`${header} `)}A`,
      expected: 'token_malformed',
    },
    { name: 'two parts', input: `${head}.${body}`, expected: 'token_malformed' },
    { name: 'four parts', input: `${head}.${body}.${signature}.${signature}`, expected: 'token_malformed' },
    {
      name: 'five parts, as encrypted tokens have',
      input: `${head}.${body}.${body}.${body}.${signature}`,
      expected: 'token_malformed',
    },
    { name: 'a dot at the end', input: `${head}.${body}.${signature}.`, expected: 'token_malformed' },
    { name: 'a dot in front', input: `.${head}.${body}.${signature}`, expected: 'token_malformed' },
    { name: 'dots alone', input: '..', expected: 'token_malformed' },
    { name: 'as many dots as fit', input: '.'.repeat(maxTokenBytes), expected: 'token_malformed' },
    { name: 'no header', input: `.${body}.${signature}`, expected: 'token_malformed' },
    { name: 'no payload', input: `${head}..${signature}`, expected: 'token_malformed' },
    { name: 'no signature', input: `${head}.${body}.`, expected: 'token_malformed' },
    { name: 'padding', input: `${head}.${body}.c2lnbg==`, expected: 'token_malformed' },
    { name: 'trailing bits', input: `${head}.${body}.c2lnbh`, expected: 'token_malformed' },
    { name: 'trailing bits in the payload', input: `${head}.YR.${signature}`, expected: 'token_malformed' },
    { name: 'a space', input: `${head}. ${body}.${signature}`, expected: 'token_malformed' },
    { name: 'a newline at the end', input: `${head}.${body}.${signature}\n`, expected: 'token_malformed' },
    { name: 'the other alphabet', input: `${head}.${body}.++//`, expected: 'token_malformed' },
    { name: 'as long as may be', input: fill(maxTokenBytes), expected: 'accepted' },
    { name: 'one byte too long', input: fill(maxTokenBytes + 1), expected: 'token_malformed' },
  ];
  for (const { name, input, expected } of cases) t.equal(reasonOf(input), expected, name);
  t.end();
});

t.test('alg, kid, typ and no other header member', (t) => {
  const cases = [
    { name: 'alg and kid', header, expected: 'accepted' },
    {
      name: 'in another order, with white space',
      header: ' { "kid" : "d-1" , "alg" : "RS256" } ',
      expected: 'accepted',
    },
    { name: 'typ JWT', header: '{"alg":"RS256","kid":"d-1","typ":"JWT"}', expected: 'accepted' },
    { name: 'typ in lower case', header: '{"alg":"RS256","kid":"d-1","typ":"jwt"}', expected: 'token_malformed' },
    { name: 'another typ', header: '{"alg":"RS256","kid":"d-1","typ":"at+jwt"}', expected: 'token_malformed' },
    { name: 'typ null', header: '{"alg":"RS256","kid":"d-1","typ":null}', expected: 'token_malformed' },
    { name: 'typ as an array', header: '{"alg":"RS256","kid":"d-1","typ":["JWT"]}', expected: 'token_malformed' },
    { name: 'no alg', header: '{"kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg none', header: '{"alg":"none","kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg None', header: '{"alg":"None","kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg empty', header: '{"alg":"","kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg HS256', header: '{"alg":"HS256","kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg RS384', header: '{"alg":"RS384","kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg PS256', header: '{"alg":"PS256","kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg ES256', header: '{"alg":"ES256","kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg in lower case', header: '{"alg":"rs256","kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg with a space', header: '{"alg":"RS256 ","kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg as an array', header: '{"alg":["RS256"],"kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg null', header: '{"alg":null,"kid":"d-1"}', expected: 'algorithm_refused' },
    { name: 'alg escaped is alg', header: '{"\\u0061lg":"RS\\u003256","kid":"d-1"}', expected: 'accepted' },
    { name: 'no kid', header: '{"alg":"RS256"}', expected: 'key_id_refused' },
    { name: 'kid empty', header: '{"alg":"RS256","kid":""}', expected: 'key_id_refused' },
    { name: 'kid null', header: '{"alg":"RS256","kid":null}', expected: 'key_id_refused' },
    { name: 'kid a number', header: '{"alg":"RS256","kid":1}', expected: 'key_id_refused' },
    { name: 'kid an array', header: '{"alg":"RS256","kid":["d-1"]}', expected: 'key_id_refused' },
    { name: 'kid with a newline', header: '{"alg":"RS256","kid":"d-1\\n"}', expected: 'key_id_refused' },
    { name: 'kid with a NUL', header: '{"alg":"RS256","kid":"d-\\u0000"}', expected: 'key_id_refused' },
    { name: 'kid beyond ASCII', header: '{"alg":"RS256","kid":"d-é"}', expected: 'key_id_refused' },
    { name: 'kid of 256 characters', header: `{"alg":"RS256","kid":"${'d'.repeat(256)}"}`, expected: 'accepted' },
    { name: 'kid of 257 characters', header: `{"alg":"RS256","kid":"${'d'.repeat(257)}"}`, expected: 'key_id_refused' },
    {
      name: 'kid as a path or a statement is only a name',
      header: '{"alg":"RS256","kid":"../../dev/null\';--"}',
      expected: 'accepted',
    },
    ...[
      'crit',
      'b64',
      'jku',
      'jwk',
      'x5u',
      'x5c',
      'x5t',
      'cty',
      'enc',
      'zip',
      'version',
      'Alg',
      '__proto__',
      'constructor',
      '',
    ].map((name) => ({
      name: `member ${JSON.stringify(name)}`,
      header: `{"alg":"RS256","kid":"d-1","${name}":[]}`,
      expected: 'token_malformed',
    })),
    { name: 'a member that is null', header: '{"alg":"RS256","kid":"d-1","crit":null}', expected: 'token_malformed' },
    {
      name: 'alg inherited from __proto__',
      header: '{"__proto__":{"alg":"RS256"},"kid":"d-1"}',
      expected: 'algorithm_refused',
    },
    { name: 'alg twice', header: '{"alg":"none","kid":"d-1","alg":"RS256"}', expected: 'token_malformed' },
    {
      name: 'alg twice, once escaped',
      header: '{"alg":"RS256","\\u0061lg":"none","kid":"d-1"}',
      expected: 'token_malformed',
    },
    { name: 'kid twice', header: '{"alg":"RS256","kid":"s-1","kid":"d-1"}', expected: 'token_malformed' },
    { name: 'an array', header: '[]', expected: 'token_malformed' },
    { name: 'a string', header: '"RS256"', expected: 'token_malformed' },
    { name: 'not JSON', header: 'RS256', expected: 'token_malformed' },
    { name: 'a byte order mark', header: `\ufeff${header}`, expected: 'token_malformed' },
    { name: 'not UTF-8', header: Buffer.from('{"alg":"RS256","kid":"d-\xe9"}', 'latin1'), expected: 'token_malformed' },
    {
      name: 'deeply nested',
      header: `{"alg":"RS256","kid":"d-1","x":${'['.repeat(900)}${']'.repeat(900)}}`,
      expected: 'token_malformed',
    },
  ];
  for (const { name, header, expected } of cases) t.equal(reasonOf(token(header)), expected, name);
  t.end();
});

t.test('the payload is not looked at before the signature holds, and is as strict then', (t) => {
  const cases = [
    { name: 'an object', payload, ok: true },
    { name: 'no member', payload: '{}', ok: true },
    { name: 'not JSON', payload: 'foo', ok: false },
    { name: 'an array', payload: '[]', ok: false },
    { name: 'null', payload: 'null', ok: false },
    { name: 'a claim twice', payload: '{"sub":"checkout","sub":"admin"}', ok: false },
    { name: 'a claim twice, once escaped', payload: '{"sub":"checkout","s\\u0075b":"admin"}', ok: false },
    { name: 'not UTF-8', payload: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), ok: false },
    { name: 'deeply nested', payload: `{"a":${'['.repeat(16)}${']'.repeat(16)}}`, ok: false },
  ];
  for (const { name, payload, ok } of cases) {
    const parsed = parseServiceToken(token(header, payload));
    t.ok(parsed.ok, `${name}: form says nothing of it`);
    if (!parsed.ok) continue;
    const claims = readPayload(parsed.value);
    t.same(claims.ok ? 'accepted' : claims.error, ok ? 'accepted' : { reason: 'token_malformed' }, name);
  }
  t.end();
});

t.test('no text makes the parser throw', (t) => {
  const part = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.json().map((text) => base64url(text)),
    fc.constant(base64url(header)),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
      const result = parseServiceToken(parts.join('.'));
      return !result.ok || (readPayload(result.value), result.value.keyId === 'd-1');
    }),
    { numRuns: 1000 },
  );
  t.end();
});
