/** Claims for an issuer: what it would say, and what it says that it should not. */
import { once, pick, type Draw } from '../draw.js';
import type { PolicyIssuer } from '../model-policy.js';
import { namesOf } from './model-claims.js';
import { standardOf } from './model-profiles.js';
import { knownSubjects } from './worlds.js';

/** A member as it is spelled: name and JSON text of the value. */
export type Entry = readonly [name: string, json: string];

type Claims = Record<string, unknown>;

/** What an issuer of this profile signs, at a moment in seconds since the epoch. */
export function soundClaims(draw: Draw, issuer: PolicyIssuer, nowS: number): Claims {
  const { profile = 'core', audience } = issuer;
  const name = typeof audience === 'string' ? audience : pick(draw, audience);
  const claims: Claims = {
    ...(issuer.issuer === undefined ? {} : { iss: issuer.issuer }),
    aud: profile === 'core' || once(draw, 2) ? name : pick(draw, [[name], ['other-service', name]]),
    iat: nowS,
    exp: nowS + 300,
    ...(once(draw, 2) ? { jti: pick(draw, ['t-1', 't-2', 'stolen']) } : {}),
  };
  Object.assign(claims, ofProfile(draw, issuer));
  const permissions = issuer.claims?.permissions ?? standardOf(issuer).permissions;
  if (permissions !== null) put(claims, permissions, profile === 'core' ? someList(draw) : someGrants(draw));
  for (const [path, wanted] of Object.entries(issuer.claims?.require ?? {})) {
    put(claims, path, Array.isArray(wanted) ? pick(draw, wanted as readonly unknown[]) : wanted);
  }
  return claims;
}

function ofProfile(draw: Draw, issuer: PolicyIssuer): Claims {
  switch (issuer.profile ?? 'core') {
    case 'core':
      return {
        sub: pick(draw, knownSubjects.plain),
        source: 'microservice',
        token_type: pick(draw, ['service', 'machine']),
      };
    case 'oauth': {
      const claims: Claims = { sub: pick(draw, [...knownSubjects.plain, 'user 7']), client_id: 'shop-web', jti: 't-3' };
      if (issuer.claims?.subject !== undefined) put(claims, issuer.claims.subject, pick(draw, knownSubjects.plain));
      return claims;
    }
    case 'kubernetes': {
      const [namespace = '', name = ''] = once(draw, 12)
        ? oddAccount(draw)
        : pick(draw, knownSubjects.kubernetes).split('/');
      return {
        sub: `system:serviceaccount:${namespace}:${name}`,
        'kubernetes.io': { namespace, serviceaccount: { name, uid: 'u' }, node: { name: 'n-1' } },
      };
    }
    case 'spiffe':
      return { sub: someWorkload(draw).replace('shop.example', issuer.trust_domain ?? '') };
  }
}

/** Now and then one that is no SPIFFE ID, or one of another trust domain. */
function someWorkload(draw: Draw): string {
  if (!once(draw, 8)) return pick(draw, knownSubjects.spiffe);
  const inside = ['..', '.', '../x', './x', '', '/x', '%61', 'x?y', 'x#y', 'x/', '...'].map(
    (end) => `shop.example/ns/shop/${end}`,
  );
  const domains = ['shop.example.evil', 'xshop.example', 'shop.example:8443', 'user@shop.example', 'SHOP.example'];
  return id(pick(draw, [...inside, ...domains.map((domain) => `${domain}/ns/shop/x`)]));
}

/** Names that Kubernetes gives to nobody, where claim and subject agree on them. */
function oddAccount(draw: Draw): readonly string[] {
  const names = ['-api', 'api-', 'Api', 'a..b', 'a.-b', '.api', 'x'.repeat(253), 'x'.repeat(254), 'a_b', ''];
  const namespaces = ['n'.repeat(63), 'n'.repeat(64), 'a.b', '-shop', '', 'shop:x'];
  return once(draw, 2) ? ['shop', pick(draw, names)] : [pick(draw, namespaces), 'api'];
}

function someList(draw: Draw): unknown {
  return pick(draw, [['orders:read'], ['orders:read', 'orders:write'], [], ['a b', 'orders:read', '"']]);
}

function someGrants(draw: Draw): unknown {
  return pick<unknown>(draw, ['orders:read', 'orders:read orders:write', '', ' orders:read  x ', someList(draw)]);
}

