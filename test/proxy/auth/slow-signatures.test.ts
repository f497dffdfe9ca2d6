/** Keys that are slow to verify with, against a running proxy: what wrong signatures cost everybody else. */
import { generateKeyPairSync } from 'node:crypto';
import t from 'tap';
import { startJwksServer } from '../../support/jwks-server.js';
import { keyFor, signatureBy, tokenBy, type AnyKey } from '../../support/profile-tokens.js';
import { startProxyProcess, type ProxyProcess } from '../../support/proxy-process.js';
import { base64url } from '../../support/tokens.js';

const fast = keyFor('ES256', 'fast-1');
const slow = keyFor('ES512', 'slow-1');
const pair = generateKeyPairSync('rsa', { modulusLength: 8192 });
const large: AnyKey = {
  keyId: 'large-1',
  algorithm: 'RS256',
  ...pair,
  jwk: { ...pair.publicKey.export({ format: 'jwk' }), kid: 'large-1', alg: 'RS256', use: 'sig' },
};

const jwks = await startJwksServer(t, { keys: [fast, slow, large] });
const proxy: ProxyProcess = await startProxyProcess(t, {
  jwks,
  config: {
    issuers: {
      idp: {
        issuer: 'https://idp.example.com',
        profile: 'oauth',
        audience: 'orders',
        algorithms: ['ES256', 'ES512', 'RS256'],
        jwks_url: jwks.url,
      },
    },
    routes: [{ name: 'all', methods: ['GET'], path: '/all', subjects: ['checkout'], permissions: [] }],
  },
});

const nowS = Math.floor(Date.now() / 1_000);
const claims = {
  iss: 'https://idp.example.com',
  aud: 'orders',
  sub: 'checkout',
  client_id: 'c-1',
  iat: nowS,
  exp: nowS + 600,
};
const tokenOf = (key: AnyKey, jti: string): string => tokenBy(key, { ...claims, jti }, { typ: 'at+jwt' });

/** One whose signature is of the right form, and of something else. */
function forged(key: AnyKey, jti: string): string {
  const input = [
    { alg: key.algorithm, kid: key.keyId, typ: 'at+jwt' },
    { ...claims, jti },
  ]
    .map((part) => base64url(JSON.stringify(part)))
    .join('.');
  return `${input}.${signatures.get(key)?.toString('base64url') ?? ''}`;
}

const signatures = new Map(
  [slow, large].map((key) => [key, signatureBy(key.algorithm, key.privateKey, 'something else')]),
);

const send = async (token: string): Promise<number> =>
  (await proxy.request({ path: '/all', headers: { Authorization: `Bearer ${token}` } })).status;

t.test('good tokens of slow keys pass, wrong ones are 401', async (t) => {
  for (const key of [slow, large]) {
    t.equal(await send(tokenOf(key, 'good')), 200, key.keyId);
    t.equal(await send(tokenOf(key, 'good')), 200, 'and once more');
    t.equal(await send(forged(key, 'bad')), 401);
    t.equal(await send(tokenOf({ ...key, algorithm: 'ES256' }, 'x').replace(/\.[^.]*$/, '.AAAA')), 401);
  }
});

for (const key of [slow, large]) {
  t.test(`a flood of wrong signatures for ${key.keyId} does not go before a token that is remembered`, async (t) => {
    const token = tokenOf(fast, 'remembered');
    t.equal(await send(token), 200);
    const order: string[] = [];
    const flood = Array.from({ length: 200 }, async (_, index) => {
      const status = await send(forged(key, `bad-${String(index)}`));
      order.push(String(status));
    });
    // The last to ask.
    const honest = send(token).then((status) => order.push(`honest ${String(status)}`));
    await Promise.all([...flood, honest]);
    const place = order.indexOf('honest 200');
    t.ok(place >= 0 && place < 150, `it was answered after ${String(place)} of 200`);
    t.same([...new Set(order.filter((status) => !status.startsWith('honest')))].sort(), ['401']);
  });
}

t.test('what waits is bounded, and the rest is 503 with Retry-After', async (t) => {
  const answers = await Promise.all(
    Array.from({ length: 600 }, (_, index) =>
      proxy.request({ path: '/all', headers: { Authorization: `Bearer ${forged(slow, `many-${String(index)}`)}` } }),
    ),
  );
  const statuses = answers.map(({ status }) => status);
  t.same([...new Set(statuses)].sort(), [401, 503]);
  const refused = answers.find(({ status }) => status === 503);
  t.match(refused?.text, /urn:sallyport:overloaded/);
  t.ok(statuses.filter((status) => status === 401).length >= 256, 'those that waited were judged');
  t.equal(await send(tokenOf(slow, 'after')), 200);
});
