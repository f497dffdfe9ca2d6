/** docs/issuers.md, Kubernetes: projected tokens of service accounts, held to that page row by row. */
import t from 'tap';
import { startMetadataServer } from '../../support/metadata-server.js';
import { keyFor } from '../../support/profile-tokens.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import type { Claims } from '../../support/tokens.js';
import { checkRefusal, refusals } from '../refusals.js';
import { checkSilence } from '../silence.js';
import {
  changed,
  confusionRows,
  deepClaims,
  doubledRows,
  malformedRows,
  missingRows,
  refusedMemberRows,
  sessionRows,
  suiteOf,
  timeRows,
  typeRows,
  type Sound,
} from './issuer-suite.js';

const issuer = 'https://kubernetes.default.svc.cluster.local';
const keys = [keyFor('RS256', 'k8s-1'), keyFor('ES256', 'k8s-2')];
const cluster = await startMetadataServer(t);
cluster.at('/metadata', { issuer, jwks_uri: `${cluster.origin}/openid/v1/jwks` });
// The API server lists no alg of its keys now and then.
cluster.at('/openid/v1/jwks', { keys: keys.map(({ jwk }, index) => (index === 0 ? { ...jwk, alg: undefined } : jwk)) });
const elsewhere = await startMetadataServer(t);

const common = { methods: ['GET'], permissions: [] };
const proxy = await startProxyProcess(t, {
  config: {
    issuers: {
      cluster: {
        profile: 'kubernetes',
        issuer,
        audience: ['orders', 'https://orders.example.com'],
        discovery_url: `${cluster.origin}/metadata`,
        // Nobody waits for a key that never comes.
        jwks: { cooldown: '0ms' },
        jwks_url_because: 'a test',
        claims: { require: { 'kubernetes\\.io.node.name': ['n-1', 'n-2'] } },
      },
      away: {
        profile: 'kubernetes',
        issuer: 'https://away.example',
        audience: 'orders',
        jwks_url: `${elsewhere.origin}/jwks`,
        key_ids: { accept: ['away-*'] },
        jwks: { cooldown: '0ms' },
        jwks_url_because: 'a test',
      },
    },
    routes: [
      { ...common, name: 'all', path: '/all', subjects: ['shop/api', { prefix: 'team/' }] },
      { ...common, name: 'read', path: '/read', subjects: ['shop/api'], permissions: ['orders:read'] },
    ],
  },
});
const suite = suiteOf(proxy);

const nowS = Math.floor(Date.now() / 1000);
const bound = {
  namespace: 'shop',
  serviceaccount: { name: 'api', uid: 'u-1' },
  pod: { name: 'api-7', uid: 'u-2' },
  node: { name: 'n-1', uid: 'u-3' },
};
const [first = keyFor('RS256')] = keys;
const sound: Sound = {
  key: first,
  header: { alg: 'RS256', kid: 'k8s-1' },
  claims: {
    iss: issuer,
    aud: ['orders'],
    sub: 'system:serviceaccount:shop:api',
    exp: nowS + 300,
    iat: nowS,
    'kubernetes.io': bound,
  },
};
const who = { subject: 'shop/api', issuer };
/** A token of another account, by both of its names. */
const ofAccount = (namespace: string, name: string): string =>
  changed(sound, {
    sub: `system:serviceaccount:${namespace}:${name}`,
    'kubernetes.io': { ...bound, namespace, serviceaccount: { name } },
  });

t.test('a projected token passes, and the upstream learns its account', async (t) => {
  const rows: readonly (readonly [Claims, Claims])[] = [
    [{}, {}],
    [{}, { typ: 'JWT' }],
    [{ aud: 'orders' }, {}],
    [{ aud: ['https://kubernetes.default.svc', 'https://orders.example.com'] }, {}],
    [{ nbf: nowS }, {}],
    [{ 'kubernetes.io': { ...bound, node: { name: 'n-2' }, warnafter: 1 } }, {}],
    [deepClaims(16), {}],
    // Permissions are none of this profile's, unless the config names a claim.
    [{ scope: 'orders:read', permissions: ['orders:read'] }, {}],
  ];
  await suite.passes(
    t,
    rows.map(([claim, member]) => ({
      name: JSON.stringify({ ...claim, ...member }),
      token: changed(sound, claim, member),
    })),
    who,
  );
  const second = { ...sound, key: keys[1] ?? first, header: { alg: 'ES256', kid: 'k8s-2' } };
  await suite.passes(t, [{ name: 'ES256', token: changed(second, { jti: 'j-1' }) }], { ...who, tokenId: 'j-1' });
  await suite.passes(t, [{ name: 'a beginning', token: ofAccount('team', 'web.v2') }], {
    ...who,
    subject: 'team/web.v2',
  });
});

