/** docs/issuers.md, SPIFFE: JWT-SVIDs of a trust domain, held to that page row by row. */
import t from 'tap';
import { startMetadataServer } from '../../support/metadata-server.js';
import { keyFor } from '../../support/profile-tokens.js';
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
  type Sound,
} from './issuer-suite.js';

const keys = [keyFor('RS256', 'spire-1'), keyFor('ES256', 'spire-2'), keyFor('ES384', 'spire-3')];
/** In the bundle, and not for tokens. */
const unusable = [
  { key: keyFor('ES256', 'for-certificates'), use: 'x509-svid' },
  { key: keyFor('ES256', 'for-signatures'), use: 'sig' },
  { key: keyFor('ES256', 'for-nothing'), use: undefined },
];
const spire = await startMetadataServer(t);
const bundle = {
  spiffe_sequence: 1,
  spiffe_refresh_hint: 600,
  keys: [
    ...keys.map(({ jwk }) => ({ ...jwk, use: 'jwt-svid', alg: undefined })),
    ...unusable.map(({ key, use }) => ({ ...key.jwk, use })),
  ],
};
spire.at('/bundle', bundle);

const audience = 'spiffe://shop.example/orders';
/** Nobody waits for a key that never comes. */
const jwks = { cooldown: '0ms' };
const common = { methods: ['GET'], permissions: [] };
const proxy = await startProxyProcess(t, {
  config: {
    issuers: {
      spire: { profile: 'spiffe', trust_domain: 'shop.example', audience, bundle_url: `${spire.origin}/bundle`, jwks },
      named: {
        profile: 'spiffe',
        trust_domain: 'named.example',
        issuer: 'https://spire.named.example',
        audience,
        bundle_url: `${spire.origin}/bundle`,
        jwks,
        claims: { permissions: 'scope' },
      },
      away: {
        profile: 'spiffe',
        trust_domain: 'away.example',
        audience,
        bundle_url: `${spire.origin}/away`,
        jwks,
      },
    },
    routes: [
      {
        ...common,
        name: 'all',
        path: '/all',
        subjects: [
          'spiffe://shop.example/billing',
          { prefix: 'spiffe://shop.example/ns/shop/' },
          { prefix: 'spiffe://named.example/ns/' },
          { prefix: 'spiffe://away.example/ns/' },
        ],
      },
    ],
  },
});
const suite = suiteOf(proxy);

const nowS = Math.floor(Date.now() / 1000);
const [first = keyFor('RS256')] = keys;
const id = 'spiffe://shop.example/ns/shop/sa/api';
const sound: Sound = {
  key: first,
  header: { alg: 'RS256', kid: 'spire-1', typ: 'JWT' },
  claims: { sub: id, aud: [audience], exp: nowS + 300 },
};
const who = { subject: id, issuer: 'spiffe://shop.example' };

t.test('a JWT-SVID passes by each algorithm, and the upstream learns the workload', async (t) => {
  await suite.passes(
    t,
    keys.map((key) => ({
      name: key.algorithm,
      token: changed({ ...sound, key }, {}, { alg: key.algorithm, kid: key.keyId }),
    })),
    who,
  );
  const rows: readonly (readonly [Claims, Claims])[] = [
    [{}, { typ: 'JOSE' }],
    [{}, { typ: undefined }],
    [{ aud: audience }, {}],
    [{ aud: ['stranger', audience] }, {}],
    [{ iat: nowS, nbf: nowS }, {}],
    // The standard leaves iss to others.
    [{ iss: 'https://anybody.example' }, {}],
    [{ iss: 5 }, {}],
    [{ scope: 'orders:read' }, {}],
    [deepClaims(16), {}],
  ];
  await suite.passes(
    t,
    rows.map(([claim, member]) => ({
      name: JSON.stringify({ ...claim, ...member }),
      token: changed(sound, claim, member),
    })),
    who,
  );
  await suite.passes(
    t,
    [{ name: 'to the letter', token: changed(sound, { sub: 'spiffe://shop.example/billing', jti: 'j' }) }],
    {
      ...who,
      subject: 'spiffe://shop.example/billing',
      tokenId: 'j',
    },
  );
});

t.test('where the config names an issuer, iss is exact; permissions come from the claim that it names', async (t) => {
  const claim = { sub: 'spiffe://named.example/ns/a', iss: 'https://spire.named.example', scope: 'orders:read' };
  await suite.passes(t, [{ name: 'its own', token: changed(sound, claim) }], {
    subject: claim.sub,
    issuer: claim.iss,
    permissions: 'orders:read',
  });
  await suite.refuses(t, [
    { name: 'no iss', token: changed(sound, { ...claim, iss: undefined }) },
    { name: 'another iss', token: changed(sound, { ...claim, iss: 'https://spire.named.example/' }) },
    { name: 'no text of permissions', token: changed(sound, { ...claim, scope: 5 }) },
  ]);
});

