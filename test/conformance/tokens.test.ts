/**
 * docs/contract.md 3.5, docs/specification.md 5.2 and 7: every way in which a service token can be wrong, each an equal
 * 401.
 */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { inspect } from 'node:util';
import t, { type Test } from 'tap';
import { malformedClaimRows, sessionClaimRows } from '../support/attacks/claims.js';
import { rsaKey } from '../support/keys.js';
import { base64url, mintToken, serviceClaims, signToken, type Claims } from '../support/tokens.js';
import { startProxyProcess } from '../support/proxy-process.js';
import { checkRefusal, comparable, refusals } from './refusals.js';
import { checkSilence } from './silence.js';

const key = rsaKey('d-1');
const other = rsaKey('d-other');
const weak = rsaKey('d-weak', 1024);
const fixed = rsaKey('s-static');
const rejected = rsaKey('d-rejected');
const elliptic = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ellipticJwk = { ...elliptic.publicKey.export({ format: 'jwk' }), kid: 'd-ec', alg: 'ES256', use: 'sig' };

const skewS = 60;
const capS = 3600;
const proxy = await startProxyProcess(t, {
  key,
  config: {
    issuers: {
      core: {
        clock_skew: `${String(skewS)}s`,
        max_lifetime: `${String(capS)}s`,
        key_ids: { accept: ['d-*'], reject: ['d-rejected'] },
        jwks: { cooldown: '60s' },
      },
    },
  },
});
proxy.jwks.setKeys([
  key,
  weak,
  fixed,
  rejected,
  ellipticJwk,
  { ...other.jwk, kid: 'd-enc', use: 'enc' },
  { ...other.jwk, kid: 'd-rs384', alg: 'RS384' },
  { kty: 'oct', kid: 'd-oct', k: base64url('secret-of-thirty-two-bytes-------') },
]);
// The set is fetched again for the first unknown key id, and then not for a minute.
await proxy.request({ path: '/orders', headers: proxy.authorization() });

interface Row {
  readonly name: string;
  readonly token: string;
  /** The reason in the log. `null` lets the token through. */
  readonly reason: string | RegExp | null;
}

const answers = new Set<string>();
let sent = 0;

async function checkTokens(t: Test, rows: readonly Row[]): Promise<void> {
  const before = proxy.receiver.requests.length;
  const start = sent;
  for (const { name, token, reason } of rows) {
    const requestId = `token-${String(sent++)}`;
    const response = await proxy.request({
      path: '/orders',
      headers: { Authorization: `Bearer ${token}`, 'X-Request-Id': requestId },
    });
    if (reason === null) {
      t.equal(response.status, 200, name);
      continue;
    }
    checkRefusal(t, response, refusals.unauthorized, name);
    answers.add(comparable(response));
  }
  for (const [index, { name, reason }] of rows.entries()) {
    const line = await proxy.logOf(`token-${String(start + index)}`);
    t.match(line, { reason }, `${name}: reason`);
    if (reason !== null) t.match(line, { decision: 'denied', status: 401, upstream_ms: null }, name);
  }
  t.equal(
    proxy.receiver.requests.length - before,
    rows.filter(({ reason }) => reason === null).length,
    'only good ones reached the receiver',
  );
}

const claimed = (claims: Claims): string => mintToken({ key, claims });
const headed = (header: Claims): string => mintToken({ key, header });
const nowS = (): number => Math.floor(Date.now() / 1000);

t.test('every required claim has to be there, of its type, and exact', async (t) => {
  const wrongTypes: readonly (readonly [string, unknown])[] = [
    ['null', null],
    ['a number', 1],
    ['true', true],
    ['an array', ['x']],
    ['an object', { a: 1 }],
  ];
  const exact: readonly (readonly [string, string, string])[] = [
    ['iss', 'issuer_mismatch', 'https://api.example.com'],
    ['aud', 'audience_mismatch', 'orders'],
    ['source', 'source_mismatch', 'microservice'],
    ['token_type', 'token_type_mismatch', 'service'],
  ];
  for (const [claim, mismatch, value] of exact) {
    const values = [
      `${value} `,
      ` ${value}`,
      value.toUpperCase(),
      `${value}/`,
      value.slice(0, -1),
      '',
      'other',
      `${value}\u0000`,
      '*',
    ];
    await checkTokens(
      t,
      values.map((text) => ({
        name: `${claim} ${JSON.stringify(text)}`,
        token: claimed({ [claim]: text }),
        reason: mismatch,
      })),
    );
    const wrong: readonly (readonly [string, unknown])[] = [
      ...wrongTypes,
      ['absent', undefined],
      ['the right value in an array', [value]],
    ];
    const reason = new RegExp(`^(claim_malformed|${mismatch})$`);
    await checkTokens(
      t,
      wrong.map(([name, other]) => ({ name: `${claim} ${name}`, token: claimed({ [claim]: other }), reason })),
    );
  }
});

