import t from 'tap';
import { verifyDpopProof, type ProofRules } from '../../../src/decision/binding/dpop-proof.js';
import { thumbprintOf } from '../../../src/decision/binding/thumbprint.js';
import { namesTarget } from '../../../src/decision/binding/target-uri.js';
import { makeProof, otherSpelling, proofKey, signProof, type ProofInput, type ProofKey } from '../../support/dpop.js';
import { nowMs, nowS } from '../samples.js';

const rules: ProofRules = { origins: new Set(['https://orders.example']), maxAgeMs: 60_000, clockSkewMs: 5_000 };
const token = 'a.good.token';
const uri = 'https://orders.example/orders';
const own = proofKey();
const thief = proofKey();

function judge(proof: string, key: ProofKey = own, more: Partial<Parameters<typeof verifyDpopProof>[1]> = {}): string {
  const request = { method: 'GET', path: '/orders', token, key: key.thumbprint, nowMs, isNonce: null, ...more };
  const verdict = verifyDpopProof(proof, request, rules);
  return verdict.ok ? 'holds' : verdict.error.reason;
}

const make = (input: Partial<ProofInput> = {}, key: ProofKey = own): string =>
  makeProof(key, { uri, token, nowMs, ...input });

/** RFC 9449 §7.1, Figure 12, and the thumbprint of §6.1. */
const rfcProof =
  'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCR' +
  'nMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwia' +
  'HRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8yc' +
  'jJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYo' +
  'MxhAJpLjA';

t.test('the example of RFC 9449', (t) => {
  const request = {
    method: 'GET',
    path: '/protectedresource',
    token: 'Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU',
    key: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I',
    nowMs: 1_562_262_618_000,
    isNonce: null,
  };
  const resource = { ...rules, origins: new Set(['https://resource.example.org']) };
  t.same(verifyDpopProof(rfcProof, request, resource), {
    ok: true,
    value: { id: 'e1j3V_bKic8-LAEB', issuedAtS: 1_562_262_618, endsAtMs: 1_562_262_683_000 },
  });
  for (const [other, reason] of [
    [{ token: 'another' }, 'proof_mismatch'],
    [{ path: '/' }, 'proof_mismatch'],
    [{ method: 'POST' }, 'proof_mismatch'],
    [{ key: own.thumbprint }, 'proof_mismatch'],
    [{ nowMs: 1_562_262_683_000 }, 'proof_untimely'],
  ] as const) {
    t.match(verifyDpopProof(rfcProof, { ...request, ...other }, resource), { ok: false, error: { reason } });
  }
  t.end();
});

t.test('the example of RFC 7638 §3.1', (t) => {
  const n =
    '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBX' +
    'Arwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4l' +
    'Fd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw';
  t.equal(thumbprintOf({ kty: 'RSA', n, e: 'AQAB' }), 'NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs');
  t.end();
});

t.test('keys and algorithms', (t) => {
  for (const algorithm of ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'] as const) {
    const key = proofKey(algorithm);
    t.equal(judge(make({}, key), key), 'holds', algorithm);
    t.equal(judge(make({}, key), key), 'holds', `${algorithm}, remembered`);
  }
  const slow = proofKey('ES384');
  t.equal(judge(make({}, slow), slow), 'proof_malformed', 'ES384');
  const large = proofKey('RS256', 4_104);
  t.equal(judge(make({}, large), large), 'proof_malformed', 'an RSA key that is slow to verify with');
  const small = proofKey('RS256', 1_024);
  t.equal(judge(make({}, small), small), 'proof_malformed', 'an RSA key that is too small');
  const point = { ...own.jwk, y: own.jwk.x ?? '' };
  t.equal(
    judge(make({ header: { jwk: point } }), { ...own, thumbprint: thumbprintOf(texts(point)) }),
    'proof_malformed',
    'a point that is not on the curve',
  );
  t.end();
});

function texts({ kty = '', crv = '', x = '', y = '' }: ProofKey['jwk']): Readonly<Record<string, string>> {
  return { kty, crv, x, y };
}

/** How a row shows a value. */
function shown(value: unknown): string {
  return value === undefined ? 'left out' : JSON.stringify(value);
}

type Row = readonly [name: string, input: Partial<ProofInput>, expected: string];

const malformed = 'proof_malformed';
const mismatch = 'proof_mismatch';
const not = [undefined, null, '', 5, true, ['x'], {}];
const list = (values: readonly unknown[], claim: string, expected: string): readonly Row[] =>
  values.map((value) => [`${claim}: ${shown(value)}`, { claims: { [claim]: value } }, expected]);
const member = (name: string, ...values: readonly unknown[]): readonly Row[] =>
  values.map((value) => [`header ${name}: ${shown(value)}`, { header: { [name]: value } }, malformed]);
const { d } = own.privateKey.export({ format: 'jwk' });

