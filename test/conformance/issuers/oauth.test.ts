/** docs/issuers.md, OAuth: tokens of RFC 9068 and of providers that say less, held to that page row by row. */
import t from 'tap';
import { oidcPath, startMetadataServer } from '../../support/metadata-server.js';
import { keyFor, type AnyKey } from '../../support/profile-tokens.js';
import { startProxyProcess } from '../../support/proxy-process.js';
import type { Claims } from '../../support/tokens.js';
import { until } from '../../support/until.js';
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
  type Row,
  type Sound,
} from './issuer-suite.js';

const keys = (['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'] as const).map((algorithm) => keyFor(algorithm));
const strict = keyFor('ES256', 'strict-1');
const loose = keyFor('ES256', 'loose-1');
const keySet = (listed: readonly AnyKey[]): object => ({ keys: listed.map(({ jwk }) => jwk) });

const idp = await startMetadataServer(t);
const serve = (name: string, listed: readonly AnyKey[]): string => {
  const issuer = `${idp.origin}/${name}`;
  idp.at(`/${name}${oidcPath}`, { issuer, jwks_uri: `${issuer}/jwks` });
  idp.at(`/${name}/jwks`, keySet(listed));
  return issuer;
};
const issuers = { all: serve('all', keys), loose: serve('loose', [loose]), strict: serve('strict', [strict]) };
const away = `${idp.origin}/away`;

/** Nobody waits for a key that never comes. */
const jwks = { cooldown: '0ms' };
const common = { methods: ['GET'], permissions: [] };
const proxy = await startProxyProcess(t, {
  config: {
    issuers: {
      all: {
        profile: 'oauth',
        issuer: issuers.all,
        audience: ['orders', 'https://orders.example.com'],
        algorithms: keys.map(({ algorithm }) => algorithm),
        jwks,
      },
      loose: {
        profile: 'oauth',
        issuer: issuers.loose,
        audience: 'orders',
        token_typ: ['JWT', 'absent'],
        jwks,
        claims: {
          subject: 'azp',
          permissions: 'realm_access.roles',
          require: { typ: 'Bearer', 'https://shop\\.example/kind': ['machine', 7, true] },
        },
      },
      strict: { profile: 'oauth', issuer: issuers.strict, audience: 'orders', key_ids: { accept: ['strict-*'] }, jwks },
      away: { profile: 'oauth', issuer: away, audience: 'orders', key_ids: { accept: ['away-*'] }, jwks },
    },
    routes: [
      { ...common, name: 'all', path: '/all', subjects: ['checkout', { prefix: 'team/' }] },
      { ...common, name: 'read', path: '/read', subjects: ['checkout'], permissions: ['orders:read'] },
      { ...common, name: 'strict', path: '/strict', subjects: ['checkout'], issuers: ['strict'] },
    ],
  },
});
const suite = suiteOf(proxy);

const nowS = Math.floor(Date.now() / 1000);
const claims = {
  iss: issuers.all,
  aud: 'orders',
  exp: nowS + 300,
  iat: nowS,
  sub: 'checkout',
  client_id: 'shop web',
  jti: 'j-1',
  scope: 'orders:read orders:write',
};
const soundOf = (key: AnyKey, more: Claims = {}): Sound => ({
  key,
  header: { alg: key.algorithm, kid: key.keyId, typ: 'at+jwt' },
  claims: { ...claims, ...more },
});
const [first = strict] = keys;
const sound = soundOf(first);
const who = { subject: 'checkout', issuer: issuers.all, permissions: 'orders:read orders:write', tokenId: 'j-1' };
const looseSound: Sound = {
  key: loose,
  header: { alg: 'ES256', kid: 'loose-1', typ: 'JWT' },
  claims: {
    iss: issuers.loose,
    aud: ['account', 'orders'],
    exp: nowS + 300,
    azp: 'checkout',
    typ: 'Bearer',
    realm_access: { roles: ['orders:read'] },
    'https://shop.example/kind': 7,
  },
};
const looseWho = { subject: 'checkout', issuer: issuers.loose, permissions: 'orders:read' };