t.test('sub, permissions and jti are well-formed', async (t) => {
  await checkTokens(
    t,
    malformedClaimRows.map(([claim, value]) => ({
      name: `${claim} ${inspect(value).slice(0, 40)}`,
      token: claimed({ [claim]: value }),
      reason: 'claim_malformed',
    })),
  );
  await checkTokens(t, [
    { name: 'jti of one byte', token: claimed({ jti: 'x' }), reason: null },
    { name: 'jti of 256 bytes', token: claimed({ jti: 'x'.repeat(256) }), reason: null },
    { name: 'more claims than we read', token: claimed({ __proto__x: 1, extra: { deep: [1] } }), reason: null },
  ]);
});

t.test("a session's token is no service token", async (t) => {
  await checkTokens(
    t,
    sessionClaimRows.map(([claim, value]) => ({
      name: `${claim} ${inspect(value)}`,
      token: claimed({ [claim]: value }),
      reason: 'session_claim_present',
    })),
  );
});

t.test('exp, nbf and iat at their boundaries', async (t) => {
  await checkTokens(t, [
    { name: 'exp a second ago, within the skew', token: claimed({ exp: nowS() - 1, iat: undefined }), reason: null },
    // Time only goes on: what is just over the boundary now is over it when it arrives.
    {
      name: 'exp as long ago as the skew',
      token: claimed({ exp: nowS() - skewS, iat: undefined }),
      reason: 'token_expired',
    },
    {
      name: 'exp a second longer ago',
      token: claimed({ exp: nowS() - skewS - 1, iat: undefined }),
      reason: 'token_expired',
    },
    { name: 'nbf as far ahead as the skew', token: claimed({ nbf: nowS() + skewS }), reason: null },
    { name: 'nbf further ahead', token: claimed({ nbf: nowS() + skewS + 30 }), reason: 'token_not_yet_valid' },
    { name: 'iat as far ahead as the skew', token: claimed({ iat: nowS() + skewS }), reason: null },
    { name: 'iat further ahead', token: claimed({ iat: nowS() + skewS + 30 }), reason: 'token_not_yet_valid' },
    { name: 'as long as the cap', token: claimed({ iat: nowS() - 9, exp: nowS() - 9 + capS }), reason: null },
    {
      name: 'a second over the cap',
      token: claimed({ iat: nowS() - 9, exp: nowS() - 8 + capS }),
      reason: 'lifetime_too_long',
    },
    {
      name: 'cap and skew ahead without iat',
      token: claimed({ iat: undefined, exp: nowS() + capS + skewS }),
      reason: null,
    },
    {
      name: 'further ahead without iat',
      token: claimed({ iat: undefined, exp: nowS() + capS + skewS + 30 }),
      reason: 'lifetime_too_long',
    },
    { name: 'a hundred years', token: claimed({ exp: nowS() + 3_155_760_000 }), reason: 'lifetime_too_long' },
    { name: 'no exp', token: claimed({ exp: undefined }), reason: 'claim_malformed' },
  ]);
  const malformed: readonly (readonly [string, string])[] = [
    ['exp', 'null'],
    ['exp', `"${String(nowS() + 300)}"`],
    ['exp', `${String(nowS() + 300)}.5`],
    ['exp', '1e300'],
    ['exp', 'true'],
    ['exp', `[${String(nowS() + 300)}]`],
    ['exp', '{}'],
    ['exp', '99999999999999999999'],
    ['nbf', 'null'],
    ['nbf', '"0"'],
    ['nbf', '0.5'],
    ['iat', '"0"'],
    ['iat', '{}'],
    ['iat', '-1e400'],
  ];
  await checkTokens(
    t,
    malformed.map(([claim, json]) => {
      const payload = JSON.stringify(serviceClaims({ claims: { [claim]: 'HERE' } })).replace('"HERE"', json);
      return {
        name: `${claim} ${json}`,
        token: signToken('{"alg":"RS256","kid":"d-1"}', payload, key.privateKey),
        reason: json === '-1e400' ? 'token_malformed' : 'claim_malformed',
      };
    }),
  );
});