const rows: readonly Row[] = [
  ['as it should be', {}, 'holds'],
  ['with a kid', { header: { kid: 'x' } }, 'holds'],
  ['with claims that nobody knows', { claims: { foo: [1], exp: 1, nonce: 'x' } }, 'holds'],
  ['signed with another key', { signer: thief }, malformed],
  ...member('typ', ...not, 'JWT', 'dpop+JWT', 'application/dpop+jwt', 'at+jwt'),
  ...member('alg', ...not, 'none', 'HS256', 'es256', 'RS256', 'ES256K', 'RS1', 'ES384', 'EdDSA'),
  ...member('jwk', ...not, { kty: 'oct', k: 'AAAA' }),
  ...member('jwk', { ...own.jwk, d }, { ...own.jwk, crv: 'P-384' }, { ...own.jwk, alg: 'RS256' }, { ...own.jwk, x: 1 }),
  ...member('jwk', { ...own.jwk, use: 'enc' }, { ...own.jwk, key_ops: ['sign'] }, { ...own.jwk, y: undefined }),
  ...['p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'].flatMap((name) => member('jwk', { ...own.jwk, [name]: 'AA' })),
  ...member('crit', ['b64'], []),
  ...['b64', 'jku', 'x5u', 'x5c', 'enc', 'zip', 'cty'].flatMap((name) => member(name, 'x')),
  ...list([...not, 'x'.repeat(257), 'a b', 'é'], 'jti', malformed),
  ['jti of 256 characters', { claims: { jti: 'x'.repeat(256) } }, 'holds'],
  ...list([...not, 'get', 'POST', 'GET ', 'HEAD'], 'htm', mismatch),
  ...list([undefined, null, 5, true, ['x'], {}, `https://orders.example/${'x'.repeat(8_192)}`], 'htu', malformed),
  ...list(
    [
      '',
      '/orders',
      'orders.example/orders',
      'https://orders.example',
      'https://orders.example/',
      'https://orders.example/orders/',
      'https://orders.example//orders',
      'https://orders.example/./orders',
      'https://orders.example/x/../orders',
      'https://orders.example/Orders',
      'https://orders.example/orders?a=b',
      'https://orders.example/orders?',
      'https://orders.example/orders#a',
      'https://orders.example/orders;x',
      'https://orders.example/orders%2F',
      'https://orders.example/%2forders',
      'https://orders.example\\orders',
      'https://orders.example/orders ',
      ' https://orders.example/orders',
      'http://orders.example/orders',
      'wss://orders.example/orders',
      'https://orders.example:8443/orders',
      'https://orders.example:80/orders',
      'https://orders.example./orders',
      'https://user@orders.example/orders',
      'https://orders.example@evil.example/orders',
      'https://evil.example/orders',
      'https://orders.example.evil.example/orders',
      'https://evil.example/https://orders.example/orders',
    ],
    'htu',
    mismatch,
  ),
  ...list(
    [
      'https://orders.example/orders',
      'HTTPS://ORDERS.EXAMPLE/orders',
      'https://orders.example:443/orders',
      'https://orders.example/%6Frders',
      'https://orders.example/%6frders',
    ],
    'htu',
    'holds',
  ),
  ...list([...not.filter((value) => value !== 5), `${nowS}`, nowS + 0.5, NaN], 'iat', malformed),
  ...list([0, 5, -1, nowS * 1_000], 'iat', 'proof_untimely'),
  ...list([nowS - 65, nowS + 6], 'iat', 'proof_untimely'),
  ...list([nowS - 64, nowS + 5], 'iat', 'holds'),
  ...list([...not, token, 'x'.repeat(43)], 'ath', mismatch),
];

t.test('each member of a proof, changed', (t) => {
  for (const [name, input, expected] of rows) t.equal(judge(make(input)), expected, name);
  t.end();
});

t.test('what is no proof', (t) => {
  const good = make();
  const [header = '', payload = '', signature = ''] = good.split('.');
  const texts = [
    '',
    '.',
    '..',
    'x',
    header,
    `${header}.${payload}`,
    `${header}.${payload}.`,
    `.${payload}.${signature}`,
    `${header}..${signature}`,
    `${good}.`,
    `${good}.x`,
    `${good}=`,
    `${good} `,
    ` ${good}`,
    `${good}, ${good}`,
    `${header}=.${payload}.${signature}`,
    `${header}.${payload}=.${signature}`,
    `${header}.${payload}.${signature.slice(0, -2)}`,
    `${header}.${payload}.${signature}AA`,
    `${header}.${payload}.${'A'.repeat(86)}`,
    `${header}.${Buffer.from('{"jti":"x"}').toString('base64url')}.${signature}`,
    `${header}.${payload}.${signature}`.toLowerCase(),
    'x'.repeat(4_097),
  ];
  for (const text of texts) t.equal(judge(text), malformed, JSON.stringify(text.slice(0, 40)));
  t.equal(judge(good), 'holds', 'the good one still does');
  const rest = `"typ":"dpop+jwt","jwk":${JSON.stringify(own.jwk)}`;
  for (const [head, claims] of [
    [`{"alg":"ES256","alg":"ES256",${rest}}`, '{}'],
    ['[]', '{}'],
    [`{"alg":"ES256",${rest}}`, '[]'],
    [`{"alg":"ES256",${rest}}`, '{"jti":"a","jti":"a"}'],
    [`\u{feff}{"alg":"ES256",${rest}}`, '{}'],
  ] as const) {
    t.equal(judge(signProof(head, claims, own)), malformed, `${head.slice(0, 20)} ${claims}`);
  }
  t.end();
});