/** Members from the payload inwards; what is in the way and no object makes room. */
function put(claims: Claims, path: string, value: unknown): void {
  const names = namesOf(path);
  let place = claims;
  for (const name of names.slice(0, -1)) {
    const next = place[name];
    place[name] = typeof next === 'object' && next !== null ? { ...next } : {};
    place = place[name] as Claims;
  }
  place[names.at(-1) ?? ''] = value;
}

const id = (text: string): string => `spiffe://${text}`;

/** What claims may be instead, right and wrong. */
function valuesOf(nowS: number): Readonly<Record<string, readonly unknown[]>> {
  const times = [nowS, nowS + 5, nowS + 6, nowS + 1, nowS - 1, nowS + 61, String(nowS), nowS + 0.5, null, 1e300, -1];
  const accounts = [
    'shop:api',
    'shop:api:x',
    'SHOP:api',
    'shop:-api',
    `${'n'.repeat(64)}:api`,
    'shop:a..b',
    'shop:',
    ':',
  ];
  return {
    iss: [
      'https://one.example.com',
      'https://two.example.com',
      'https://one.example.com/',
      null,
      '',
      ['https://one.example.com'],
    ],
    aud: [
      'orders',
      'other',
      'Orders',
      '',
      [],
      ['orders'],
      ['stranger'],
      ['stranger', 'orders', 'https://orders.example.com'],
      ['orders', 5],
      [5, 'orders'],
      ['orders', ['orders']],
      [...Array.from({ length: 99 }, () => 'x'), 'orders'],
      [...Array.from({ length: 100 }, () => 'x'), 'orders'],
      { orders: true },
      null,
      5,
    ],
    sub: [
      ...knownSubjects.plain,
      ...knownSubjects.spiffe,
      'team',
      'team/',
      'teams/x',
      'Team/x',
      'withdrawn',
      '',
      'a b',
      'caf\u00e9',
      'x'.repeat(1024),
      'x'.repeat(1025),
      5,
      null,
      ['checkout'],
      ...accounts.map((name) => `system:serviceaccount:${name}`),
      'system:node:n-1',
      id('shop.example'),
      id('shop.example/'),
      id('shop.example/ns/shop/'),
      id('shop.example/ns/shop'),
      id('shop.example/ns/shopping/x'),
      id('shop.example/ns//x'),
      id('shop.example/ns/shop/../x'),
      id('shop.example/./x'),
      id('shop.example/ns/shop/%61'),
      id('shop.example/ns/shop/x?y'),
      id('shop.example/ns/shop/x#y'),
      id('shop.example:8443/ns/shop/x'),
      id('user@shop.example/ns/shop/x'),
      id('SHOP.example/ns/shop/x'),
      id('shop.example.evil/ns/shop/x'),
      id('xshop.example/ns/shop/x'),
      id('other.example/ns/shop/x'),
      'SPIFFE://shop.example/ns/shop/x',
      id(`shop.example/ns/shop/${'x'.repeat(1100)}`),
    ],
    exp: [
      ...times,
      nowS - 4,
      nowS - 5,
      nowS - 6,
      nowS - 60,
      nowS + 600,
      nowS + 601,
      nowS + 7200,
      nowS + 7206,
      nowS + 86_500,
    ],
    nbf: [...times, nowS + 60],
    iat: [...times, nowS - 600, nowS - 7000, nowS + 60],
    jti: ['t-9', 'stolen', '', 'x'.repeat(256), 'x'.repeat(257), 'a b', 5, null],
    client_id: ['c', 'a b', '', 'caf\u00e9', 'x'.repeat(1025), 5, null, ['c']],
    azp: ['checkout', 'a b', '', 5, null, ['checkout']],
    source: ['frontend', ['microservice'], null],
    token_type: ['session', ['service'], true],
    scope: ['orders:write', 'orders:read\torders:write', '', 5, null, ['orders:read', 5], { 0: 'orders:read' }],
    scp: ['orders:read', ['orders:write'], 5, null, several(1000), several(1001), several(1001).join(' ')],
    permissions: ['orders:read', ['orders:read', 5], null, [[]]],
    typ: ['Bearer', 'bearer', 'ID', ['Bearer'], null, 1],
    idtyp: ['app', 'user', ['app'], null],
    ver: [1, '1', true, [1], 1.5],
    confirmed: [true, 'true', 1, false],
    realm_access: [
      { roles: ['orders:read'], kind: 'machine' },
      { roles: 'orders:read' },
      { kind: ['machine'] },
      [],
      null,
      'x',
    ],
    act: [{ sub: 'checkout' }, { sub: 5 }, 'checkout', null],
    cnf: [
      { jkt: 'x' },
      null,
      {},
      { jkt: 'A'.repeat(43) },
      { 'x5t#S256': 'A'.repeat(43) },
      { jkt: 'A'.repeat(43), kid: 'x' },
    ],
    at_hash: ['x', null],
    c_hash: ['x'],
    s_hash: ['x'],
    events: [{}, null],
    sessionHandle: ['s', null],
    refreshTokenHash1: [null],
    stt: [0],
    nonce: ['x'],
    __proto__: [{ sub: 'checkout' }],
    'kubernetes.io': [
      { namespace: 'shop', serviceaccount: { name: 'api' } },
      { namespace: 'shop', serviceaccount: { name: 'other' } },
      { namespace: 'shop', serviceaccount: { name: 'a..b' } },
      { namespace: 'other', serviceaccount: { name: 'api' } },
      { namespace: 'shop', serviceaccount: 'api' },
      { namespace: 'shop' },
      { serviceaccount: { name: 'api' } },
      { namespace: 'shop', serviceaccount: { name: 'api' }, node: { name: 'n-3' } },
      { namespace: ['shop'], serviceaccount: { name: ['api'] } },
      [],
      'shop/api',
      null,
    ],
  };
}