t.test('RS256 and nothing else', async (t) => {
  const input = (header: Claims): string =>
    `${base64url(JSON.stringify({ kid: 'd-1', ...header }))}.${base64url(JSON.stringify(serviceClaims()))}`;
  const signed = (header: Claims, signature: (text: string) => Buffer): string => {
    const text = input(header);
    return `${text}.${signature(text).toString('base64url')}`;
  };
  const rsa =
    (hash: string, padding?: number): ((text: string) => Buffer) =>
    (text) =>
      sign(
        hash,
        Buffer.from(text),
        padding === undefined ? key.privateKey : { key: key.privateKey, padding, saltLength: 32 },
      );
  const pem = key.publicKey.export({ format: 'pem', type: 'spki' }).toString();
  const hmacKeys: readonly (readonly [string, string | Buffer])[] = [
    ['the PEM', pem],
    ['the PEM without its last newline', pem.trimEnd()],
    ['the PKCS#1 PEM', key.publicKey.export({ format: 'pem', type: 'pkcs1' })],
    ['the DER', key.publicKey.export({ format: 'der', type: 'spki' })],
    ['the JWK', JSON.stringify(key.jwk)],
    ['the modulus', String(key.jwk.n)],
    ['nothing', ''],
  ];
  const pss = 6;
  await checkTokens(t, [
    ...['none', 'None', 'NONE', 'nOnE', ''].flatMap((alg) => [
      { name: `alg ${alg} with a signature`, token: signed({ alg }, rsa('RSA-SHA256')), reason: 'algorithm_refused' },
      { name: `alg ${alg} without one`, token: `${input({ alg })}.`, reason: 'token_malformed' },
    ]),
    ...hmacKeys.map(([name, secret]) => ({
      name: `HS256 with ${name} of the public key`,
      token: signed({ alg: 'HS256' }, (text) => createHmac('sha256', secret).update(text).digest()),
      reason: 'algorithm_refused',
    })),
    {
      name: 'HS256 with the oct key of the set',
      token: signed({ alg: 'HS256', kid: 'd-oct' }, (text) => createHmac('sha256', 'x').update(text).digest()),
      reason: 'algorithm_refused',
    },
    { name: 'RS384', token: signed({ alg: 'RS384' }, rsa('RSA-SHA384')), reason: 'algorithm_refused' },
    { name: 'RS512', token: signed({ alg: 'RS512' }, rsa('RSA-SHA512')), reason: 'algorithm_refused' },
    { name: 'PS256', token: signed({ alg: 'PS256' }, rsa('RSA-SHA256', pss)), reason: 'algorithm_refused' },
    {
      name: 'ES256',
      token: signed({ alg: 'ES256', kid: 'd-ec' }, (text) =>
        sign('SHA256', Buffer.from(text), { key: elliptic.privateKey, dsaEncoding: 'ieee-p1363' }),
      ),
      reason: 'algorithm_refused',
    },
    { name: 'RS256 said, RS384 done', token: signed({ alg: 'RS256' }, rsa('RSA-SHA384')), reason: 'signature_invalid' },
    {
      name: 'RS256 said, PS256 done',
      token: signed({ alg: 'RS256' }, rsa('RSA-SHA256', pss)),
      reason: 'signature_invalid',
    },
    { name: 'rs256', token: headed({ alg: 'rs256' }), reason: 'algorithm_refused' },
    { name: 'RS256 with a space', token: headed({ alg: 'RS256 ' }), reason: 'algorithm_refused' },
    { name: 'alg of EdDSA', token: headed({ alg: 'EdDSA' }), reason: 'algorithm_refused' },
  ]);
  for (const alg of [undefined, null, 256, ['RS256'], { name: 'RS256' }]) {
    checkRefusal(
      t,
      await proxy.request({ path: '/orders', headers: { Authorization: `Bearer ${headed({ alg })}` } }),
      refusals.unauthorized,
      `alg ${JSON.stringify(alg)}`,
    );
  }
});

