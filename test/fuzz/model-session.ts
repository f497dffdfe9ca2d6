/**
 * docs/contract.md 3.4 to 3.6 and docs/sessions.md for users: which credential counts, what a session is worth, and
 * what of it goes on.
 */
import type { Field } from './model-fields.js';
import { readObject, type Json } from './model-json.js';
import type { Policy, PolicyRoute } from './model-policy.js';
import { decodePart, isVisible } from './model-text.js';
import { isSigned, type PublicNumbers } from './profiles/model-signatures.js';

/** What a request shows to prove who calls. */
export type Shown =
  | { readonly kind: 'service'; readonly token: string; readonly scheme: 'Bearer' | 'DPoP' }
  | { readonly kind: 'session'; readonly token: string; readonly inCookie: boolean };

/** A user, by a session that holds. */
export interface User {
  readonly subject: string;
  readonly issuer: string;
  readonly keyId: string;
  readonly issuedAtS: number;
  readonly tokenId: null;
  readonly claims: ReadonlyMap<string, Json>;
}

/** Which credential counts on a route, by its form alone; `null` where there is none, or more than one. */
export function credentialOf(
  route: PolicyRoute | null,
  policy: Policy,
  passed: readonly Field[],
  authorization: string | null,
): Shown | null {
  const [, name, bearer = null] = /^(bearer|dpop) ([A-Za-z0-9._~+/-]+=*)$/i.exec(authorization ?? '') ?? [];
  const scheme = name?.toLowerCase() === 'dpop' ? 'DPoP' : 'Bearer';
  const anywhere = new Set([
    'service',
    ...(policy.sessions === null ? [] : policy.routes.flatMap(({ accept = [] }) => accept)),
  ]);
  const kinds = route === null ? [...anywhere] : (route.accept ?? ['service']);
  if (!kinds.includes('session')) return bearer === null ? null : { kind: 'service', token: bearer, scheme };
  const [cookie, ...others] = cookiesIn(passed).filter(({ names }) => names.includes('sAccessToken'));
  if (cookie !== undefined) {
    return authorization !== null || others.length > 0
      ? null
      : { kind: 'session', token: cookie.value, inCookie: true };
  }
  if (bearer === null) return null;
  const header = bearer.length > 8192 || !bearer.includes('.') ? null : decodePart(bearer.split('.')[0] ?? '');
  // A session is proved by its cookie, and by no key.
  if (scheme === 'Bearer' && header !== null && readObject(header)?.has('version') === true) {
    return { kind: 'session', token: bearer, inCookie: false };
  }
  return kinds.includes('service') ? { kind: 'service', token: bearer, scheme } : null;
}

/** Who uses a session; a status where nobody does. */
export function readUser(
  shown: Extract<Shown, { kind: 'session' }>,
  method: string,
  passed: readonly Field[],
  policy: Policy,
  keys: ReadonlyMap<string, PublicNumbers>,
  nowMs: number,
): User | number {
  const { sessions } = policy;
  const parts = shown.token.split('.');
  if (sessions === null || shown.token.length > 8192 || parts.length !== 3) return 401;
  const [header, payload, signature] = parts.map(decodePart);
  if (!header || !payload || !signature) return 401;
  const members = readObject(header);
  const [keyId, version] = [members?.get('kid'), members?.get('version')];
  if (members === null || [...members.keys()].some((name) => !['alg', 'kid', 'typ', 'version'].includes(name))) {
    return 401;
  }
  if (
    members.get('alg') !== 'RS256' ||
    members.get('typ') !== 'JWT' ||
    !['3', '4', '5'].some((known) => known === version)
  ) {
    return 401;
  }
  if (typeof keyId !== 'string' || !isVisible(keyId, 256) || !keyId.startsWith('d-')) return 401;
  const key = keys.get(keyId);
  if (key === undefined || !isSigned(`${parts[0] ?? ''}.${parts[1] ?? ''}`, signature, key)) return 401;
  const claims = readObject(payload);
  const issuer = sessions.api_domain + sessions.api_base_path;
  if (claims === null || ['source', 'token_type'].some((name) => claims.has(name)) || claims.get('iss') !== issuer) {
    return 401;
  }
  const [sub, iat, exp, handle, hash, parent, antiCsrf] = [
    'sub',
    'iat',
    'exp',
    'sessionHandle',
    'refreshTokenHash1',
    'parentRefreshTokenHash1',
    'antiCsrfToken',
  ].map((name) => claims.get(name));
  if (!isText(handle) || !isText(hash) || (claims.has('stt') && claims.get('stt') !== 0)) return 401;
  if (typeof sub !== 'string' || !isVisible(sub, 1024)) return 401;
  if (typeof iat !== 'number' || typeof exp !== 'number' || !Number.isSafeInteger(iat) || !Number.isSafeInteger(exp)) {
    return 401;
  }
  if (![parent, antiCsrf].every((value) => value === undefined || value === null || isText(value))) return 401;
  // A minute is the most that clocks may differ by anywhere.
  if (iat > nowMs / 1000 + 60 || nowMs / 1000 >= exp) return 401;
  if (shown.inCookie && method !== 'GET' && !isOfOwnPage(antiCsrf, passed)) return 401;
  const status = statusOfCore(handle, isText(parent));
  return status ?? { subject: sub, issuer, keyId, issuedAtS: iat, tokenId: null, claims };
}

