/** Keys and tokens of a run. Making either is slow, so keys are few and most tokens are signed once. */
import type { KeyObject } from 'node:crypto';
import type { KeyLookup } from '../../src/ports/auth.js';
import { rsaKey } from '../support/keys.js';
import { base64url, signToken } from '../support/tokens.js';
import { drawFrom, drawOf, once, pick, several, type Draw } from './draw.js';
import { confirmations } from './bound-heads.js';
import { nowMs } from './policies.js';
import type { ModelKey } from './profiles/model-signatures.js';

const core = ['d-1', 'd-2', 'd-gone', 'd-bad', 's-1'] as const;
const partner = ['p-1', 'p-3'] as const;
/** In no key set: tokens of theirs name a key of somebody else. */
const attacker = rsaKey('attacker');

type RsaNumbers = Extract<ModelKey, { kind: 'rsa' }>;

/** The key sets of the issuers. `s-1`, `d-bad` and `p-3` are in them and accepted by nobody. */
export const keyrings: Readonly<Record<string, (keyId: string) => KeyLookup>> = {
  core: lookUp(core),
  partner: lookUp(partner),
};

/** The same in numbers. */
export const publicNumbers: ReadonlyMap<string, ReadonlyMap<string, RsaNumbers>> = new Map([
  ['core', numbersOfAll(core)],
  ['partner', numbersOfAll(partner)],
]);

const nowS = nowMs / 1000;

const coreClaims = {
  iss: 'https://api.example.com',
  aud: 'orders',
  sub: 'checkout',
  source: 'microservice',
  token_type: 'service',
  permissions: ['orders:read', 'orders:write'],
  iat: nowS,
  exp: nowS + 300,
};

const userClaims = {
  sub: 'user-1',
  rsub: 'user-1',
  tId: 'public',
  iss: 'https://api.example.com/auth',
  iat: nowS,
  exp: nowS + 3600,
  sessionHandle: 'h-1',
  refreshTokenHash1: 'ab',
  parentRefreshTokenHash1: null,
  antiCsrfToken: null,
  'st-role': { v: ['support'], t: nowMs },
};

const partnerClaims = {
  ...coreClaims,
  iss: 'https://partner.example.com',
  aud: 'orders-b2b',
  sub: 'partner',
  source: 'gateway',
  token_type: 'machine',
};

/** What a claim may be instead, right and wrong. */
const claimValues: Readonly<Record<string, readonly unknown[]>> = {
  iss: [
    'https://api.example.com',
    'https://partner.example.com',
    'https://api.example.com/',
    ['https://api.example.com'],
    null,
    7,
  ],
  aud: ['orders', 'orders-b2b', ['orders'], 'Orders', '', { orders: true }],
  sub: [
    'checkout',
    'reporting',
    'migration',
    'partner',
    'withdrawn',
    'root',
    '',
    'check out',
    'caf\u00e9',
    'a\r\nX-Auth-Subject: root',
    5,
    null,
    ['checkout'],
    'x'.repeat(1024),
    'x'.repeat(1025),
    '__proto__',
  ],
  source: ['microservice', 'gateway', 'frontend', ['microservice'], null],
  token_type: ['service', 'machine', 'session', true],
  permissions: [
    ['orders:read'],
    ['orders:write', 'orders:read'],
    [],
    ['orders:import'],
    ['everything'],
    'orders:read',
    ['orders:read', 5],
    ['a b'],
    ['"'],
    { 0: 'orders:read' },
    null,
    [''],
  ],
  iat: [nowS, nowS - 600, nowS - 1000, nowS - 1001, nowS + 5, nowS + 6, nowS + 0.5, String(nowS), null, 1e300, -1],
  exp: [
    nowS + 300,
    nowS,
    nowS + 1,
    nowS - 4,
    nowS - 5,
    nowS - 6,
    nowS + 600,
    nowS + 601,
    nowS + 7200,
    nowS + 7201,
    nowS + 7205,
    nowS + 7206,
    String(nowS + 300),
    null,
    1e300,
    nowS + 0.5,
  ],
  nbf: [nowS, nowS + 5, nowS + 6, nowS + 1, 'soon', null],
  jti: ['t-1', 'stolen', '', 'x'.repeat(256), 'x'.repeat(257), 5, null, 'a b', '__proto__'],
  cnf: confirmations.slice(2),
  sessionHandle: ['s'],
  refreshTokenHash1: [null],
  stt: [0],
  __proto__: [{ sub: 'root' }],
  constructor: ['x'],
  scope: ['orders:write'],
};