t.test('each claim of a JWT-SVID has to be there, once, and of its type', async (t) => {
  await suite.refuses(t, missingRows(sound, ['sub', 'aud', 'exp']));
  const single = { ...sound, claims: { ...sound.claims, aud: audience } };
  await suite.refuses(t, typeRows(single, ['sub', 'aud', 'exp'], ['aud is a list']));
  await suite.refuses(t, doubledRows(sound));
  await suite.refuses(t, malformedRows(sound));
  await suite.refuses(t, timeRows(sound, nowS));
  await suite.refuses(t, sessionRows(sound));
});

t.test('sub is the SPIFFE ID of a workload in the trust domain', async (t) => {
  const ids = [
    'spiffe://shop.example',
    'spiffe://shop.example/',
    'spiffe://shop.example/ns/shop/',
    'spiffe://shop.example//ns/shop/x',
    'spiffe://shop.example/ns/shop/../x',
    'spiffe://shop.example/ns/shop/.',
    'spiffe://shop.example/ns/shop/%61',
    'spiffe://shop.example/ns/shop/x?y',
    'spiffe://shop.example/ns/shop/x#y',
    'spiffe://shop.example/ns/shop/x y',
    'spiffe://shop.example/ns/shop/\u00e9',
    'spiffe://shop.example:443/ns/shop/x',
    'spiffe://u@shop.example/ns/shop/x',
    'spiffe://SHOP.example/ns/shop/x',
    'spiffe://shop.example.evil/ns/shop/x',
    'spiffe://evil.shop.example/ns/shop/x',
    'spiffe://other.example/ns/shop/x',
    'SPIFFE://shop.example/ns/shop/x',
    'https://shop.example/ns/shop/x',
    ' spiffe://shop.example/ns/shop/x',
    `spiffe://shop.example/ns/shop/${'x'.repeat(1024)}`,
  ];
  await suite.refuses(
    t,
    ids.map((sub) => ({ name: sub.slice(0, 60), token: changed(sound, { sub }) })),
  );
  const audiences = [['stranger'], [], [audience, 5], 'spiffe://shop.example/orders/', [[audience]]];
  await suite.refuses(
    t,
    audiences.map((aud) => ({ name: JSON.stringify(aud), token: changed(sound, { aud }) })),
  );
});

t.test('the header of a JWT-SVID has alg, kid and typ, and its key is one for tokens', async (t) => {
  await suite.refuses(t, confusionRows(sound, keys));
  await suite.refuses(t, refusedMemberRows(sound));
  const members: readonly Claims[] = [
    { x5t: 'x' },
    { cty: 'JWT' },
    { extra: 1 },
    { typ: 'at+jwt' },
    { typ: 'absent' },
    { typ: '' },
    { typ: 5 },
  ];
  await suite.refuses(
    t,
    members.map((member) => ({ name: JSON.stringify(member), token: changed(sound, {}, member) })),
  );
  await suite.refuses(
    t,
    unusable.map(({ key, use }) => ({
      name: `a key for ${String(use)}`,
      token: changed({ ...sound, key }, {}, { alg: key.algorithm, kid: key.keyId }),
    })),
  );
});

t.test(
  'a workload without the right is 403, and a trust domain without its bundle 503, until it is there',
  async (t) => {
    checkRefusal(
      t,
      await suite.send(changed(sound, { sub: 'spiffe://shop.example/ns/shopping/x' })),
      refusals.forbidden,
      'a name',
    );
    // Nobody else’s key set has this key id, and the bundle that might is not to be had.
    const key = keyFor('ES256', 'away-1');
    const token = changed({ ...sound, key }, { sub: 'spiffe://away.example/ns/a' }, { alg: 'ES256', kid: 'away-1' });
    checkRefusal(t, await suite.send(token), refusals.keysUnavailable, 'away');
    t.equal((await suite.send(changed(sound, {}))).status, 200, 'another trust domain');
    spire.at('/away', { keys: [{ ...key.jwk, use: 'jwt-svid' }] });
    await until('the bundle is there', async () => (await suite.send(token)).status === 200);
  },
);

t.test('every 401 of a JWT-SVID is the same answer', (t) => {
  t.equal(suite.answers.size, 1);
  t.end();
});

checkSilence(t, proxy);
