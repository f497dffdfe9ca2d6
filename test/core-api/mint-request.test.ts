import t from 'tap';
import {
  cdiVersionProblem,
  maxValidityS,
  mintBody,
  readMintClaims,
  tokenIdBytes,
} from '../../src/core-api/mint-request.js';

const claims = {
  aud: 'orders',
  sub: 'checkout',
  source: 'microservice',
  token_type: 'service',
  permissions: ['orders:read'],
};

t.test('the payload has five claims', async (t) => {
  t.same(readMintClaims(claims), { ok: true, value: claims });
  t.same(readMintClaims({ ...claims, permissions: [] }), { ok: true, value: { ...claims, permissions: [] } });
  const most = {
    ...claims,
    aud: 'a'.repeat(256),
    sub: 's'.repeat(1024),
    source: 'Ω'.repeat(256),
    permissions: Array.from({ length: 1000 }, () => 'a'),
  };
  t.same(readMintClaims(most), { ok: true, value: most }, 'the longest');
});

t.test('anything else is refused, and says why', async (t) => {
  const cases: readonly {
    readonly name: string;
    readonly claims: Readonly<Record<string, unknown>>;
    readonly says: RegExp;
  }[] = [
    ...['jti', 'iss', 'iat', 'exp', 'nbf'].map((name) => ({
      name,
      claims: { ...claims, [name]: 1 },
      says: new RegExp(`^${name} cannot be chosen: .*; allowed: aud`),
    })),
    {
      name: 'another',
      claims: { ...claims, role: 'admin' },
      says: /^role is not part of a service token; allowed: aud, sub, source, token_type, permissions$/,
    },
    { name: 'a session claim', claims: { ...claims, sessionHandle: 'x' }, says: /^sessionHandle is not part/ },
    {
      name: 'a name that is a secret',
      claims: { ...claims, 'k3y-of-twenty-and-more-characters': 1 },
      says: /^a member is not part/,
    },
    {
      name: '__proto__',
      claims: Object.fromEntries<unknown>([...Object.entries(claims), ['__proto__', {}]]),
      says: /^a member/,
    },
    ...['aud', 'sub', 'source', 'token_type', 'permissions'].flatMap((name) =>
      [undefined, null, 1, '', ['', 'a'], {}].map((value) => ({
        name: `${name} ${JSON.stringify(value)}`,
        claims: { ...claims, [name]: value },
        says: new RegExp(`^${name} must be`),
      })),
    ),
    { name: 'long aud', claims: { ...claims, aud: 'a'.repeat(257) }, says: /^aud must be/ },
    { name: 'control in source', claims: { ...claims, source: 'a\nb' }, says: /^source must be/ },
    { name: 'lone surrogate', claims: { ...claims, token_type: '\ud800' }, says: /^token_type must be/ },
    { name: 'long sub', claims: { ...claims, sub: 's'.repeat(1025) }, says: /^sub must be/ },
    { name: 'space in sub', claims: { ...claims, sub: 'a b' }, says: /^sub must be/ },
    { name: 'space in a permission', claims: { ...claims, permissions: ['a b'] }, says: /^permissions must be/ },
    {
      name: 'permissions as one text',
      claims: { ...claims, permissions: 'orders:read' },
      says: /^permissions must be/,
    },
    {
      name: 'too many permissions',
      claims: { ...claims, permissions: Array.from({ length: 1001 }, () => 'a') },
      says: /^permissions must be/,
    },
  ];
  for (const { name, claims, says } of cases) t.match(readMintClaims(claims), { ok: false, error: says }, name);
});

t.test('nothing in the call is left to a default', async (t) => {
  const request = { claims, issuer: 'https://api.example.com', validityS: 300, tokenId: null };
  const rest = { useStaticSigningKey: false, algorithm: 'RS256', jwksDomain: 'https://api.example.com', validity: 300 };
  t.strictSame(mintBody(request), { payload: claims, ...rest });
  t.strictSame(mintBody({ ...request, tokenId: 'id' }), { payload: { ...claims, jti: 'id' }, ...rest });
});

t.test('a token lives for two hours at most, and the id of a single-use one is beyond guessing', async (t) => {
  t.equal(maxValidityS, 2 * 60 * 60);
  t.equal(tokenIdBytes * 8, 144);
});

t.test('a version that would silently sign with the static key is refused', async (t) => {
  for (const version of ['2.21', '2.100', '3.0', '5.4', '10.0']) t.equal(cdiVersionProblem(version), null, version);
  for (const version of ['2.20', '2.16', '2.9', '1.99', '0.0']) {
    t.match(cdiVersionProblem(version), /older than 2\.21.*static key/, version);
  }
  for (const version of ['', '5', '5.4.1', 'v5.4', '5.x', ' 5.4']) {
    t.match(cdiVersionProblem(version), /no version/, version);
  }
});