/** What a claim of a session may be instead. The handle says what the Core thinks of it. */
const userClaimValues: Readonly<Record<string, readonly unknown[]>> = {
  sub: ['user-2', 'withdrawn', 'checkout', '', 'a b', 5, null, 'x'.repeat(1025)],
  iss: ['https://api.example.com', 'https://api.example.com/auth/', 'https://evil.example/auth', null],
  iat: [nowS - 1000, nowS - 1001, nowS + 60, nowS + 61, null, String(nowS), nowS + 0.5],
  exp: [nowS, nowS + 1, nowS - 1, null, 1e300, String(nowS + 60)],
  sessionHandle: ['gone', 'stale', 'away', '', 5, null],
  refreshTokenHash1: ['', null, 7],
  parentRefreshTokenHash1: ['cd', '', 5],
  antiCsrfToken: ['csrf-1', '', 7],
  stt: [0, 1, null, '0'],
  source: ['microservice', null],
  token_type: ['service'],
  tId: ['other', ['public'], null],
  'st-role': [
    { v: 'support' },
    { v: ['admin'] },
    { v: ['admin', 'support'] },
    { v: { support: true } },
    {},
    null,
    'support',
  ],
  __proto__: [{ v: 'support' }],
  'st-role.v': ['support'],
};

const userHeader = { alg: 'RS256', kid: 'd-1', typ: 'JWT', version: '5' };
const versions = ['3', '4', '2', '6', 5, '', null, ['5']];

/** Tokens that were signed before, a sound one first. */
export interface Tokens {
  readonly service: readonly string[];
  readonly session: readonly string[];
  /** Tokens of services that are bound to something; the first to a key. */
  readonly bound: readonly string[];
}

/** Members of the header. */
const headerValues: Readonly<Record<string, readonly unknown[]>> = {
  alg: ['RS256', 'none', 'HS256', 'RS384', 'PS256', 'rs256', ['RS256'], null],
  kid: [
    'd-1',
    'd-2',
    'd-gone',
    'd-bad',
    's-1',
    'p-1',
    'p-3',
    'd-unknown',
    '',
    'd-\u00e9',
    ['d-1'],
    null,
    '__proto__',
    '../d-1',
    'D-1',
  ],
  typ: ['JWT', 'jwt', 'at+jwt', null],
  crit: [['exp']],
  jwk: [{ kty: 'RSA' }],
  jku: ['https://evil.example/jwks.json'],
  b64: [false],
  x5c: [['x']],
  version: ['5'],
};

/** A token made from scratch: mostly sound, with some members changed. */
export function makeToken(draw: Draw): string {
  const ofPartner = once(draw, 4);
  const payload = changed(draw, ofPartner ? partnerClaims : coreClaims, claimValues, [0, 0, 1, 1, 1, 2, 3]);
  const keyId = ofPartner ? 'p-1' : pick(draw, ['d-1', 'd-1', 'd-2', 'd-gone', 's-1', 'd-bad']);
  const header = changed(draw, { alg: 'RS256', kid: keyId, typ: 'JWT' }, headerValues, [0, 0, 0, 0, 0, 1, 2]);
  const key = once(draw, 12) ? attacker : rsaKey(keyId);
  return signToken(spelled(draw, header), spelled(draw, payload), key.privateKey);
}

/** A session's access token made from scratch. */
export function makeSession(draw: Draw): string {
  const payload = changed(draw, userClaims, userClaimValues, [0, 0, 1, 1, 1, 2, 3]);
  const keyId = pick(draw, ['d-1', 'd-1', 'd-1', 'd-2', 'd-gone', 's-1', 'd-bad']);
  const header = changed(
    draw,
    { ...userHeader, kid: keyId },
    { ...headerValues, version: versions },
    [0, 0, 0, 0, 0, 1, 2],
  );
  const key = once(draw, 12) ? attacker : rsaKey(keyId);
  return signToken(spelled(draw, header), spelled(draw, payload), key.privateKey);
}

/**
 * Tokens for many cases: a sound one first, then one for each thing that may be wrong with it, then so many at random.
 */
