/** Members that answers about tokens have, and JWTs do not, saying what they should not. */
import { once, pick, type Draw } from '../draw.js';
import type { Entry } from '../profiles/profile-claims.js';

/** `active` as it may not be, and now and then as it may. */
export function oddActive(draw: Draw, entries: readonly Entry[]): readonly Entry[] {
  const rest = entries.filter(([name]) => name !== 'active');
  // What a reader that converts takes for a yes, first of all.
  const yes = ['"true"', '"true"', '"true"', '1', '[true]', '"yes"', '{}'];
  const odd = pick(draw, [...yes, 'true', 'false', '"false"', 'null', '0', '""']);
  switch (draw.below(8)) {
    case 0:
      return rest;
    case 1:
      return pick<readonly Entry[]>(draw, [
        [['active', 'false'], ...entries],
        [...entries, ['active', 'false']],
        [...entries, ['active', 'true']],
        [['active', 'false'], ...rest, ['active', 'true']],
      ]);
    case 2:
      return [...rest, [pick(draw, ['Active', 'ACTIVE', 'active ', 'is_active', 'token_active']), 'true']];
    case 3:
      return [...rest, ['token_introspection', '{"active":true}']];
    default:
      return [...rest, ['active', odd]];
  }
}

const digest = 'A'.repeat(43);

/** Permissions of so many characters in all. */
function grants(names: number, length: number): readonly string[] {
  return Array.from({ length: names }, (_, index) => 'x'.repeat(index === 0 ? length - (names - 1) : 1));
}

const permissions: readonly unknown[] = [
  grants(1, 8192),
  grants(1, 8193),
  grants(2, 8192),
  grants(1000, 8192),
  grants(1000, 8193),
  'x'.repeat(8192),
  'x'.repeat(8193),
  `orders:read ${'x'.repeat(8180)}`,
  `orders:read ${'x'.repeat(8181)}`,
  Array.from({ length: 1000 }, () => 'orders:read'),
  Array.from({ length: 1000 }, (_, index) => (index === 0 ? 'orders:read' : '')),
  Array.from({ length: 1001 }, () => ''),
  ['orders:read', 'orders:write', 'a"b', 'a\\b', 'a b', '', 'caf\u00e9'],
  ['orders:read', null],
  { 0: 'orders:read' },
  'orders:read,orders:write',
  7,
  true,
];

const types: readonly unknown[] = [
  'Bearer',
  'BEARER',
  'bearer ',
  'DPoP',
  'dpop',
  'mac',
  'N_A',
  'access_token',
  'refresh_token',
  'urn:ietf:params:oauth:token-type:access_token',
  '',
  null,
  5,
  ['Bearer'],
];

const confirmations: readonly unknown[] = [
  { jkt: digest },
  { 'x5t#S256': digest },
  { jkt: digest, 'x5t#S256': digest },
  { jkt: digest, kid: 'k' },
  { jkt: null },
  { jkt: 'short' },
  { kid: 'k' },
  {},
  null,
  'x',
];

/** Names that say something elsewhere, and nothing here. */
const strangers = ['username', 'client_id', 'Aud', 'expires_in', 'ext', '__proto__', 'constructor', 'at_hash', 'exp '];

export function changedMembers(draw: Draw, entries: readonly Entry[], nowS: number): readonly Entry[] {
  const without = (...names: readonly string[]): readonly Entry[] => entries.filter(([name]) => !names.includes(name));
  const said = (name: string, values: readonly unknown[]): Entry => [name, JSON.stringify(pick(draw, values))];
  switch (draw.below(8)) {
    case 0:
      return [...without('token_type'), said('token_type', types)];
    case 1:
      return [...without('cnf'), said('cnf', confirmations)];
    case 2:
      return [
        ...without('cnf', 'token_type'),
        said('cnf', confirmations),
        said('token_type', ['DPoP', 'dpop', 'Bearer']),
      ];
    case 3:
      return [...without('scope'), said('scope', permissions)];
    case 4:
      return [...entries, said(pick(draw, strangers), ['x', null, 5, [], {}, 'x'.repeat(9000)])];
    case 5:
      return [...without('aud'), said('aud', ['other-service', ['other-service'], ['other-service', 'more'], [], ''])];
    case 6:
      return [...without('exp', 'iat'), said('exp', [nowS - 61, nowS - 61, nowS - 3_600, String(nowS + 60), 1e300])];
    default:
      return once(draw, 2) ? without('sub') : without('client_id', 'scope');
  }
}
