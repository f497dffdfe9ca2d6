import { createHash } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import t from 'tap';
import { assertionClaims, thumbprint } from '../../../src/decision/token/assertion.js';
import { nowMs, nowS, principal } from '../samples.js';

const rules = { issuer: 'sallyport', audience: 'orders', ttlS: 30, header: 'X-Auth-Assertion' };

t.test('an assertion says who asks, and for exactly what', (t) => {
  const hash = (text: string): string => createHash('sha256').update(Buffer.from(text, 'latin1')).digest('base64url');
  const asked = { principal: principal(), method: 'GET', target: '/orders?x=%2F' };
  t.same(assertionClaims(asked, rules, nowMs + 999, 'id'), {
    iss: 'sallyport',
    aud: 'orders',
    sub: 'checkout',
    iat: nowS,
    exp: nowS + 30,
    jti: 'id',
    kind: 'service',
    permissions: ['orders:read', 'orders:write'],
    token_issuer: 'https://api.example.com',
    htm: 'GET',
    target_sha256: hash('/orders?x=%2F'),
  });
  t.equal(assertionClaims({ ...asked, principal: principal({ tokenId: 'j' }) }, rules, nowMs, 'id')['token_id'], 'j');
  t.equal(
    assertionClaims({ ...asked, target: '/\xff' }, rules, nowMs, 'id')['target_sha256'],
    hash('/\xff'),
    'bytes, not characters',
  );
  t.end();
});

t.test('RFC 7638: the thumbprint of an EC key', async (t) => {
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    x: 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
    y: '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM',
  };
  t.equal(thumbprint(jwk), await calculateJwkThumbprint(jwk));
});