t.test('each claim of a service account has to be there, once, and of its type', async (t) => {
  const names = ['iss', 'aud', 'sub', 'exp', 'iat', 'kubernetes.io'];
  await suite.refuses(t, missingRows(sound, names));
  await suite.refuses(t, typeRows({ ...sound, claims: { ...sound.claims, aud: 'orders' } }, names, ['aud is a list']));
  await suite.refuses(t, doubledRows(sound));
  await suite.refuses(t, malformedRows(sound));
  await suite.refuses(t, timeRows(sound, nowS));
  await suite.refuses(t, sessionRows(sound));
});

t.test('subject and kubernetes.io say the same, in names of Kubernetes, and on a node that is asked for', async (t) => {
  const rows: readonly Claims[] = [
    { sub: 'shop:api' },
    { sub: 'system:serviceaccount:shop' },
    { sub: 'system:serviceaccount:shop:api:x' },
    { sub: 'system:serviceaccount:other:api' },
    { sub: 'system:serviceaccount:shop:other' },
    { sub: 'system:serviceaccount:shop/api:x' },
    { sub: 'system:node:n-1' },
    { 'kubernetes.io': { ...bound, namespace: 'other' } },
    { 'kubernetes.io': { ...bound, namespace: undefined } },
    { 'kubernetes.io': { ...bound, namespace: ['shop'] } },
    { 'kubernetes.io': { ...bound, serviceaccount: { name: 'other' } } },
    { 'kubernetes.io': { ...bound, serviceaccount: 'api' } },
    { 'kubernetes.io': { ...bound, serviceaccount: undefined } },
    { 'kubernetes.io': { ...bound, node: { name: 'n-3' } } },
    { 'kubernetes.io': { ...bound, node: { name: ['n-1'] } } },
    { 'kubernetes.io': { ...bound, node: undefined } },
    { 'kubernetes.io': undefined, 'kubernetes.io.node.name': 'n-1' },
    { iss: 'https://kubernetes.default.svc' },
    { aud: ['stranger'] },
    { aud: ['orders', 5] },
    { aud: [] },
    { jti: 'a b' },
  ];
  await suite.refuses(
    t,
    rows.map((row) => ({ name: JSON.stringify(row).slice(0, 80), token: changed(sound, row) })),
  );
  const names = ['a..b', '-a', 'a-', '.a', 'A', 'a_b', 'a b', ''];
  await suite.refuses(
    t,
    [
      ...names.map((name) => ['team', name]),
      ['te.am', 'a'],
      ['-team', 'a'],
      ['n'.repeat(64), 'a'],
      ['team/x', 'a'],
    ].map(([namespace = '', name = '']) => ({ name: `${namespace}:${name}`, token: ofAccount(namespace, name) })),
  );
});

t.test('the header of a service account’s token has alg, kid and typ, and no other member', async (t) => {
  await suite.refuses(t, confusionRows(sound, keys));
  await suite.refuses(t, refusedMemberRows(sound));
  const members: readonly Claims[] = [
    { x5t: 'x' },
    { cty: 'JWT' },
    { extra: 1 },
    { typ: 'at+jwt' },
    { typ: 'absent' },
    { typ: 'JOSE' },
    { typ: 5 },
  ];
  await suite.refuses(
    t,
    members.map((member) => ({ name: JSON.stringify(member), token: changed(sound, {}, member) })),
  );
});

t.test('a service account without the right is 403, and a cluster without keys 503', async (t) => {
  checkRefusal(
    t,
    await suite.send(changed(sound, { scope: 'orders:read' }), '/read'),
    refusals.forbidden,
    'no permission',
  );
  checkRefusal(t, await suite.send(ofAccount('teams', 'a')), refusals.forbidden, 'another beginning');
  const token = changed(
    { ...sound, key: keyFor('RS256', 'away-1') },
    { iss: 'https://away.example', aud: 'orders' },
    { kid: 'away-1' },
  );
  checkRefusal(t, await suite.send(token), refusals.keysUnavailable, 'away');
});

t.test('every 401 of a service account is the same answer', (t) => {
  t.equal(suite.answers.size, 1);
  t.end();
});

checkSilence(t, proxy);
