/** Tokens of every profile against a running proxy: who passes, and that all others get one and the same answer. */
import { writeFileSync } from 'node:fs';
import t from 'tap';
import { comparable } from '../../conformance/refusals.js';
import { keyFor, tokenBy, tokenOfText, type AnyKey } from '../../support/profile-tokens.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import { tempDir } from '../../support/temp-dir.js';
import type { Claims } from '../../support/tokens.js';

const folder = tempDir(t);
const idpKey = keyFor('ES256', 'idp-1');
const rsaKey = keyFor('PS256', 'idp-2');
const edKey = keyFor('EdDSA', 'ed-1');
const clusterKey = keyFor('RS256', 'k8s-1');
const spireKey = keyFor('ES384', 'spire-1');

function keySet(name: string, keys: readonly AnyKey[], members: object = {}): string {
  const path = `${folder}/${name}.json`;
  writeFileSync(path, JSON.stringify({ keys: keys.map(({ jwk }) => ({ ...jwk, ...members })) }));
  return path;
}

const common = { methods: ['GET'], permissions: [] };
const proxy = await startProxyProcess(t, {
  config: {
    issuers: {
      idp: {
        issuer: 'https://idp.example.com',
        profile: 'oauth',
        audience: ['orders', 'https://orders.example.com'],
        algorithms: ['ES256', 'PS256'],
        jwks_file: keySet('idp', [idpKey, rsaKey]),
      },
      keycloak: {
        issuer: 'https://keycloak.example.com/realms/shop',
        profile: 'oauth',
        audience: 'orders',
        algorithms: ['EdDSA'],
        token_typ: ['JWT'],
        jwks_file: keySet('keycloak', [edKey]),
        claims: { subject: 'azp', permissions: 'realm_access.roles', require: { typ: 'Bearer' } },
      },
      cluster: {
        issuer: 'https://kubernetes.default.svc.cluster.local',
        profile: 'kubernetes',
        audience: 'orders',
        jwks_file: keySet('cluster', [clusterKey], { alg: undefined }),
        claims: { require: { 'kubernetes\\.io.node.name': ['n-1', 'n-2'] } },
      },
      spire: {
        profile: 'spiffe',
        trust_domain: 'shop.example',
        audience: 'spiffe://shop.example/orders',
        bundle_file: keySet('bundle', [spireKey], { use: 'jwt-svid', alg: undefined }),
      },
    },
    routes: [
      {
        ...common,
        name: 'all',
        path: '/all',
        subjects: ['checkout', 'shop-web', { prefix: 'shop/' }, { prefix: 'spiffe://shop.example/ns/shop/' }],
      },
      { ...common, name: 'write', path: '/write', subjects: ['checkout', 'shop-web'], permissions: ['orders:write'] },
    ],
  },
});

const nowS = Math.floor(Date.now() / 1_000);
const times = { iat: nowS, exp: nowS + 300 };
const idp = {
  ...times,
  iss: 'https://idp.example.com',
  aud: 'orders',
  sub: 'checkout',
  client_id: 'c-1',
  jti: 'j-1',
  scope: 'orders:read orders:write',
};
const keycloak = {
  ...times,
  iss: 'https://keycloak.example.com/realms/shop',
  aud: ['account', 'orders'],
  sub: 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
  azp: 'shop-web',
  typ: 'Bearer',
  realm_access: { roles: ['orders:write'] },
};
const account = {
  ...times,
  iss: 'https://kubernetes.default.svc.cluster.local',
  aud: ['orders'],
  sub: 'system:serviceaccount:shop:api',
  'kubernetes.io': {
    namespace: 'shop',
    serviceaccount: { name: 'api', uid: 'u' },
    node: { name: 'n-2', uid: 'n' },
  },
};
const workload = {
  exp: nowS + 300,
  aud: ['spiffe://shop.example/orders'],
  sub: 'spiffe://shop.example/ns/shop/sa/api',
};
const at = { typ: 'at+jwt' };

async function send(token: string, path = '/all') {
  proxy.markSecret(token);
  return proxy.request({ path, headers: { Authorization: `Bearer ${token}` } });
}

const passing: readonly { name: string; token: string; path?: string; subject: string; permissions: string }[] = [
  { name: 'ES256', token: tokenBy(idpKey, idp, at), subject: 'checkout', permissions: 'orders:read orders:write' },
  {
    name: 'PS256, and a scope',
    token: tokenBy(rsaKey, { ...idp, aud: ['x', 'https://orders.example.com'] }, { ...at, x5t: 'x' }),
    path: '/write',
    subject: 'checkout',
    permissions: 'orders:read orders:write',
  },
  {
    name: 'EdDSA, and a role',
    token: tokenBy(edKey, keycloak, { typ: 'JWT' }),
    path: '/write',
    subject: 'shop-web',
    permissions: 'orders:write',
  },
  { name: 'a service account', token: tokenBy(clusterKey, account), subject: 'shop/api', permissions: '' },
  { name: 'a workload', token: tokenBy(spireKey, workload, { typ: 'JWT' }), subject: workload.sub, permissions: '' },
];

