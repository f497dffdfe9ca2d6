/** Configs with issuers of all profiles, their key sets, which say odd things now and then, and routes. */
import { once, pick, several, type Draw } from '../draw.js';
import type { Policy, PolicyIssuer, PolicyRoute, ProfileName } from '../model-policy.js';
import { keyPair, kindFor, type KeyPair } from './key-pool.js';
import { algorithmsOf } from './model-profiles.js';

/** A key of an issuer, as its tokens are signed with it. */
export interface Signer {
  readonly keyId: string;
  readonly algorithm: string;
  readonly pair: KeyPair;
}

export interface WorldIssuer {
  readonly name: string;
  readonly rules: PolicyIssuer;
  /** What its key server answers. */
  readonly keySet: string;
  readonly signers: readonly Signer[];
}

export interface World {
  readonly policy: Policy;
  readonly issuers: readonly WorldIssuer[];
}

export const allAlgorithms = [
  'RS256',
  'ES256',
  'PS256',
  'ES384',
  'EdDSA',
  'RS384',
  'RS512',
  'PS384',
  'PS512',
  'ES512',
] as const;

/** Subjects that some route lets in. */
export const knownSubjects = {
  plain: ['checkout', 'shop-web', 'team/checkout', 'team/a/b'],
  kubernetes: ['shop/api', 'shop/api.v2', 'other/api'],
  spiffe: ['spiffe://shop.example/ns/shop/sa/api', 'spiffe://shop.example/billing', 'spiffe://shop.example/ns/shop/x'],
} as const;

export const identity: Policy['identity'] = {
  subject: 'X-Auth-Subject',
  issuer: 'X-Auth-Issuer',
  permissions: 'X-Auth-Permissions',
  token_id: 'X-Auth-Token-Id',
  kind: 'X-Auth-Kind',
};

/** One to three issuers and the routes for their callers. */
export function someWorld(draw: Draw): World {
  const count = pick(draw, [1, 1, 2, 2, 3]);
  const names = ['one', 'two', 'three'].slice(0, count);
  const rules: PolicyIssuer[] = [];
  for (const name of names) rules.push(someIssuer(draw, name, rules));
  const issuers = names.map((name, index): WorldIssuer => {
    const one = rules[index] ?? someIssuer(draw, name, []);
    return { name, rules: one, ...someKeys(draw, one, pick(draw, ['a', 'a', 'b'])) };
  });
  return {
    issuers,
    policy: {
      issuers: Object.fromEntries(issuers.map((issuer) => [issuer.name, issuer.rules])),
      routes: someRoutes(draw, names),
      sessions: null,
      underscores: 'drop',
      http10: 'refuse',
      identity,
      revoked: {
        key_ids: once(draw, 12) ? ['k-2'] : [],
        subjects: ['withdrawn'],
        token_ids: ['stolen'],
        issuedBeforeS: null,
      },
    },
  };
}

export function someRoutes(draw: Draw, names: readonly string[]): readonly PolicyRoute[] {
  const common = { methods: ['GET'], idempotency: 'none' as const };
  const { plain, kubernetes, spiffe } = knownSubjects;
  const prefixes = ['team/', 'shop/', 'spiffe://shop.example/ns/shop/'].map((prefix) => ({ prefix }));
  return [
    {
      ...common,
      name: 'all',
      path: '/all',
      subjects: [plain[0], plain[1], kubernetes[2], spiffe[1], ...prefixes],
      permissions: [],
    },
    { ...common, name: 'exact', path: '/exact', subjects: [...plain, ...kubernetes, ...spiffe], permissions: [] },
    { ...common, name: 'read', path: '/read', subjects: [plain[0], ...prefixes], permissions: ['orders:read'] },
    {
      ...common,
      name: 'one',
      path: '/one',
      subjects: [...plain, ...prefixes],
      permissions: [],
      issuers: [pick(draw, names)],
    },
    {
      ...common,
      name: 'pairs',
      path: '/pairs',
      any_of: [
        { subjects: [plain[0]], permissions: ['orders:write', 'orders:read'] },
        { subjects: [{ prefix: 'team/' }], permissions: [] },
      ],
    },
  ];
}