t.test('tokens of RFC 9068 pass by each algorithm, and the upstream learns whose they are', async (t) => {
  await suite.passes(
    t,
    keys.map((key) => ({ name: key.algorithm, token: changed(soundOf(key), {}) })),
    who,
  );
  const more: readonly (readonly [Claims, Claims])[] = [
    [{ aud: 'https://orders.example.com' }, {}],
    [{ aud: ['stranger', 'orders'] }, {}],
    [{ aud: [...Array.from({ length: 99 }, () => 'x'), 'orders'] }, {}],
    [{ nbf: nowS, auth_time: 1, acr: '0', groups: ['x'] }, {}],
    [deepClaims(16), {}],
    [{ scope: ['orders:read', 'orders:write'] }, {}],
    [{ scope: ' orders:read  orders:write caf\u00e9 ' }, {}],
    [{ iat: nowS - 100, exp: nowS + 7_000 }, {}],
    [{}, { typ: 'AT+JWT' }],
    [{}, { typ: 'application/at+jwt' }],
    [{}, { x5t: 'x', cty: 'x', extra: { deep: [1] } }],
  ];
  await suite.passes(
    t,
    more.map(([claim, member]) => ({
      name: JSON.stringify({ ...claim, ...member }).slice(0, 60),
      token: changed(sound, claim, member),
    })),
    who,
  );
  const subject = { ...who, subject: 'team/a' };
  await suite.passes(t, [{ name: 'a beginning', token: changed(sound, { sub: 'team/a' }) }], subject);
});

t.test('each claim of RFC 9068 has to be there, once, and of its type', async (t) => {
  await suite.refuses(t, missingRows(sound, ['iss', 'aud', 'exp', 'sub', 'client_id', 'iat', 'jti']));
  const names = Object.keys(claims);
  await suite.refuses(t, typeRows(sound, names, ['aud is a list', 'scope is a list', 'scope is a text']));
  await suite.refuses(t, doubledRows(sound));
  await suite.refuses(t, malformedRows(sound));
  await suite.refuses(t, timeRows(sound, nowS));
});

t.test('what a claim may not say', async (t) => {
  const rows: readonly Claims[] = [
    { iss: `${issuers.all}/` },
    { iss: issuers.all.toUpperCase() },
    { iss: issuers.strict },
    { aud: 'Orders' },
    { aud: 'orders ' },
    { aud: [] },
    { aud: ['stranger'] },
    { aud: ['orders', 5] },
    { aud: ['orders', ['orders']] },
    { aud: [...Array.from({ length: 100 }, () => 'x'), 'orders'] },
    { sub: 'check out' },
    { sub: 'caf\u00e9' },
    { sub: 'x'.repeat(1025) },
    { client_id: 'caf\u00e9' },
    { jti: 'a b' },
    { jti: 'x'.repeat(257) },
    { scope: ['orders:read', 5] },
    { scope: Array.from({ length: 1001 }, () => 'a') },
    ...['cnf', 'at_hash', 'c_hash', 's_hash', 'events'].flatMap((name) => [{ [name]: {} }, { [name]: null }]),
  ];
  await suite.refuses(
    t,
    rows.map((row) => ({ name: JSON.stringify(row).slice(0, 60), token: changed(sound, row) })),
  );
  await suite.refuses(t, sessionRows(sound));
});

t.test('the header says what the key verifies, and brings none along', async (t) => {
  await suite.refuses(t, confusionRows(sound, keys));
  await suite.refuses(t, refusedMemberRows(sound));
  await suite.refuses(
    t,
    [
      'JWT',
      'jwt',
      '',
      'absent',
      'JWS',
      'application/application/at+jwt',
      'at+jwt ',
      5,
      null,
      undefined,
      ['at+jwt'],
    ].map((typ) => ({ name: `typ ${JSON.stringify(typ)}`, token: changed(sound, {}, { typ }) })),
  );
});

const kind = 'https://shop.example/kind';