t.test('whose tokens pass, and what the upstream learns of them', async (t) => {
  for (const { name, token, path = '/all', subject, permissions } of passing) {
    for (const time of ['once', 'again']) {
      const before = proxy.receiver.requests.length;
      t.equal((await send(token, path)).status, 200, `${name}, ${time}`);
      const received = proxy.receiver.requests[before];
      const field = (header: string): string => received?.field(header).join(', ') ?? '';
      t.same(
        [field('x-auth-subject'), field('x-auth-permissions'), field('x-auth-kind'), field('authorization')],
        [subject, permissions, 'service', ''],
        name,
      );
    }
  }
});

const without = (claims: Claims, name: string): Claims => ({ ...claims, [name]: undefined });

const refused: readonly { name: string; token: string }[] = [
  ...['iss', 'aud', 'sub', 'exp', 'iat', 'jti', 'client_id'].map((name) => ({
    name: `without ${name}`,
    token: tokenBy(idpKey, without(idp, name), at),
  })),
  ...['iss', 'aud', 'azp', 'exp', 'typ'].map((name) => ({
    name: `Keycloak without ${name}`,
    token: tokenBy(edKey, without(keycloak, name), { typ: 'JWT' }),
  })),
  ...['iss', 'aud', 'sub', 'exp', 'iat', 'kubernetes.io'].map((name) => ({
    name: `Kubernetes without ${name}`,
    token: tokenBy(clusterKey, without(account, name)),
  })),
  ...['aud', 'sub', 'exp'].map((name) => ({
    name: `SPIFFE without ${name}`,
    token: tokenBy(spireKey, without(workload, name)),
  })),
  { name: 'no typ', token: tokenBy(idpKey, idp) },
  { name: 'an ID token', token: tokenBy(idpKey, { ...idp, at_hash: 'x' }, at) },
  { name: 'for strangers', token: tokenBy(idpKey, { ...idp, aud: ['a', 'b'] }, at) },
  { name: 'jku', token: tokenBy(idpKey, idp, { ...at, jku: 'https://evil.example/keys' }) },
  { name: 'crit', token: tokenBy(idpKey, idp, { ...at, crit: ['exp'] }) },
  { name: 'RS256 with a key for PS256', token: tokenBy({ ...rsaKey, algorithm: 'RS256' }, idp, at) },
  { name: 'HS256', token: tokenBy(idpKey, idp, { ...at, alg: 'HS256' }) },
  { name: 'none', token: tokenBy(idpKey, idp, { ...at, alg: 'none' }) },
  { name: 'another’s key', token: tokenBy({ ...keyFor('ES256', 'x'), keyId: 'idp-1' }, idp, at) },
  { name: 'one provider for another', token: tokenBy(edKey, idp, { typ: 'JWT' }) },
  { name: 'a doubled claim', token: tokenOfText(idpKey, JSON.stringify(idp).replace('{', '{"sub":"x",'), at) },
  {
    name: 'another trust domain',
    token: tokenBy(spireKey, { ...workload, sub: 'spiffe://shop.example.evil/ns/shop/x' }),
  },
  {
    name: 'another namespace in kubernetes.io',
    token: tokenBy(clusterKey, { ...account, sub: 'system:serviceaccount:x:api' }),
  },
  {
    name: 'another node',
    token: tokenBy(clusterKey, { ...account, 'kubernetes.io': { ...account['kubernetes.io'], node: {} } }),
  },
];

t.test('everything that is wrong is answered the same', async (t) => {
  const answers = new Set<string>();
  const before = proxy.receiver.requests.length;
  for (const { name, token } of refused) {
    const response = await send(token);
    t.equal(response.status, 401, name);
    answers.add(comparable(response));
  }
  t.equal(answers.size, 1, 'one answer');
  t.equal(proxy.receiver.requests.length, before, 'none of them reached the upstream');
});

t.test('a beginning ends where a part of the name does', async (t) => {
  const other = tokenBy(spireKey, { ...workload, sub: 'spiffe://shop.example/ns/shop-test/sa/api' });
  t.equal((await send(other)).status, 403);
});

t.test('no token shows anywhere', async (t) => {
  t.same(await proxy.exposures(), []);
});
