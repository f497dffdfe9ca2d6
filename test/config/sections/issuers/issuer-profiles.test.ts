import t from 'tap';
import { errorsOf, inspect, problemsOf } from '../../inspection.js';
import { type Entries, issuer, issuerText, usual } from './issuer-of-profile.js';

t.test('the least that each profile needs has no problems', (t) => {
  for (const profile of Object.keys(usual)) t.same(problemsOf(issuerText(profile)), [], profile);
  t.end();
});

t.test('defaults of each profile', (t) => {
  t.match(issuer('oauth').rules, {
    profile: 'oauth',
    issuer: 'https://idp.example.com/t',
    expectedIssuer: 'https://idp.example.com/t',
    audience: 'orders',
    algorithms: new Set(['RS256', 'ES256']),
    headerTypes: new Set(['at+jwt']),
    claims: { subject: ['sub'], permissions: ['scope'], require: [] },
    trustDomain: null,
    keyIds: { accept: ['*'], reject: [] },
  });
  t.match(issuer('kubernetes').rules, {
    algorithms: new Set(['RS256', 'ES256']),
    headerTypes: new Set(['jwt', 'absent']),
    claims: { permissions: null },
  });
  t.match(issuer('spiffe').rules, {
    issuer: 'spiffe://shop.example',
    expectedIssuer: null,
    trustDomain: 'shop.example',
    algorithms: new Set(['RS256', 'ES256', 'ES384']),
    headerTypes: new Set(['jwt', 'jose', 'absent']),
    claims: { permissions: null },
  });
  t.match(issuer('spiffe').keys, { rules: { use: 'jwt-svid' }, source: { kind: 'file', path: '/bundle.json' } });
  t.equal(issuer('spiffe', { issuer: '"https://spire"' }).rules.issuer, 'https://spire');
  t.equal(issuer('spiffe', { issuer: '"https://spire"' }).rules.expectedIssuer, 'https://spire');
  t.end();
});

t.test('what is written counts instead', (t) => {
  const { rules, keys } = issuer('oauth', {
    audience: '[orders, "https://api.example.com"]',
    algorithms: '[EdDSA, PS256]',
    token_typ: '[JWT, absent, "application/AT+jwt"]',
    key_ids: '{ accept: ["a-*"], reject: [a-1] }',
    claims:
      '{ subject: client_id, permissions: realm_access.roles, require: { tenant: acme, "a\\\\.b.c": [1, true], "x\\\\\\\\": y } }',
  });
  t.match(rules, {
    audience: 'orders',
    audiences: new Set(['orders', 'https://api.example.com']),
    algorithms: new Set(['EdDSA', 'PS256']),
    headerTypes: new Set(['jwt', 'absent', 'at+jwt']),
    keyIds: { accept: ['a-*'], reject: ['a-1'] },
    claims: {
      subject: ['client_id'],
      permissions: ['realm_access', 'roles'],
      require: [
        { path: ['tenant'], values: ['acme'] },
        { path: ['a.b', 'c'], values: [1, true] },
        { path: ['x\\'], values: ['y'] },
      ],
    },
  });
  t.same(keys.rules, { algorithms: new Set(['EdDSA', 'PS256']), use: 'sig' });
  t.end();
});

const own = 'https://idp.example.com';