/** What the Core that stands in says of a session, by its handle: only who asks learns that it is gone. */
function statusOfCore(handle: string, asks: boolean): number | null {
  if (handle === 'away') return 503;
  return handle === 'stale' || (handle === 'gone' && asks) ? 401 : null;
}

/** What is in the cookie goes with what any page sends; what is in these fields does not. */
function isOfOwnPage(antiCsrf: Json | undefined, passed: readonly Field[]): boolean {
  const valuesOf = (wanted: string): string[] =>
    passed.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value);
  if (antiCsrf === undefined || antiCsrf === null) return valuesOf('rid').some((value) => value !== '');
  const given = valuesOf('anti-csrf');
  return given.length === 1 && given[0] === antiCsrf;
}

/** Whether the user meets what the route asks: each value by itself or in a list, and nothing converted. */
export function meetsClaims({ session }: PolicyRoute, { claims }: User): boolean {
  return Object.entries(session?.claims ?? {}).every(([path, wanted]) => {
    let value: Json | undefined = claims;
    for (const name of path.split('.')) {
      value = value instanceof Map ? (value as ReadonlyMap<string, Json>).get(name) : undefined;
    }
    return Array.isArray(value) ? value.includes(wanted) : value === wanted;
  });
}

const sdkCookies = [
  'saccesstoken',
  'srefreshtoken',
  'sidrefreshtoken',
  'sfronttoken',
  'santicsrf',
  'sirtfrontend',
  'st-access-token',
  'st-refresh-token',
  'st-last-access-token-update',
];

/** What the receiver gets on a route that takes sessions: nothing with which it could act as the user. */
export function withoutSession(passed: readonly Field[]): readonly Field[] {
  return passed.flatMap(([name, value]): Field[] => {
    const lower = name.toLowerCase();
    const dashed = lower.replaceAll('_', '-').replaceAll('.', '-');
    if (dashed.startsWith('st-') || dashed === 'anti-csrf' || dashed === 'front-token') return [];
    if (lower !== 'cookie') return [[name, value]];
    const kept = cookiesIn([[name, value]]).filter(
      ({ names }) => !names.some((one) => sdkCookies.includes(plainName(one))),
    );
    return kept.length === 0 ? [] : [[name, kept.map(({ text }) => text).join('; ')]];
  });
}

/** As a reader has it that decodes, and drops quotes and blanks. */
function plainName(name: string): string {
  const decoded = name.replace(/%[0-9a-fA-F]{2}/g, (escape) =>
    String.fromCharCode(Number.parseInt(escape.slice(1), 16)),
  );
  return Array.from(decoded)
    .filter((letter) => letter > ' ' && letter <= '~' && letter !== '"' && letter !== "'")
    .join('')
    .toLowerCase();
}

interface Cookie {
  readonly text: string;
  readonly value: string;
  /** Its name, and those that a reader finds in it who parts cookies at commas too (RFC 2109). */
  readonly names: readonly string[];
}

function cookiesIn(fields: readonly Field[]): readonly Cookie[] {
  const texts = fields
    .filter(([name]) => name.toLowerCase() === 'cookie')
    .flatMap(([, value]) => value.split(';'))
    .map(trimmed);
  return texts
    .filter((text) => text !== '')
    .map((text) => {
      const at = text.indexOf('=');
      const names = text
        .split(',')
        .map((part) => (part.includes('=') ? trimmed(part.slice(0, part.indexOf('='))) : ''));
      return { text, value: at < 0 ? text : trimmed(text.slice(at + 1)), names };
    });
}

function trimmed(text: string): string {
  return text.replace(/^[ \t]+/, '').replace(/[ \t]+$/, '');
}

function isText(value: Json | undefined): value is string {
  return typeof value === 'string' && value !== '';
}