t.test('kid names an accepted key of the set', async (t) => {
  const kid = (keyId: unknown, reason: string): Row => ({
    name: `kid ${inspect(keyId).slice(0, 40)}`,
    token: headed({ kid: keyId }),
    reason,
  });
  await checkTokens(t, [
    kid('', 'key_id_refused'),
    kid('d', 'key_id_refused'),
    kid('D-1', 'key_id_refused'),
    kid(' d-1', 'key_id_refused'),
    kid('d-1 ', 'key_id_refused'),
    kid('*', 'key_id_refused'),
    kid('s-static', 'key_id_refused'),
    kid('d-rejected', 'key_id_refused'),
    kid('../d-1', 'key_id_refused'),
    kid('__proto__', 'key_id_refused'),
    kid('http://127.0.0.1/d-1', 'key_id_refused'),
    kid('d-2', 'key_unknown'),
    kid('d-*', 'key_unknown'),
    kid('d-weak', 'key_unknown'),
    kid('d-ec', 'key_unknown'),
    kid('d-enc', 'key_unknown'),
    kid('d-rs384', 'key_unknown'),
    kid('d-oct', 'key_unknown'),
    { name: 'signed by the static key', token: mintToken({ key: fixed }), reason: 'key_id_refused' },
    { name: 'signed by the rejected key', token: mintToken({ key: rejected }), reason: 'key_id_refused' },
    { name: 'signed by the key of 1024 bits', token: mintToken({ key: weak }), reason: 'key_unknown' },
    {
      name: 'signed by a key that is listed for encryption',
      token: mintToken({ key: other, header: { kid: 'd-enc' } }),
      reason: 'key_unknown',
    },
    {
      name: 'signed by another key under a known kid',
      token: mintToken({ key: other, header: { kid: 'd-1' } }),
      reason: 'signature_invalid',
    },
  ]);
  for (const keyId of [undefined, null, 1, ['d-1'], { a: 'd-1' }, `d-${'x'.repeat(400)}`, 'd-1\n']) {
    const response = await proxy.request({
      path: '/orders',
      headers: { Authorization: `Bearer ${headed({ kid: keyId })}` },
    });
    checkRefusal(t, response, refusals.unauthorized, `kid ${inspect(keyId).slice(0, 40)}`);
  }
});

t.test('the header has alg, kid and typ, and no other member', async (t) => {
  const members: Claims[] = [
    { jku: proxy.jwks.url },
    { jwk: other.jwk },
    { x5u: 'https://example.com/x5u' },
    { x5c: ['MIIB'] },
    { crit: ['exp'] },
    { crit: [] },
    { b64: false },
    { b64: true },
    { crit: ['b64'], b64: false },
    { cty: 'JWT' },
    { zip: 'DEF' },
    { x5t: 'x' },
    { epk: {} },
    { enc: 'A128GCM' },
    { extra: 1 },
  ];
  await checkTokens(
    t,
    members.map((member) => ({
      name: JSON.stringify(member).slice(0, 40),
      token: headed(member),
      reason: 'token_malformed',
    })),
  );
  await checkTokens(t, [
    { name: 'no typ', token: headed({ typ: undefined }), reason: null },
    {
      name: "a key of one's own in the header",
      token: mintToken({ key: other, header: { kid: 'd-1', jwk: other.jwk } }),
      reason: 'token_malformed',
    },
    ...['at+jwt', '', 'JWS'].map((typ) => ({ name: `typ ${typ}`, token: headed({ typ }), reason: 'token_malformed' })),
  ]);
  t.equal(
    (await proxy.request({ path: '/orders', headers: { Authorization: `Bearer ${headed({ typ: 5 })}` } })).status,
    401,
    'typ 5',
  );
});

t.test('every refused token got the same answer', async (t) => {
  t.equal(answers.size, 1);
});

checkSilence(t, proxy);
