/**
 * The headers in which SuperTokens' frontends send sessions, and those in which a session goes back. Names as its SDK
 * has them.
 */
import { trimBlanks } from '../../lib/text.js';
import type { RenewedSession } from '../token/principal.js';

/** The cookie that holds a session's access token. */
const accessTokenCookie = 'sAccessToken';

/** Cookies that the SDKs set, in lower case: whoever has them is the user, or looks like the user. */
const sessionCookies: ReadonlySet<string> = new Set([
  'saccesstoken',
  'srefreshtoken',
  'sidrefreshtoken',
  'sfronttoken',
  'santicsrf',
  'sirtfrontend',
  'st-access-token',
  'st-refresh-token',
  'st-last-access-token-update',
]);

const tokenHeaders: ReadonlySet<string> = new Set(['anti-csrf', 'front-token']);

/** What a frontend's request says besides its credential. */
export interface SessionHeaders {
  /** Values of each cookie named `sAccessToken`, in order. */
  readonly accessTokens: readonly string[];
  readonly antiCsrf: string | null;
  /** Whether there is a `rid`, which no form and no image of a foreign page can send. */
  readonly hasRid: boolean;
}

/** Reads them out of headers that came: names and values in turn. */
export function readSessionHeaders(passed: readonly string[]): SessionHeaders {
  const accessTokens: string[] = [];
  let antiCsrf: string | null = null;
  let hasRid = false;
  for (let i = 0; i + 1 < passed.length; i += 2) {
    const value = passed[i + 1] ?? '';
    switch ((passed[i] ?? '').toLowerCase()) {
      case 'cookie':
        for (const cookie of cookiesOf(value)) {
          if (cookie.names.includes(accessTokenCookie)) accessTokens.push(cookie.value);
        }
        break;
      case 'anti-csrf':
        // Two of them are none that could be right.
        antiCsrf = antiCsrf === null ? value : `${antiCsrf}, ${value}`;
        break;
      case 'rid':
        hasRid ||= value !== '';
        break;
      default:
    }
  }
  return { accessTokens, antiCsrf, hasRid };
}

/** Between semicolons, in characters of which base64url and tokens consist. */
const plainCookie = /^sAccessToken=(?:""|([\w.-]*))$/;

/**
 * The access tokens of sessions in cookies, where every reader has the same: each between semicolons, spelt as the SDK
 * does. `null` where something else may be one to some reader, as by another case of its name, quotes, escapes, blanks
 * or commas, or since it stands in one of several lines, which some put together.
 */
export function plainAccessTokens(passed: readonly string[]): readonly string[] | null {
  const lines = passed.filter((_value, i) => i % 2 === 1 && passed[i - 1]?.toLowerCase() === 'cookie');
  const found = new Set<string>();
  const others: string[] = [];
  let isThere = false;
  for (const text of lines.flatMap((line) => line.split(';')).map(trimBlanks)) {
    const plain = plainCookie.exec(text);
    const parts = plain?.[1]?.split('.') ?? [];
    // A word, such as of a cookie that was cleared, is no token to anybody.
    const isPlain = plain !== null && (parts.length < 2 || (parts.length === 3 && !parts.includes('')));
    if (isPlain) isThere = true;
    else others.push(text);
    if (isPlain && parts.length === 3) found.add(parts.join('.'));
  }
  if (isThere && lines.length > 1) return null;
  const rest = others.join(';');
  const readings = [rest, percentDecoded(withoutBackslashes(rest)), withoutBackslashes(percentDecoded(rest))];
  return readings.some(mayHoldAccessToken) ? null : [...found];
}

/**
 * Whether a cookie may have that name to somebody: behind what ends no other name, and so before a `=`; also where
 * something that some readers drop stands in it.
 */
function mayHoldAccessToken(cookies: string): boolean {
  const names = cookies.toLowerCase().split('=').slice(0, -1);
  return names.some((name) =>
    [name, dropped(name)].some((each) => ` ${each.replace(/[^\w.-]+/g, ' ').trimEnd()}`.endsWith(' saccesstoken')),
  );
}

/**
 * Leaves out what belongs to a session: the cookies of the SDKs, `st-*`, `anti-csrf` and `front-token`. A cookie whose
 * name only looks like one of them, in case, percent-encoding, quotes or what stands around it, goes too: some readers
 * fold these.
 */
export function withoutSessionHeaders(passed: readonly string[]): readonly string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < passed.length; i += 2) {
    const name = passed[i] ?? '';
    const value = passed[i + 1] ?? '';
    const lower = name.toLowerCase();
    if (lower !== 'cookie') {
      if (!isSessionHeaderName(lower)) kept.push(name, value);
      continue;
    }
    const others = cookiesOf(value).filter(({ names }) => !names.some((name) => sessionCookies.has(folded(name))));
    if (others.length > 0) kept.push(name, others.map(({ text }) => text).join('; '));
  }
  return kept;
}