const places: readonly { name: string; profile: string; changes: Entries; expected: object }[] = [
  {
    name: 'discovery below the issuer',
    profile: 'oauth',
    changes: {},
    expected: {
      caFile: null,
      tokenFile: null,
      source: {
        kind: 'discovery',
        url: `${own}/t/.well-known/openid-configuration`,
        otherUrl: `${own}/.well-known/oauth-authorization-server/t`,
        issuer: `${own}/t`,
        keyOrigins: new Set([own]),
      },
    },
  },
  {
    name: 'an issuer that ends in a slash',
    profile: 'oauth',
    changes: { issuer: '"https://idp.example.com/"' },
    expected: {
      source: {
        url: `${own}/.well-known/openid-configuration`,
        otherUrl: `${own}/.well-known/oauth-authorization-server`,
        issuer: `${own}/`,
      },
    },
  },
  {
    name: 'metadata elsewhere, and keys at a third place',
    profile: 'oauth',
    changes: {
      discovery_url: '"http://127.0.0.1:8080/meta"',
      jwks_origins: '["https://keys.example.com"]',
      ca_file: null,
    },
    expected: {
      source: {
        kind: 'discovery',
        url: 'http://127.0.0.1:8080/meta',
        otherUrl: null,
        keyOrigins: new Set([own, 'http://127.0.0.1:8080', 'https://keys.example.com']),
      },
    },
  },
  {
    name: 'an issuer with an http name is no place for keys',
    profile: 'oauth',
    changes: { issuer: '"http://idp.example.com"', discovery_url: '"https://idp.example.com/meta"' },
    expected: { source: { keyOrigins: new Set([own]) } },
  },
  {
    name: 'unless http is allowed',
    profile: 'oauth',
    changes: {
      issuer: '"http://idp.example.com"',
      discovery_url: '"https://idp.example.com/meta"',
      allow_http: 'true',
    },
    expected: { source: { keyOrigins: new Set(['http://idp.example.com', own]) } },
  },
  {
    name: 'an issuer that is no address adds no place',
    profile: 'oauth',
    changes: { issuer: 'urn:x', discovery_url: '"https://idp.example.com/meta"' },
    expected: { source: { keyOrigins: new Set([own]) } },
  },
  {
    name: 'keys by their address',
    profile: 'oauth',
    changes: { jwks_url: '"https://idp.example.com/keys"' },
    expected: { source: { kind: 'url', url: `${own}/keys` } },
  },
  {
    name: 'the cluster of the pod',
    profile: 'kubernetes',
    changes: {},
    expected: {
      caFile: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
      tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
      source: {
        kind: 'discovery',
        url: 'https://kubernetes.default.svc/.well-known/openid-configuration',
        otherUrl: null,
        issuer: 'https://k8s.example.com',
        keyOrigins: new Set(['https://k8s.example.com', 'https://kubernetes.default.svc']),
      },
    },
  },
  {
    name: 'a further place of the keys',
    profile: 'kubernetes',
    changes: { jwks_origins: '["https://10.0.0.5:6443"]' },
    expected: {
      source: {
        keyOrigins: new Set(['https://k8s.example.com', 'https://kubernetes.default.svc', 'https://10.0.0.5:6443']),
      },
    },
  },
  {
    name: 'the cluster of the pod, with other files',
    profile: 'kubernetes',
    changes: { ca_file: '/ca', token_file: '/token' },
    expected: { caFile: '/ca', tokenFile: '/token' },
  },
  {
    name: 'the cluster of the pod, without a token',
    profile: 'kubernetes',
    changes: { token_file: 'null' },
    expected: { tokenFile: null },
  },
  {
    name: 'another cluster gets no token of the pod',
    profile: 'kubernetes',
    changes: { discovery_url: '"https://k8s.example.com/meta"' },
    expected: { caFile: null, tokenFile: null },
  },
  {
    name: 'nor does the address of its keys',
    profile: 'kubernetes',
    changes: { jwks_url: '"https://k8s.example.com/openid/v1/jwks"' },
    expected: { caFile: null, tokenFile: null, source: { kind: 'url' } },
  },
  {
    name: 'a bundle by its address',
    profile: 'spiffe',
    changes: { bundle_file: null, bundle_url: '"https://spire.example.com/bundle"', ca_file: '/ca' },
    expected: { caFile: '/ca', source: { kind: 'url', url: 'https://spire.example.com/bundle' } },
  },
];

t.test('where keys come from', (t) => {
  for (const { name, profile, changes, expected } of places) t.match(issuer(profile, changes).keys, expected, name);
  t.end();
});

/** What `jwks_origins` and `discovery_url` make of who gets the token. */
const tokenRows: readonly { name: string; changes: Entries; expected: readonly string[] }[] = [
  { name: 'the cluster alone', changes: {}, expected: ['https://kubernetes.default.svc'] },
  {
    name: 'and an origin that the config names',
    changes: { jwks_origins: '["https://10.0.0.5:6443"]' },
    expected: ['https://kubernetes.default.svc', 'https://10.0.0.5:6443'],
  },
  {
    name: 'also where it is the issuer’s',
    changes: { jwks_origins: '["https://k8s.example.com"]' },
    expected: ['https://kubernetes.default.svc', 'https://k8s.example.com'],
  },
  {
    name: 'none over http',
    changes: { jwks_origins: '["http://127.0.0.1:8080"]' },
    expected: ['https://kubernetes.default.svc'],
  },
  {
    name: 'metadata elsewhere, and not the issuer',
    changes: { discovery_url: '"https://meta.example.com/m"', jwks_url_because: 'it is ours', token_file: '/token' },
    expected: ['https://meta.example.com'],
  },
];

t.test('who gets the token of the file is what the config says, and is not guessed', (t) => {
  for (const { name, changes, expected } of tokenRows) {
    const { source } = issuer('kubernetes', changes).keys;
    t.same(source.kind === 'discovery' ? [...source.tokenOrigins] : null, expected, name);
  }
  t.end();
});

t.test('RSA keys that fit several algorithms have to say which one is theirs', (t) => {
  const notes = (algorithms: string): readonly string[] =>
    inspect(issuerText('oauth', { algorithms })).notes.map(({ message }) => message);
  t.same(notes('[RS256, ES256, ES384, EdDSA]'), []);
  t.same(notes('[RS256, PS256]'), [
    'issuers.idp.algorithms allows RS256 and PS256: RSA keys that do not say their alg verify nothing',
  ]);
  t.end();
});

t.test('a profile may come from a placeholder', (t) => {
  const text = issuerText('oauth', { profile: '"${env:PROFILE}"' });
  t.same(errorsOf(text, { env: { PROFILE: 'oauth' } }), []);
  t.end();
});