export function makeTokens(seed: number, count: number): Tokens {
  const sign = (head: object, payload: object): string =>
    signToken(JSON.stringify(head), JSON.stringify(payload), rsaKey('d-1').privateKey);
  const header = { alg: 'RS256', kid: 'd-1', typ: 'JWT' };
  const each = (values: typeof claimValues): object[] =>
    Object.entries(values).flatMap(([name, list]) => list.map((value) => ({ [name]: value })));
  const service = [
    makeToken(drawOf([])),
    ...each(claimValues).map((change) => sign(header, { ...coreClaims, ...change })),
    ...each(headerValues).map((change) => sign({ ...header, ...change }, coreClaims)),
    ...several(drawFrom(seed, -1), count, makeToken),
  ];
  const session = [
    makeSession(drawOf([])),
    ...each(userClaimValues).map((change) => sign(userHeader, { ...userClaims, ...change })),
    ...each({ ...headerValues, version: versions }).map((change) => sign({ ...userHeader, ...change }, userClaims)),
    sign(userHeader, { ...userClaims, sessionHandle: 'gone', parentRefreshTokenHash1: 'cd' }),
    sign({ ...userHeader, version: '5' }, coreClaims),
    sign(header, userClaims),
    sign(userHeader, { ...coreClaims, ...userClaims }),
    ...several(drawFrom(seed, -2), Math.ceil(count / 4), makeSession),
  ];
  const bound = confirmations.map((cnf) => sign(header, { ...coreClaims, cnf }));
  const partnerHeader = JSON.stringify({ ...header, kid: 'p-1' });
  const partners = confirmations
    .slice(0, 3)
    .map((cnf) => signToken(partnerHeader, JSON.stringify({ ...partnerClaims, cnf }), rsaKey('p-1').privateKey));
  return { service, session, bound: [...bound, ...partners] };
}

/**
 * Takes what somebody signed, changes a byte of what it says, and signs it anew: what only an issuer gone wrong does.
 */
export function signAnew(draw: Draw, token: string, change: (draw: Draw, text: string) => string): string {
  const [header = '', payload = ''] = token.split('.').map((part) => Buffer.from(part, 'base64url').toString('latin1'));
  const inHeader = once(draw, 3);
  const texts = inHeader ? [change(draw, header), payload] : [header, change(draw, payload)];
  const [head = '', body = ''] = texts;
  return signToken(
    Buffer.from(head, 'latin1'),
    Buffer.from(body, 'latin1'),
    rsaKey(header.includes('p-1') ? 'p-1' : 'd-1').privateKey,
  );
}

/** A token that nobody signed: its algorithm says so. */
export function unsignedToken(): string {
  return `${base64url('{"alg":"none","kid":"d-1"}')}.${base64url(JSON.stringify(coreClaims))}.`;
}

function changed(
  draw: Draw,
  members: object,
  values: Readonly<Record<string, readonly unknown[]>>,
  counts: readonly number[],
): [string, unknown][] {
  const list: [string, unknown][] = Object.entries(members);
  for (let count = pick(draw, counts); count > 0; count--) {
    const name = pick(draw, Object.keys(values));
    const value = pick(draw, values[name] ?? [null]);
    const at = list.findIndex(([known]) => known === name);
    if (once(draw, 8)) list.splice(draw.below(list.length + 1), 0, [name, value]);
    else if (at < 0) list.push([name, value]);
    else if (once(draw, 6)) list.splice(at, 1);
    else list[at] = [name, value];
  }
  return list;
}

/** JSON by hand, because a name that comes twice is what no serialiser writes. */
function spelled(draw: Draw, members: readonly (readonly [string, unknown])[]): string {
  const space = once(draw, 10) ? ' ' : '';
  const text = members
    .map(([name, value]) => `${nameOf(draw, name)}${space}:${JSON.stringify(value)}`)
    .join(`,${space}`);
  const whole = `{${space}${text}}`;
  return once(draw, 40) ? `${whole}${pick(draw, ['\n', ' ', '\0', '{}', ','])}` : whole;
}

/** The same name, perhaps with its first letter as an escape. */
function nameOf(draw: Draw, name: string): string {
  const escaped = `"\\u${name.charCodeAt(0).toString(16).padStart(4, '0')}${name.slice(1)}"`;
  return once(draw, 30) ? escaped : JSON.stringify(name);
}

function lookUp(keyIds: readonly string[]): (keyId: string) => KeyLookup {
  return (keyId) =>
    keyIds.includes(keyId)
      ? { kind: 'found', key: { keyId, algorithm: 'RS256', key: rsaKey(keyId).publicKey } }
      : { kind: 'unknown' };
}

function numbersOfAll(keyIds: readonly string[]): ReadonlyMap<string, RsaNumbers> {
  return new Map(keyIds.map((keyId) => [keyId, numbersOf(rsaKey(keyId).publicKey)]));
}

function numbersOf(key: KeyObject): RsaNumbers {
  const { n = '', e = '' } = key.export({ format: 'jwk' });
  const number = (text: string): bigint => BigInt(`0x${Buffer.from(text, 'base64url').toString('hex')}`);
  return { kind: 'rsa', algorithm: 'RS256', n: number(n), e: number(e) };
}