/** How a session's cookie is set. */
export interface SessionCookie {
  /** `null` is the host of the request. */
  readonly domain: string | null;
  readonly sameSite: 'lax' | 'strict' | 'none';
  readonly secure: boolean;
}

/**
 * The cookie outlives the token in it, as the SDK's does: one that expired tells that there is a session to refresh.
 */
const cookieLifetimeMs = 365 * 24 * 60 * 60 * 1000;

/**
 * Adds a new access token to the headers of a response, names and values in turn: as header or as cookie, like the one
 * it replaces. What the upstream says of the session gives way to it.
 */
export function withRenewedSession(
  headers: readonly string[],
  { accessToken, frontToken, to }: RenewedSession,
  cookie: SessionCookie,
  nowMs: number,
): string[] {
  const kept: string[] = [];
  const exposed: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    const lower = name.toLowerCase();
    if (lower === exposes.toLowerCase()) exposed.push(value);
    const isReplaced =
      lower === exposes.toLowerCase() ||
      lower === 'st-access-token' ||
      lower === 'front-token' ||
      (lower === 'set-cookie' && nameOf(value) === accessTokenCookie);
    if (!isReplaced) kept.push(name, value);
  }
  kept.push('front-token', frontToken, exposes, exposedWith(exposed, to));
  if (to === 'header') return [...kept, 'st-access-token', accessToken];
  const attributes = [
    `${accessTokenCookie}=${accessToken}`,
    ...(cookie.domain === null ? [] : [`Domain=${cookie.domain}`]),
    'Path=/',
    `Expires=${new Date(nowMs + cookieLifetimeMs).toUTCString()}`,
    'HttpOnly',
    ...(cookie.secure ? ['Secure'] : []),
    `SameSite=${sameSites[cookie.sameSite]}`,
  ];
  return [...kept, 'Set-Cookie', attributes.join('; ')];
}

/** Says which headers of a response a page may read. */
export const exposes = 'Access-Control-Expose-Headers';

/**
 * Adds those that a renewed session comes in to what pages may read already: each once.
 *
 * @param values of the header, each a list of names.
 */
export function exposedWith(values: readonly string[], to: RenewedSession['to']): string {
  const ours = to === 'header' ? ['front-token', 'st-access-token'] : ['front-token'];
  const named = new Set(['']);
  const names = [...values.flatMap((value) => value.split(',')), ...ours].map(trimBlanks).filter((name) => {
    const isNew = !named.has(name.toLowerCase());
    named.add(name.toLowerCase());
    return isNew;
  });
  return names.join(', ');
}

const sameSites = { lax: 'Lax', strict: 'Strict', none: 'None' } as const;

/** Some upstreams read `_` and `.` in names of headers as `-`. */
function isSessionHeaderName(lowerCase: string): boolean {
  const name = lowerCase.replace(/[_.]/g, '-');
  return tokenHeaders.has(name) || name.startsWith('st-');
}

interface Cookie {
  /** As it came. */
  readonly text: string;
  readonly value: string;
  /** Its name, and what a reader that also parts cookies at commas or blanks takes for names. */
  readonly names: readonly string[];
}

function cookiesOf(header: string): readonly Cookie[] {
  return header
    .split(';')
    .map(trimBlanks)
    .filter((text) => text !== '')
    .map((text) => {
      // Without `=`, all of it is the value.
      return {
        text,
        value: trimBlanks(text.slice(text.indexOf('=') + 1)),
        names: namesIn(text),
      };
    });
}

function nameOf(text: string): string {
  return trimBlanks(text.slice(0, Math.max(0, text.indexOf('='))));
}

/** Python's http.cookies begins a cookie at a blank, and lets blanks stand before its `=`. */
function namesIn(text: string): readonly string[] {
  if (!text.includes('=')) return [];
  const names = text.split(',').map(nameOf);
  if (!/[ \t]/.test(text)) return names;
  const behindBlanks = text
    .split('=')
    .slice(0, -1)
    .map(trimBlanks)
    .flatMap((part) => {
      const blank = Math.max(part.lastIndexOf(' '), part.lastIndexOf('\t'));
      return blank < 0 ? [] : [part.slice(blank + 1)];
    });
  return [...names, ...behindBlanks];
}

/** The name as the most lenient reader has it: decoded, without quotes, and without what some take for blanks. */
function folded(name: string): string {
  return dropped(percentDecoded(name)).toLowerCase();
}

function dropped(name: string): string {
  return name.replace(/[^\x21-\x7e]|["']/g, '');
}

/** Every octet by itself: what a name consists of has one. */
function percentDecoded(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_escape, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** As Python's http.cookies reads what is quoted, and with it Django, Starlette and Werkzeug. */
function withoutBackslashes(text: string): string {
  return text.replace(/\\(?:([0-3][0-7]{2})|(.))/g, (_escape, octal: string | undefined, character: string) =>
    octal === undefined ? character : String.fromCharCode(Number.parseInt(octal, 8)),
  );
}