const profiles: readonly ProfileName[] = ['oauth', 'oauth', 'kubernetes', 'spiffe', 'core'];

function someIssuer(draw: Draw, name: string, others: readonly PolicyIssuer[]): PolicyIssuer {
  const profile = pick(draw, profiles);
  // Now and then two of them are hard to tell apart.
  const twin = others.length > 0 && once(draw, 3) ? pick(draw, others) : null;
  const issuer = twin?.issuer ?? `https://${name}.example.com`;
  const common = {
    issuer,
    profile,
    clock_skew: pick(draw, ['5s', '0s', '60s']),
    max_lifetime: pick(draw, ['2h', '10m', '24h']),
    ...(once(draw, 4) ? { key_ids: pick(draw, [{ accept: ['k-*'] }, { accept: ['*'], reject: ['k-3'] }]) } : {}),
  };
  if (profile === 'core') {
    return {
      ...common,
      audience: 'orders',
      source: 'microservice',
      token_type: ['service', 'machine'],
      key_ids: coreIds,
    };
  }
  const audience = pick(draw, ['orders', 'orders', ['orders', 'https://orders.example.com'], 'other']);
  const algorithms = once(draw, 2) ? { algorithms: someAlgorithms(draw) } : {};
  const shared = { ...common, audience, ...algorithms, ...someTypes(draw) };
  const claims = { claims: { ...somePermissions(draw), ...someRequired(draw, profile) } };
  if (profile === 'kubernetes') return { ...shared, ...claims };
  if (profile === 'oauth') return { ...shared, claims: { ...claims.claims, ...someSubject(draw) } };
  const { issuer: named, ...rest } = shared;
  const domain = pick(draw, ['shop.example', 'shop.example', 'other.example']);
  return { ...rest, ...(once(draw, 3) ? { issuer: named } : {}), trust_domain: domain, ...claims };
}

const coreIds = { accept: ['d-*', 'k-*'], reject: ['k-3'] };

/** Often several that one kind of key could verify, or curves that are taken for each other. */
export function someAlgorithms(draw: Draw): readonly string[] {
  const families = [['RS256', 'PS256'], ['RS256', 'RS384', 'PS256'], ['PS256'], ['ES256', 'ES384'], ['EdDSA', 'ES256']];
  if (!once(draw, 3)) return pick(draw, families);
  return [...new Set(several(draw, 1 + draw.below(3), (one) => pick(one, allAlgorithms)))];
}

function someTypes(draw: Draw): Pick<PolicyIssuer, 'token_typ'> {
  if (!once(draw, 3)) return {};
  return { token_typ: pick(draw, [['JWT'], ['at+jwt', 'JWT'], ['absent'], ['JWT', 'absent'], ['application/AT+jwt']]) };
}

type ClaimSettings = NonNullable<PolicyIssuer['claims']>;

export function someSubject(draw: Draw): ClaimSettings {
  if (!once(draw, 2)) return {};
  return { subject: pick(draw, ['azp', 'client_id', 'https://shop\\.example/id', 'act.sub', 'a\\\\b']) };
}

export function somePermissions(draw: Draw): ClaimSettings {
  if (!once(draw, 2)) return {};
  return { permissions: pick(draw, ['scp', 'realm_access.roles', 'https://shop\\.example/roles', 'scope']) };
}

export function someRequired(draw: Draw, profile: ProfileName): ClaimSettings {
  if (!once(draw, 3)) return {};
  if (profile === 'kubernetes' && once(draw, 2)) return { require: { 'kubernetes\\.io.node.name': ['n-1', 'n-2'] } };
  return {
    require: pick<NonNullable<ClaimSettings['require']>>(draw, [
      { typ: 'Bearer' },
      { idtyp: ['app', 'service'] },
      { ver: 1, confirmed: true },
      { 'realm_access.kind': 'machine', typ: 'Bearer' },
    ]),
  };
}

