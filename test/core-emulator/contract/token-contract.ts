import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import type { Test } from 'tap';
import { decoded, jwtCall } from '../core-client.js';
import { statusOf, type CoreUnderTest } from './core-under-test.js';

/** docs/specification.md 4.2 and 4.3: tokens are minted, and their keys published. */
export function tokenContract(t: Test, { core }: CoreUnderTest): void {
  t.test('a token with a dynamic key verifies with the key set', async (t) => {
    const answer = await core.post('/recipe/jwt', jwtCall, { rid: 'jwt' });
    t.equal(statusOf(answer), 'OK');
    t.same(Object.keys(decoded(answer).header).sort(), ['alg', 'kid', 'typ']);
    t.match(decoded(answer).header, { alg: 'RS256', typ: 'JWT', kid: /^d-\d{13}$/ });
    t.match(decoded(answer).payload, { ...jwtCall.payload, iss: jwtCall.jwksDomain, iat: Number, exp: Number });
    t.equal(Number(decoded(answer).payload['exp']) - Number(decoded(answer).payload['iat']), jwtCall.validity);
    const keys = createLocalJWKSet((await core.get('/.well-known/jwks.json')).json() as unknown as JSONWebKeySet);
    await t.resolves(jwtVerify(String(answer.json()['jwt']), keys));
  });

  t.test('below CDI 2.21 the static key signs, whatever is asked for', async (t) => {
    t.match(decoded(await core.post('/recipe/jwt', jwtCall, { 'cdi-version': '2.16' })).header['kid'], /^(?!d-)/);
    t.match(decoded(await core.post('/recipe/jwt', jwtCall, { 'cdi-version': '2.21' })).header['kid'], /^d-/);
  });

  t.test('a dynamic and a static key are published, in these members', async (t) => {
    const { keys } = (await core.get('/.well-known/jwks.json')).json() as { keys: readonly Record<string, string>[] };
    t.ok(keys.some((key) => key['kid']?.startsWith('d-')));
    t.ok(keys.some((key) => key['kid']?.startsWith('d-') === false));
    for (const key of keys) t.match(key, { kty: 'RSA', use: 'sig', alg: 'RS256', kid: String, n: String, e: String });
  });

  t.test('versions, a greeting, unknown paths and methods', async (t) => {
    const { versions } = (await core.get('/apiversion')).json() as { versions: readonly string[] };
    t.ok(versions.includes('2.16'));
    t.ok(versions.includes('2.21'));
    t.equal((await core.get('/hello')).status, 200);
    t.equal((await core.get('/nothing-like-this')).status, 404);
    t.equal(statusOf(await core.get('/recipe/jwt')), '405 Method not supported');
    t.equal(
      statusOf(await core.get('/recipe/jwt/jwks', { 'cdi-version': '1.0' })),
      '400 cdi-version 1.0 not supported',
    );
    t.equal(statusOf(await core.post('/recipe/jwt', '{')), '400 Invalid Json Input');
    t.equal(
      statusOf(await core.post('/recipe/jwt', { ...jwtCall, algorithm: 'HS256' })),
      'UNSUPPORTED_ALGORITHM_ERROR',
    );
  });
}