t.test('a part in another spelling than its canonical one, signed as it is', (t) => {
  const padded = (text: string): string => `${text}=`;
  for (const part of ['header', 'claims'] as const) {
    for (const spell of [otherSpelling, padded]) {
      const respelled = (text: string, of: string): string => (of === part ? spell(text) : text);
      t.equal(judge(make({ respelled })), malformed, `${part}, ${spell.name}`);
    }
  }
  const [header = '', claims = '', signature = ''] = make().split('.');
  t.equal(judge(`${header}.${claims}.${otherSpelling(signature)}`), malformed, 'signature');
  t.end();
});

t.test('a proof of at most 4 KiB', (t) => {
  // No text is encoded in some of these lengths: then it is one shorter.
  const lengths = [4_095, 4_096, 4_097, 4_098, 4_099].map((length) => make({ length }));
  for (const proof of lengths) t.equal(judge(proof), proof.length <= 4_096 ? 'holds' : malformed, `${proof.length}`);
  const exact = ['', 'x', 'xx', 'xxx'].flatMap((kid) =>
    [4_096, 4_097]
      .map((length) => make({ length, header: { kid } }))
      .filter((proof, index) => proof.length === 4_096 + index),
  );
  t.ok(exact.some(({ length }) => length === 4_096) && exact.some(({ length }) => length === 4_097));
  for (const proof of exact) t.equal(judge(proof), proof.length === 4_096 ? 'holds' : malformed, `${proof.length}`);
  t.end();
});

t.test('members nested four deep at most', (t) => {
  t.equal(judge(make({ claims: { more: [[[1]]] } })), 'holds');
  t.equal(judge(make({ claims: { more: [[[[1]]]] } })), malformed);
  t.end();
});

t.test('a key that says what it signs by, in the names of a header', (t) => {
  const edwards = proofKey('Ed25519');
  const saying = (alg: unknown, key: ProofKey, header = key.algorithm): string =>
    judge(make({ header: { alg: header, jwk: { ...key.jwk, alg } } }, key), key);
  t.equal(saying('ES256', own), 'holds');
  for (const [header, alg] of [
    ['Ed25519', 'Ed25519'],
    ['Ed25519', 'EdDSA'],
    ['EdDSA', 'Ed25519'],
    ['EdDSA', 'EdDSA'],
  ] as const) {
    t.equal(saying(alg, edwards, header), 'holds', `${header} by a key for ${alg}`);
  }
  for (const alg of ['ES256', 'Ed448', 'ed25519', '', 5, null]) t.equal(saying(alg, edwards), malformed, shown(alg));
  t.end();
});

t.test('a thief’s own proof, and a proof of the client for another token', (t) => {
  t.equal(judge(make({}, thief)), mismatch);
  t.equal(judge(make({ token: 'another.good.token' })), mismatch);
  t.equal(
    judge(make({ header: { jwk: thief.jwk } })),
    mismatch,
    'signed by the client, with the key of the thief in it',
  );
  t.equal(judge(make({ header: { jwk: own.jwk }, signer: thief }, thief)), malformed);
  t.end();
});

t.test('a nonce is asked for where there are some', (t) => {
  const asked = { isNonce: (nonce: string) => nonce === 'good' };
  t.equal(judge(make({ claims: { nonce: 'good' } }), own, asked), 'holds');
  for (const nonce of [undefined, null, 5, 'bad', '', ['good']]) {
    t.equal(judge(make({ claims: { nonce } }), own, asked), 'proof_nonce', JSON.stringify(nonce));
  }
  t.end();
});

t.test('targets are compared as RFC 3986 §6.2 has it', (t) => {
  const origins = new Set(['http://127.0.0.1:8080', 'https://[::1]', 'http://orders.example']);
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['http://127.0.0.1:8080/a', '/a', true],
    ['http://127.0.0.1:8080', '/', true],
    ['http://127.0.0.1/a', '/a', false],
    ['https://[::1]/a', '/a', true],
    ['https://[::1]:443/a', '/a', true],
    ['http://orders.example:80/', '/', true],
    ['http://orders.example:443/', '/', false],
    ['http://orders.example/a%7eb', '/a~b', true],
    ['http://orders.example/a%2fb', '/a%2Fb', true],
    ['http://orders.example/a%2fb', '/a/b', false],
    ['http://orders.example/a%20b', '/a+b', false],
    ['http://orders.example/a%25', '/a%', false],
    ['ftp://orders.example/', '/', false],
    ['', '/', false],
  ];
  for (const [uri, path, expected] of cases) t.equal(namesTarget(uri, path, origins), expected, `${uri} ${path}`);
  t.end();
});
