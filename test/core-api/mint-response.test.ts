import t from 'tap';
import { issuanceRecord } from '../../src/core-api/issuance-log.js';
import type { MintRequest } from '../../src/core-api/mint-request.js';
import { checkMinted } from '../../src/core-api/mint-response.js';
import { rsaKey, withKeyId } from '../support/keys.js';
import { mintToken, signToken, type Claims } from '../support/tokens.js';

const nowMs = 1_800_000_000_000;
const nowS = nowMs / 1000;
const times = { startedMs: nowMs, endedMs: nowMs + 500 };
const claims = {
  aud: 'orders',
  sub: 'checkout',
  source: 'microservice',
  token_type: 'service',
  permissions: ['orders:read', 'orders:write'],
};
const request: MintRequest = { claims, issuer: 'https://api.example.com', validityS: 300, tokenId: null };
const key = rsaKey('d-1');

function minted(claims: Claims = {}, header: Claims = {}): string {
  return mintToken({ key, claims, header, nowMs });
}

function problem(token: string, asked = request): string {
  const checked = checkMinted(token, asked, times);
  return checked.ok ? 'accepted' : checked.error;
}

t.test('a token that is what was asked for', async (t) => {
  const token = minted();
  t.same(checkMinted(token, request, times), {
    ok: true,
    value: {
      token,
      keyId: 'd-1',
      claims,
      issuer: 'https://api.example.com',
      tokenId: null,
      issuedAtS: nowS,
      expiresAtS: nowS + 300,
    },
  });
  t.match(checkMinted(minted({ jti: 'id' }), { ...request, tokenId: 'id' }, times), {
    ok: true,
    value: { tokenId: 'id' },
  });
  t.equal(
    problem(minted({ permissions: [] }), { ...request, claims: { ...claims, permissions: [] } }),
    'accepted',
    'without permissions',
  );
  t.equal(problem(minted({ exp: nowS + 299 })), 'accepted', 'rounded to seconds');
  t.equal(problem(minted({}, { typ: undefined })), 'accepted', 'without typ');
});

t.test('a token that is something else is thrown away, and the reason says what differs', async (t) => {
  const cases = [
    { name: 'static key', token: mintToken({ key: withKeyId(key, 's-6a1f'), nowMs }), says: /not dynamic/ },
    {
      name: 'static key of an old Core',
      token: mintToken({ key: withKeyId(key, '0f8fad5b-d9cb-469f-a165-70867728950e'), nowMs }),
      says: /not dynamic/,
    },
    {
      name: 'static key that is named like a dynamic one further on',
      token: mintToken({ key: withKeyId(key, 's-d-1'), nowMs }),
      says: /not dynamic/,
    },
    { name: 'no kid', token: minted({}, { kid: undefined }), says: /names no key/ },
    { name: 'another algorithm', token: minted({}, { alg: 'HS256' }), says: /another algorithm than RS256/ },
    { name: 'none', token: minted({}, { alg: 'none' }), says: /another algorithm/ },
    { name: "a session's header", token: minted({}, { version: '5' }), says: /no well-formed token/ },
    { name: 'no token', token: 'jwt', says: /no well-formed token/ },
    {
      name: 'too long',
      token: minted({ permissions: Array.from({ length: 900 }, () => 'orders') }),
      says: /longer than the 8192 bytes/,
    },
    { name: 'as long as may be', token: 'a'.repeat(8192), says: /no well-formed token/ },
    { name: 'a byte more', token: 'a'.repeat(8193), says: /longer than/ },
    {
      name: 'claims twice',
      token: signToken('{"alg":"RS256","kid":"d-1"}', '{"iss":"a","iss":"b"}', key.privateKey),
      says: /duplicate-free/,
    },
    { name: 'issuer', token: minted({ iss: 'https://api.example.com/auth' }), says: /iss is not/ },
    { name: 'aud', token: minted({ aud: ['orders'] }), says: /aud is not/ },
    { name: 'sub', token: minted({ sub: 'admin' }), says: /sub is not/ },
    { name: 'source', token: minted({ source: undefined }), says: /source is not/ },
    { name: 'token_type', token: minted({ token_type: 'session' }), says: /token_type is not/ },
    {
      name: 'more permissions',
      token: minted({ permissions: ['orders:read', 'orders:write', 'admin'] }),
      says: /permissions are not/,
    },
    { name: 'fewer permissions', token: minted({ permissions: ['orders:read'] }), says: /permissions are not/ },
    {
      name: 'other order',
      token: minted({ permissions: ['orders:write', 'orders:read'] }),
      says: /permissions are not/,
    },
    {
      name: 'one other permission',
      token: minted({ permissions: ['orders:read', 'admin'] }),
      says: /permissions are not/,
    },
    { name: 'permissions as text', token: minted({ permissions: 'orders:read' }), says: /permissions are not/ },
    { name: 'a jti', token: minted({ jti: 'x' }), says: /jti, which was not asked for/ },
    { name: 'more claims', token: minted({ sessionHandle: 'x' }), says: /claims that were not asked for/ },
    { name: 'not before', token: minted({ nbf: nowS }), says: /claims that were not asked for/ },
    { name: 'no exp', token: minted({ exp: undefined }), says: /iat or exp is missing/ },
    { name: 'no iat', token: minted({ iat: undefined }), says: /iat or exp is missing/ },
    { name: 'exp as text', token: minted({ exp: String(nowS + 300) }), says: /no whole number/ },
    { name: 'a second longer', token: minted({ exp: nowS + 301 }), says: /lives for 301 s, and 300 s/ },
    { name: 'a hundred years', token: minted({ exp: nowS + 3_153_600_000 }), says: /lives for 3153600000 s/ },
    { name: 'two seconds shorter', token: minted({ exp: nowS + 298 }), says: /lives for 298 s/ },
    { name: 'over', token: minted({ exp: nowS - 1 }), says: /lives for -1 s/ },
  ];
  for (const { name, token, says } of cases) t.match(problem(token), says, name);
  t.match(problem(minted(), { ...request, tokenId: 'id' }), /jti is not what/, 'no jti');
  t.match(problem(minted({ jti: 'other' }), { ...request, tokenId: 'id' }), /jti is not what/, 'another jti');
});

t.test('a Core whose clock is off signs tokens that receivers refuse', async (t) => {
  const at = (iat: number): string => problem(minted({ iat, exp: iat + 300 }));
  t.equal(at(nowS + 60), 'accepted');
  t.match(at(nowS + 61), /clock of the Core is (60|61) s ahead of/);
  t.equal(at(nowS - 61), 'accepted', 'rounded down, and 60 s');
  t.match(at(nowS - 62), /clock of the Core is 61 s behind/);
});

t.test('what is written down of a token is everything but the token', async (t) => {
  const token = minted({ jti: 'id' });
  const checked = checkMinted(token, { ...request, tokenId: 'id' }, times);
  if (!checked.ok) throw new Error(checked.error);
  t.strictSame(issuanceRecord(checked.value, nowMs), {
    time: '2027-01-15T08:00:00.000Z',
    iss: 'https://api.example.com',
    sub: 'checkout',
    aud: 'orders',
    permissions: claims.permissions,
    jti: 'id',
    kid: 'd-1',
    exp: nowS + 300,
  });
});
