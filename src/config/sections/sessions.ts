/** The section that says where sessions of users come from. */
import type { z } from 'zod';
import type { ParsedConfig } from '../load/parse-sections.js';
import { nameOf, type Report } from '../load/report.js';
import type { Path } from '../load/source-tree.js';
import { readUrl } from '../schema/addresses.js';
import { jwksSchema } from './issuers/key-access.js';
import type { RouteFile } from './routes/routes.js';
import { always, secretsIn, whenOff, withoutSecrets } from '../schema/key-changes.js';
import { baseUrl, flag, host, map, text, webOrigin, word } from '../schema/scalars.js';
import { section } from '../schema/section.js';
import type { SessionSettings } from '../types.js';
import type { SessionPolicy } from '../../decision/session/claim-rules.js';
import { sessionIssuerName } from '../../decision/session/token.js';
import { coreKeyRules } from '../../decision/token/profiles.js';
import { isLoopback } from '../../lib/ip-ranges.js';

/** As the Core takes them. */
const apiKeyAllowed = 'a key of 20 to 256 letters, digits, `=` and `-`';

const sessionsSchema = map({
  core_url: baseUrl().describe(
    'Where the Core is. Its keys are fetched from there, and it is asked about the first token after a refresh.',
  ),
  api_key: text(/^[A-Za-z0-9=-]{20,}$/, apiKeyAllowed, 256)
    .nullable()
    .prefault(null)
    .describe('Key for the Core, where it asks for one: a placeholder, such as `${file:/secrets/core-api-key}`.'),
  api_domain: webOrigin().describe(
    'The API domain of the service that makes the sessions. With `api_base_path` it is their exact `iss`.',
  ),
  api_base_path: text(/^\/(?:[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*\/?)?$/, 'a path, such as /auth', 256)
    .prefault('/auth')
    .describe('The API base path of that service.'),
  check_database: flag()
    .prefault(false)
    .describe(
      'Whether the Core is asked about every request, so that a session that was revoked there ends at once. Without, its token lives on until it ' +
        'expires.',
    ),
  cookie_domain: host()
    .nullable()
    .prefault(null)
    .describe(
      'Domain of the session cookies, as that service sets it; a renewed access token goes back in such a cookie. Default: the host of the request.',
    ),
  cookie_same_site: word('lax', 'strict', 'none')
    .prefault('lax')
    .describe('`SameSite` of the session cookies, as that service sets it.'),
});

type SessionsFile = z.output<typeof sessionsSchema>;

export const sessions = section({
  schema: sessionsSchema
    .nullable()
    .prefault(null)
    .describe('Where sessions of users come from. Required where a route accepts them. Read once, at start.'),
  check: checkSessions,
  compile: (file, { table }): { readonly sessions: SessionSettings | null } => {
    // The SDK is not loaded for nothing.
    const isUsed = table.routes.some(({ session }) => session !== null);
    return { sessions: file === null || !isUsed ? null : compileSessions(file) };
  },
  // Compared for a restart where some route accepts sessions before and after.
  keys: {
    core_url: {
      restart: true,
      of: ({ sessions }) => sessions?.coreUrl,
      shown: ({ sessions }) => (sessions === null ? null : withoutSecrets(sessions.coreUrl)),
      hidden: ({ sessions }) => sessions && secretsIn(sessions.coreUrl),
      widens: always,
    },
    api_key: { restart: true, of: ({ sessions }) => sessions?.apiKey },
    api_domain: {
      restart: true,
      of: ({ sessions }) => sessions?.apiDomain,
      shown: ({ sessions }) => sessions?.apiDomain ?? null,
      widens: always,
    },
    api_base_path: {
      restart: true,
      of: ({ sessions }) => sessions?.apiBasePath,
      shown: ({ sessions }) => sessions?.apiBasePath ?? null,
      widens: always,
    },
    check_database: {
      restart: true,
      of: ({ sessions }) => sessions?.checkDatabase,
      shown: ({ sessions }) => sessions?.checkDatabase ?? null,
      widens: whenOff,
    },
    cookie_domain: { restart: true, of: ({ sessions }) => sessions?.cookie.domain, widens: always },
    cookie_same_site: { restart: true, of: ({ sessions }) => sessions?.cookie.sameSite, widens: always },
  },
});

/** What only service tokens are held to. */
const serviceKeys = ['subjects', 'permissions', 'any_of', 'issuers'] as const;

/** Names from the payload inwards. */
const claimPath = /^[^.\x00-\x1f\x7f]{1,256}(\.[^.\x00-\x1f\x7f]{1,256}){0,15}$/;

interface RouteCheck {
  readonly path: Path;
  readonly parts: ParsedConfig;
  readonly report: Report;
}

/** Whether a route, as it is written, lets service tokens count. */
export function takesServiceTokens({ rawValue }: ParsedConfig, path: Path): boolean {
  const accept = rawValue([...path, 'accept']);
  return !Array.isArray(accept) || accept.length === 0 || accept.includes('service');
}

/** Checks where sessions come from. */
function checkSessions(parts: ParsedConfig, report: Report): void {
  if (parts.sessions === null || parts.sessions.value === null) return;
  const { core_url: coreUrl, api_key: apiKey } = parts.sessions.value;
  if (!parts.routes.some(({ path }) => kindsOf(path, parts).includes('session'))) {
    report.warning(
      ['sessions'],
      'sessions has no use: no route accepts sessions',
      'accept: [session] on a route, or no sessions',
    );
  }
  if (coreUrl.startsWith('http:') && !isLoopback(readUrl(coreUrl)?.hostname ?? '')) {
    report.warning(
      ['sessions', 'core_url'],
      'keys and sessions.api_key cross the network in plaintext: sessions.core_url is http on another host',
      'https, a loopback address, or a network that nobody else is on',
    );
  }
  if (apiKey !== null && report.mayShow(['sessions', 'api_key'])) {
    report.warning(
      ['sessions', 'api_key'],
      'sessions.api_key stands in the config: who reads the file may mint any token',
      '${file:PATH}, with a file that others may not read',
    );
  }
  if (parts.issuers.has(sessionIssuerName)) {
    report.keyError(
      ['issuers', sessionIssuerName],
      `issuers.${sessionIssuerName} has the name that sessions go by in logs and metrics`,
      'another name',
    );
  }
}

/** Checks what routes say of sessions, whether or not something else is wrong with a route. */
export function checkSessionsOfRoutes(parts: ParsedConfig, report: Report): void {
  for (const { path } of parts.routes) checkRoute({ path, parts, report });
}

/** Returns the kinds of credentials that a route accepts, as the file has them. */
function kindsOf(path: Path, { rawValue }: ParsedConfig): readonly unknown[] {
  const accept = rawValue([...path, 'accept']);
  return Array.isArray(accept) ? accept : [];
}

function checkRoute(check: RouteCheck): void {
  const { path, parts, report } = check;
  const kinds = kindsOf(path, parts);
  const isAccepted = kinds.includes('session');
  checkKinds(check, kinds);
  const session = parts.rawValue([...path, 'session']) ?? null;
  if (session !== null && !isAccepted) {
    report.keyError(
      [...path, 'session'],
      `${nameOf(path)}.session has no use: the route accepts no sessions`,
      'accept: [service, session]',
    );
  }
  if (!isAccepted) return;
  const at = [...path, 'accept'];
  if (session === null) {
    report.error(
      at,
      `${nameOf(path)} accepts sessions, and ${nameOf(path)}.session does not say which`,
      'session: { claims: … }',
    );
  }
  if (parts.sessions?.value === null) {
    report.error(
      at,
      `${nameOf(path)} accepts sessions, and nothing says where they come from`,
      'core_url and api_domain in sessions',
    );
  }
  if (parts.rawValue([...path, 'single_use']) === true) {
    report.keyError(
      [...path, 'single_use'],
      `${nameOf(path)}.single_use stands beside sessions, whose tokens have no jti and would all be refused`,
      'a route of its own for sessions',
    );
  }
  checkServiceKeys(check);
  checkClaims(check);
}

function checkKinds({ path, parts, report }: RouteCheck, kinds: readonly unknown[]): void {
  const at = [...path, 'accept'];
  kinds.forEach((kind, index) => {
    if (kinds.indexOf(kind) === index) return;
    report.error(
      [...at, index],
      `${nameOf([...at, index])} is ${report.show([...at, index])}, which the list has before`,
      'each kind once',
    );
  });
  if (!parts.isPresent([...path, 'access'])) return;
  for (const key of ['accept', 'session']) {
    if ((parts.rawValue([...path, key]) ?? null) !== null) {
      report.keyError([...path, key], `${nameOf(path)}.${key} stands beside ${nameOf(path)}.access`, 'one of them');
    }
  }
}

function checkServiceKeys({ path, parts, report }: RouteCheck): void {
  if (takesServiceTokens(parts, path)) return;
  for (const key of serviceKeys) {
    if (!parts.isPresent([...path, key])) continue;
    report.keyError(
      [...path, key],
      `${nameOf(path)}.${key} has no use: the route accepts no service tokens`,
      'accept: [service, session], or session.claims',
    );
  }
}

function checkClaims({ path, parts, report }: RouteCheck): void {
  const at = [...path, 'session', 'claims'];
  const claims = parts.rawValue(at);
  if (typeof claims !== 'object' || claims === null) return;
  const paths = Object.keys(claims);
  if (paths.length === 0) {
    report.note(
      at,
      `route ${report.show([...path, 'name'])} asks for no claim: every user with a session is let through`,
    );
  }
  for (const claim of paths) {
    if (claimPath.test(claim)) continue;
    report.keyError(
      [...at, claim],
      `${JSON.stringify(claim)} is no path to a claim`,
      'names with a dot between, such as st-role.v',
    );
  }
}

/**
 * Where sessions come from, as the SDK has it: it lower-cases the API domain and drops default ports and trailing
 * slashes.
 */
function compileSessions(file: SessionsFile): SessionSettings {
  const coreUrl = file.core_url.replace(/\/+$/, '');
  const jwks = jwksSchema.parse({});
  const apiDomain = new URL(file.api_domain).origin;
  const apiBasePath = file.api_base_path.replace(/\/+$/, '');
  return {
    coreUrl,
    apiKey: file.api_key,
    apiDomain,
    apiBasePath,
    issuer: `${apiDomain}${apiBasePath}`,
    keys: {
      // Where the SDK fetches them too; open to all, so that no key has to be sent along.
      source: { kind: 'url', url: `${coreUrl}/.well-known/jwks.json` },
      rules: coreKeyRules,
      caFile: null,
      tokenFile: null,
      minAgeMs: jwks.min_age,
      maxAgeMs: jwks.max_age,
      maxStaleMs: jwks.max_stale,
      cooldownMs: jwks.cooldown,
      timeoutMs: jwks.timeout,
      maxBytes: jwks.max_bytes,
    },
    checkDatabase: file.check_database,
    cookie: { domain: file.cookie_domain, sameSite: file.cookie_same_site, secure: apiDomain.startsWith('https:') },
  };
}

/** What a route asks of sessions; `null` where it accepts none. */
export function compileSessionPolicy({ accept, session }: RouteFile): SessionPolicy | null {
  if (session === null || !accept.includes('session')) return null;
  return {
    claims: Object.entries(session.claims).map(([path, value]) => ({ path: path.split('.'), value })),
    forwardsTokens: session.forward_tokens,
  };
}