/** The id of another key, and what is no key id. */
const oddKeyIds = ['k-1', '', 'k 1', 'k-\u00e9', `k-${'x'.repeat(254)}`, `k-${'x'.repeat(255)}`];

/** Two to four keys, most of them sound. */
export function someKeys(draw: Draw, issuer: PolicyIssuer, owner: string): Pick<WorldIssuer, 'keySet' | 'signers'> {
  const signers = several(draw, 2 + draw.below(3), (one): Signer => {
    const algorithm = once(one, 12) ? pick(one, allAlgorithms) : pick(one, algorithmsOf(issuer));
    return {
      keyId: '',
      algorithm,
      pair: keyPair(kindFor(algorithm), pick(one, [owner, owner, owner, owner, owner, owner, 'b', 'weak'])),
    };
  }).map((signer, index) => ({ ...signer, keyId: once(draw, 25) ? pick(draw, oddKeyIds) : `k-${String(index + 1)}` }));
  const use = issuer.profile === 'spiffe' ? 'jwt-svid' : 'sig';
  const listed = signers.map(({ pair, keyId, algorithm }) => ({ ...pair.jwk, kid: keyId, alg: algorithm, use }));
  const members = listed.map((jwk) => (once(draw, 4) ? changedJwk(draw, jwk) : jwk));
  if (once(draw, 40)) members.push(...members.slice(0, 1));
  return { keySet: once(draw, 30) ? brokenSet(draw, members) : JSON.stringify({ keys: members }), signers };
}

type Jwk = Readonly<Record<string, unknown>>;

/** What makes a key one that anybody can sign for: an exponent of 1, and the neutral point (RFC 8032 §5.1). */
const openKeys: Jwk = { e: 'AQ', x: Buffer.concat([Buffer.of(1), Buffer.alloc(31)]).toString('base64url') };

/** A key that says something else: less, more, or what makes it none of ours. */
function changedJwk(draw: Draw, jwk: Jwk): Jwk {
  const without = (name: string): Jwk => Object.fromEntries(Object.entries(jwk).filter(([known]) => known !== name));
  // Keys of this kind are few.
  if (jwk['kty'] === 'OKP' && once(draw, 2)) return { ...jwk, ...openKeys };
  switch (draw.below(13)) {
    case 0:
    case 1:
    case 2:
      return without('alg');
    case 3:
      return { ...jwk, alg: pick(draw, [...allAlgorithms, 'HS256', 'none', 'ECDH-ES', 5]) };
    case 4:
      return without('use');
    case 5:
      return { ...jwk, use: pick(draw, ['enc', 'sig', 'jwt-svid', 'x509-svid', 5]) };
    case 6:
      return { ...jwk, key_ops: pick(draw, [['verify'], ['sign', 'verify'], ['sign'], [], 'verify']) };
    case 7:
      return { ...jwk, [pick(draw, ['d', 'k'])]: 'AQAB' };
    case 8:
      return { ...jwk, kid: pick(draw, ['', 5, 'k 1', 'k-\u00e9', 'x'.repeat(257)]) };
    case 9:
      return { ...keyPair('RSA', 'weak').jwk, kid: jwk['kid'], alg: jwk['alg'], use: jwk['use'] };
    case 10:
      return { ...jwk, x: pick(draw, ['AQ', 'A'.repeat(43), 5]), e: pick(draw, ['AQ', 'Ag', 'AQAB']) };
    case 11:
      return { ...jwk, ...openKeys };
    default:
      return { ...jwk, kty: pick(draw, ['RSA', 'EC', 'OKP', 'oct']), crv: pick(draw, ['P-256', 'P-384', 'Ed25519']) };
  }
}

/** What is no key set. */
function brokenSet(draw: Draw, members: readonly Jwk[]): string {
  const text = JSON.stringify({ keys: members });
  return pick(draw, [
    text.slice(0, -1),
    `{"keys":[],${text.slice(1)}`,
    JSON.stringify({ keys: [...members, 5] }),
    JSON.stringify(members),
    JSON.stringify({ Keys: members }),
    JSON.stringify({ keys: { 0: members[0] } }),
  ]);
}