t.test('a provider that says less: subject, permissions and kind where the config says', async (t) => {
  await suite.passes(t, [{ name: 'as it is', token: changed(looseSound, {}) }], looseWho);
  const passing: readonly Row[] = [
    { name: 'no typ', token: changed(looseSound, {}, { typ: undefined }) },
    { name: 'another kind', token: changed(looseSound, { 'https://shop.example/kind': true }) },
    { name: 'its roles as a text', token: changed(looseSound, { realm_access: { roles: 'orders:read' } }) },
    { name: 'another sub', token: changed(looseSound, { sub: 'f81d4fae' }) },
  ];
  await suite.passes(t, passing, looseWho);
  const none = { ...looseWho, permissions: '' };
  await suite.passes(t, [{ name: 'no roles', token: changed(looseSound, { realm_access: undefined }) }], none);
  const flat = changed(looseSound, { realm_access: undefined, 'realm_access.roles': ['orders:read'] });
  await suite.passes(t, [{ name: 'a name with a dot is no path', token: flat }], none);
  await suite.refuses(t, missingRows(looseSound, ['iss', 'aud', 'exp', 'azp', 'typ', 'https://shop.example/kind']));
  await suite.refuses(t, typeRows(looseSound, ['iss', 'exp', 'azp', 'typ', kind], [`${kind} is true`]));
  await suite.refuses(t, doubledRows(looseSound));
  const rows: readonly Claims[] = [
    { typ: 'bearer' },
    { typ: 'ID' },
    { 'https://shop.example/kind': '7' },
    { 'https://shop.example/kind': 'person' },
    { realm_access: { roles: [5] } },
    { realm_access: { roles: null } },
  ];
  await suite.refuses(
    t,
    rows.map((row) => ({ name: JSON.stringify(row), token: changed(looseSound, row) })),
  );
  await suite.refuses(t, [
    { name: 'typ at+jwt', token: changed(looseSound, {}, { typ: 'at+jwt' }) },
    { name: 'typ absent', token: changed(looseSound, {}, { typ: 'absent' }) },
    {
      name: 'an algorithm that is not its own',
      token: changed({ ...looseSound, key: keyFor('ES384', 'loose-1') }, {}),
    },
  ]);
});

t.test('issuers side by side: keys, claims and routes of one are none of another', async (t) => {
  const own = soundOf(strict, { iss: issuers.strict });
  await suite.passes(t, [{ name: 'its own', token: changed(own, {}) }], { ...who, issuer: issuers.strict }, '/strict');
  await suite.refuses(t, [
    { name: 'claims of another', token: changed(own, { iss: issuers.all }) },
    { name: 'key of another', token: changed(soundOf(first, { iss: issuers.strict }), {}) },
    { name: 'kid of another', token: changed(own, {}, { kid: 'loose-1' }) },
    { name: 'an issuer that nobody knows', token: changed(own, { iss: `${idp.origin}/nobody` }) },
  ]);
  await suite.refuses(t, [{ name: 'on a route for another', token: changed(sound, {}) }], '/strict');
});

t.test('a good token without the right is 403', async (t) => {
  for (const [path, claim] of [
    ['/read', { scope: 'orders:write' }],
    ['/read', { scope: undefined }],
    ['/read', { scope: 'orders:read\torders:write' }],
    ['/all', { sub: 'team' }],
    ['/all', { sub: 'teams/a' }],
    ['/nowhere', {}],
  ] as const) {
    checkRefusal(
      t,
      await suite.send(changed(sound, claim), path),
      refusals.forbidden,
      `${path} ${JSON.stringify(claim)}`,
    );
  }
});

t.test('an issuer whose keys cannot be had is 503, until they can; the others go on', async (t) => {
  const token = changed(soundOf(keyFor('ES256', 'away-1'), { iss: away }), {});
  checkRefusal(t, await suite.send(token), refusals.keysUnavailable, 'no metadata');
  idp.at(`/away${oidcPath}`, { issuer: away, jwks_uri: `${away}/jwks` });
  t.equal((await suite.send(token)).status, 503, 'metadata, and no keys');
  t.equal((await suite.send(changed(sound, {}))).status, 200, 'another issuer');
  idp.at('/away/jwks', keySet([keyFor('ES256', 'away-1')]));
  await until('the keys are there', async () => (await suite.send(token)).status === 200);
});

t.test('every 401 of this profile is the same answer', (t) => {
  t.equal(suite.answers.size, 1);
  t.end();
});

checkSilence(t, proxy);
