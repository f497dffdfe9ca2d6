import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import t from 'tap';
import { decoded, jwtCall, startCore } from './core-client.js';

const dynamicId = /^d-\d{13}$/;
const staticId = /^s-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

t.test('a token holds the payload with iss, iat and exp, and its key is in the JWKS', async (t) => {
  const core = await startCore(t, { now: () => 1_700_000_000_900 });
  const answer = await core.post('/recipe/jwt', JSON.stringify(jwtCall), { rid: 'jwt' });
  t.equal(answer.status, 200);
  t.match(answer.headers.get('content-type'), /^application\/json/);
  t.equal(answer.json()['status'], 'OK');
  t.same(decoded(answer).payload, {
    iss: 'https://api.example.com',
    iat: 1_700_000_000,
    exp: 1_700_000_300,
    sub: 'checkout',
    permissions: ['orders:read'],
  });
  t.same(Object.keys(decoded(answer).header).sort(), ['alg', 'kid', 'typ']);
  t.match(decoded(answer).header, { alg: 'RS256', typ: 'JWT', kid: dynamicId });
  const jwks = (await core.get('/auth/jwt/jwks.json')).json() as unknown as JSONWebKeySet;
  await t.resolves(
    jwtVerify(String(answer.json()['jwt']), createLocalJWKSet(jwks), { currentDate: new Date(1_700_000_000_000) }),
  );
});

t.test('which key signs', async (t) => {
  const core = await startCore(t);
  const choices = [
    { name: 'dynamic when asked for', ask: { useStaticSigningKey: false }, version: undefined, keyId: dynamicId },
    { name: 'static when asked for', ask: { useStaticSigningKey: true }, version: undefined, keyId: staticId },
    {
      name: 'static by default, as the Core',
      ask: { useStaticSigningKey: undefined },
      version: undefined,
      keyId: staticId,
    },
    {
      name: 'below CDI 2.21 the field is not read',
      ask: { useStaticSigningKey: false },
      version: '2.20',
      keyId: staticId,
    },
    { name: 'at CDI 2.16 neither', ask: { useStaticSigningKey: false }, version: '2.16', keyId: staticId },
    { name: 'from CDI 2.21 on it is', ask: { useStaticSigningKey: false }, version: '2.21', keyId: dynamicId },
    { name: 'and at the newest', ask: { useStaticSigningKey: false }, version: '5.4', keyId: dynamicId },
  ];
  for (const { name, ask, version, keyId } of choices) {
    const headers: Record<string, string> = version === undefined ? {} : { 'cdi-version': version };
    const answer = await core.post('/recipe/jwt', JSON.stringify({ ...jwtCall, ...ask }), headers);
    t.match(decoded(answer).header['kid'], keyId, name);
  }
});

t.test('the payload wins over iss, iat and exp, as from Core 6.0 on', async (t) => {
  const core = await startCore(t);
  const payload = { iss: 'https://other.example.com', iat: 1, exp: 2 };
  t.match(decoded(await core.post('/recipe/jwt', JSON.stringify({ ...jwtCall, payload }))).payload, payload);
});

t.test('refusals are plain text with the words of the Core', async (t) => {
  const core = await startCore(t);
  const without = (field: keyof typeof jwtCall): string => JSON.stringify({ ...jwtCall, [field]: undefined });
  const having = (fields: object): string => JSON.stringify({ ...jwtCall, ...fields });
  const invalid = (field: string): string => `Field name '${field}' is invalid in JSON input`;
  const notPositive = 'validity must be greater than or equal to 0';
  const cases: readonly { name: string; body: string | Uint8Array; expected: string }[] = [
    { name: 'no body', body: '', expected: 'Invalid Json Input' },
    { name: 'not JSON', body: '{', expected: 'Invalid Json Input' },
    { name: 'an array', body: '[]', expected: 'Invalid Json Input' },
    { name: 'null', body: 'null', expected: 'Invalid Json Input' },
    { name: 'not UTF-8', body: new Uint8Array([0x7b, 0xff, 0x7d]), expected: 'Invalid Json Input' },
    { name: 'no algorithm', body: without('algorithm'), expected: invalid('algorithm') },
    { name: 'algorithm no string', body: having({ algorithm: 5 }), expected: invalid('algorithm') },
    { name: 'no jwksDomain', body: without('jwksDomain'), expected: invalid('jwksDomain') },
    { name: 'no payload', body: without('payload'), expected: invalid('payload') },
    { name: 'payload an array', body: having({ payload: [] }), expected: invalid('payload') },
    { name: 'payload null', body: having({ payload: null }), expected: invalid('payload') },
    { name: 'no validity', body: without('validity'), expected: invalid('validity') },
    { name: 'validity no number', body: having({ validity: true }), expected: invalid('validity') },
    { name: 'validity too large', body: having({ validity: 1e300 }), expected: invalid('validity') },
    { name: 'validity 0', body: having({ validity: 0 }), expected: notPositive },
    { name: 'validity below 0', body: having({ validity: -1 }), expected: notPositive },
    {
      name: 'useStaticSigningKey no boolean',
      body: having({ useStaticSigningKey: 'false' }),
      expected: invalid('useStaticSigningKey'),
    },
    {
      name: 'useStaticSigningKey null',
      body: having({ useStaticSigningKey: null }),
      expected: invalid('useStaticSigningKey'),
    },
  ];
  for (const { name, body, expected } of cases) {
    const answer = await core.post('/recipe/jwt', body);
    t.same({ status: answer.status, body: answer.body }, { status: 400, body: expected }, name);
    t.match(answer.headers.get('content-type'), /^text\/html/, name);
  }
});

t.test('the smallest validity and an algorithm in lower case are accepted', async (t) => {
  const core = await startCore(t);
  const { payload } = decoded(
    await core.post('/recipe/jwt', JSON.stringify({ ...jwtCall, algorithm: 'rs256', validity: 1 })),
  );
  t.equal(Number(payload['exp']) - Number(payload['iat']), 1);
});

t.test('another algorithm is a status, not an error', async (t) => {
  const core = await startCore(t);
  for (const algorithm of ['HS256', 'none', 'ES256', '']) {
    const answer = await core.post('/recipe/jwt', JSON.stringify({ ...jwtCall, algorithm }));
    t.same([answer.status, answer.json()], [200, { status: 'UNSUPPORTED_ALGORITHM_ERROR' }], algorithm);
  }
});

t.test('a body of more than 1 MiB is refused, and the next call is served', async (t) => {
  const core = await startCore(t);
  const ofSize = (size: number): string => {
    const empty = JSON.stringify({ ...jwtCall, payload: { filler: '' } });
    return JSON.stringify({ ...jwtCall, payload: { filler: 'x'.repeat(size - empty.length) } });
  };
  t.equal((await core.post('/recipe/jwt', ofSize(1024 * 1024))).status, 200);
  t.equal((await core.post('/recipe/jwt', ofSize(1024 * 1024 + 1))).status, 413);
  t.equal((await core.get('/hello')).status, 200);
});

t.test('a member called __proto__ stays a claim', async (t) => {
  const core = await startCore(t);
  const answer = await core.post(
    '/recipe/jwt',
    JSON.stringify(jwtCall).replace('"sub":"checkout"', '"__proto__":{"polluted":1}'),
  );
  t.equal(answer.status, 200);
  t.same(Object.getOwnPropertyNames(decoded(answer).payload).includes('__proto__'), true);
});
