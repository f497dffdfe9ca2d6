import t from 'tap';
import { startCoreEmulator } from '../../src/core-emulator/server.js';
import { connectRaw } from '../support/raw-client.js';
import { jwtCall, publishedKeyIds, startCore } from './core-client.js';

const apiKeys = ['first-key-of-twenty-characters', 'other-key-of-twenty-characters'];

t.test('what is served to whom', async (t) => {
  const core = await startCore(t, { apiKeys });
  const key = { 'api-key': 'other-key-of-twenty-characters' };
  const cases = [
    { name: 'root, no key', path: '/', headers: {}, status: 200 },
    { name: 'hello, no key', path: '/hello', headers: {}, status: 200 },
    { name: 'well-known key set, no key', path: '/.well-known/jwks.json', headers: {}, status: 200 },
    { name: 'key set of the API domain, no key', path: '/auth/jwt/jwks.json', headers: {}, status: 200 },
    { name: 'a query does not matter', path: '/hello?a=b', headers: {}, status: 200 },
    { name: 'older key set, no key', path: '/recipe/jwt/jwks', headers: {}, status: 401 },
    { name: 'older key set, a wrong key', path: '/recipe/jwt/jwks', headers: { 'api-key': 'wrong' }, status: 401 },
    { name: 'older key set, the second key', path: '/recipe/jwt/jwks', headers: key, status: 200 },
    { name: 'versions, no key', path: '/apiversion', headers: {}, status: 401 },
    { name: 'versions, a key', path: '/apiversion?apiDomain=https%3A%2F%2Fapi.example.com', headers: key, status: 200 },
    { name: 'unknown, no key', path: '/nothing', headers: {}, status: 404 },
    { name: 'unknown, a key', path: '/nothing', headers: key, status: 404 },
    {
      name: 'versions are told to every version',
      path: '/apiversion',
      headers: { ...key, 'cdi-version': '1.0' },
      status: 200,
    },
    { name: 'a slash at the end', path: '/recipe/jwt/jwks/', headers: key, status: 200 },
    { name: 'the one tenant', path: '/public/recipe/jwt/jwks', headers: key, status: 200 },
    { name: 'the one tenant of the one app', path: '/appid-public/public/recipe/jwt/jwks', headers: key, status: 200 },
    {
      name: 'tenants came with 3.0',
      path: '/public/recipe/jwt/jwks',
      headers: { ...key, 'cdi-version': '2.21' },
      status: 404,
    },
    { name: 'another tenant', path: '/other/recipe/jwt/jwks', headers: key, status: 404 },
    { name: 'minting is POST', path: '/recipe/jwt', headers: key, status: 405 },
    { name: 'rotating is POST', path: '/emulator/rotate', headers: key, status: 405 },
    { name: 'the oldest version', path: '/recipe/jwt/jwks', headers: { ...key, 'cdi-version': '2.16' }, status: 200 },
    { name: 'an older version', path: '/recipe/jwt/jwks', headers: { ...key, 'cdi-version': '2.15' }, status: 400 },
    { name: 'a newer version', path: '/recipe/jwt/jwks', headers: { ...key, 'cdi-version': '5.5' }, status: 400 },
    { name: 'no version', path: '/recipe/jwt/jwks', headers: { ...key, 'cdi-version': '<b>' }, status: 400 },
  ];
  for (const { name, path, headers, status } of cases) {
    t.equal((await core.get(path, headers as Record<string, string>)).status, status, name);
  }
  t.equal((await core.post('/recipe/jwt', JSON.stringify(jwtCall))).status, 401, 'minting needs a key');
  t.equal((await core.post('/emulator/rotate', '')).status, 401, 'rotating needs a key');
});

t.test('texts of refusals', async (t) => {
  const guarded = await startCore(t, { apiKeys });
  t.equal((await guarded.get('/apiversion')).body, 'Invalid API key');
  const core = await startCore(t);
  t.equal((await core.get('/nothing')).body, 'Not found');
  t.equal((await core.get('/recipe/jwt')).body, 'Method not supported');
  t.equal((await core.get('/recipe/jwt/jwks', { 'cdi-version': '1.2' })).body, 'cdi-version 1.2 not supported');
  t.equal((await core.get('/recipe/jwt/jwks', { 'cdi-version': '<b>' })).body, 'cdi-version not supported');
  t.equal((await core.get('/hello')).body, 'Hello');
});

t.test('versions from 2.16 to 5.4, which SDK 24 asks for', async (t) => {
  const core = await startCore(t);
  const versions = (await core.get('/apiversion')).json()['versions'] as readonly string[];
  t.equal(versions[0], '2.16');
  t.equal(versions.at(-1), '5.4');
  t.ok(versions.includes('2.21'));
});

t.test('the key set shows a dynamic and a static key, with exactly these members', async (t) => {
  const core = await startCore(t);
  const answer = await core.get('/.well-known/jwks.json');
  const keys = answer.json()['keys'] as readonly Record<string, string>[];
  t.same(
    keys.map((key) => Object.keys(key)),
    [
      ['kty', 'kid', 'n', 'e', 'alg', 'use'],
      ['kty', 'kid', 'n', 'e', 'alg', 'use'],
    ],
  );
  t.match(
    keys.map((key) => key['kid']),
    [/^d-/, /^s-/],
  );
  for (const key of keys) {
    t.match(key, { kty: 'RSA', alg: 'RS256', use: 'sig', e: 'AQAB' });
    t.equal(Buffer.from(key['n'] ?? '', 'base64url').length * 8, 2048, 'modulus');
  }
  t.same(
    await publishedKeyIds(core, '/auth/jwt/jwks.json'),
    keys.map((key) => key['kid']),
  );
  t.same(
    await publishedKeyIds(core, '/recipe/jwt/jwks'),
    keys.map((key) => key['kid']),
  );
});

t.test('cache headers run to the next key, which is published up to a minute before it signs', async (t) => {
  let nowMs = 1_700_000_000_000;
  const core = await startCore(t, { now: () => nowMs, rotateEveryMs: 600_000 });
  const age = async (path: string): Promise<string | null> => (await core.get(path)).headers.get('cache-control');
  t.equal(await age('/.well-known/jwks.json'), 'max-age=540, must-revalidate');
  nowMs += 539_999;
  t.equal(await age('/auth/jwt/jwks.json'), 'max-age=1, must-revalidate');
  nowMs += 1;
  t.equal(await age('/auth/jwt/jwks.json'), 'max-age=600, must-revalidate');
  t.equal(await age('/recipe/jwt/jwks'), null, 'the older end point sets none');
  t.equal((await core.get('/recipe/jwt/jwks')).json()['status'], 'OK');
});

t.test('a caller that breaks off in the middle of a call harms nobody', async (t) => {
  const core = await startCore(t);
  const caller = await connectRaw(Number(new URL(core.url).port));
  caller.write('POST /recipe/jwt HTTP/1.1\r\nHost: core\r\nContent-Length: 100\r\n\r\n{');
  caller.end();
  await caller.closed;
  t.equal((await core.get('/hello')).status, 200);
});

t.test('a port in use rejects with the error of the system', async (t) => {
  const core = await startCore(t);
  const port = Number(new URL(core.url).port);
  await t.rejects(startCoreEmulator({ host: '127.0.0.1', port, rotateEveryMs: 1000, apiKeys: [] }), {
    code: 'EADDRINUSE',
  });
});