/** A few claims missing, of another kind, doubled or nested too deep. */
export function changedClaims(
  draw: Draw,
  sound: readonly Entry[],
  issuer: PolicyIssuer,
  nowS: number,
): readonly Entry[] {
  let entries = sound;
  for (let count = pick(draw, [1, 1, 1, 1, 2, 3]); count > 0; count--) {
    entries = changedOnce(draw, entries, issuer, nowS);
  }
  return entries;
}

function changedOnce(draw: Draw, entries: readonly Entry[], issuer: PolicyIssuer, nowS: number): readonly Entry[] {
  const values = valuesOf(nowS);
  const [name, json] = once(draw, 3)
    ? anyOther(draw, values)
    : pick(draw, entries.length === 0 ? [anyOther(draw, values)] : entries);
  const known = values[name];
  const other: Entry =
    known !== undefined && !once(draw, 4)
      ? [name, JSON.stringify(pick(draw, known))]
      : [name, pick(draw, ['null', '5', 'true', '""', `[${json}]`, `{"v":${json}}`, '"\\ud800"', '1e400', json])];
  const rest = entries.filter(([one]) => one !== name);
  switch (draw.below(10)) {
    case 0:
    case 1:
      return rest;
    case 2:
      return [[name, json], ...entries];
    case 3:
      return pick(draw, [
        [...entries, other],
        [other, ...entries],
      ]);
    case 4:
      return [...rest, [name, nested(13 + draw.below(5), json)]];
    case 5:
      return [...entries, ['deep', nested(13 + draw.below(5), '1')]];
    case 6:
      return withoutInner(draw, entries, issuer);
    case 7:
      // Without `iat` it is `exp` alone that bounds the life.
      return [
        ...rest.filter(([one]) => one !== 'iat' && one !== 'exp'),
        ['exp', JSON.stringify(pick(draw, values['exp'] ?? []))],
      ];
    default:
      return [...rest, other];
  }
}

function several(count: number): readonly string[] {
  return Array.from({ length: count }, () => 'a');
}

function anyOther(draw: Draw, values: Readonly<Record<string, readonly unknown[]>>): Entry {
  const names = Object.keys(values);
  const name = once(draw, 2)
    ? pick(draw, ['exp', 'exp', 'nbf', 'iat', 'aud', 'aud', 'sub', 'cnf', 'jti'])
    : pick(draw, names);
  return [name, JSON.stringify(pick(draw, values[name] ?? [null]))];
}

/** A list around a value, so many times. */
function nested(depth: number, json: string): string {
  return '['.repeat(depth) + json + ']'.repeat(depth);
}

/** Takes away, or changes, what stands within one of the claims. */
function withoutInner(draw: Draw, entries: readonly Entry[], { claims = {} }: PolicyIssuer): readonly Entry[] {
  const {
    subject = 'kubernetes\\.io.namespace',
    permissions = 'kubernetes\\.io.serviceaccount.name',
    require = {},
  } = claims;
  const [first = '', ...inner] = namesOf(pick(draw, [subject, permissions, ...Object.keys(require)]));
  return entries.map(([name, json]): Entry => {
    if (name !== first || inner.length === 0 || !json.startsWith('{')) return [name, json];
    const members = JSON.parse(json) as Claims;
    put(members, inner.map((one) => one.replace(/[.\\]/g, '\\$&')).join('.'), pick(draw, ['x', 5, null, ['x'], {}]));
    return [name, JSON.stringify(members)];
  });
}
