import { isLoopback } from '../../lib/ip-ranges.js';
import { sessionIssuerName } from '../../decision/session/token.js';
import type { ConfigParts } from '../load/parse-sections.js';
import { nameOf, type Report } from '../load/report.js';
import { readUrl } from './addresses.js';
import type { Path } from '../load/source-tree.js';

/** What only service tokens are held to. */
const serviceKeys = ['subjects', 'permissions', 'any_of', 'issuers'] as const;

/** Names from the payload inwards. */
const claimPath = /^[^.\x00-\x1f\x7f]{1,256}(\.[^.\x00-\x1f\x7f]{1,256}){0,15}$/;

interface RouteCheck {
  readonly path: Path;
  readonly parts: ConfigParts;
  readonly report: Report;
}

/** Whether a route, as it is written, lets service tokens count. */
export function takesServiceTokens({ written }: ConfigParts, path: Path): boolean {
  const accept = written([...path, 'accept']);
  return !Array.isArray(accept) || accept.length === 0 || accept.includes('service');
}

/**
 * Checks where sessions come from, and what routes say of them, whether or not something else is wrong with a route.
 */
export function checkSessions(parts: ConfigParts, report: Report): void {
  let isUsed = false;
  for (const { path } of parts.routes) isUsed = checkRoute({ path, parts, report }) || isUsed;
  if (parts.sessions === null || parts.sessions.value === null) return;
  const { core_url: coreUrl, api_key: apiKey } = parts.sessions.value;
  if (!isUsed) {
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

/** Whether the route accepts sessions. */
function checkRoute(check: RouteCheck): boolean {
  const { path, parts, report } = check;
  const accept = parts.written([...path, 'accept']);
  const kinds: readonly unknown[] = Array.isArray(accept) ? accept : [];
  const isAccepted = kinds.includes('session');
  checkKinds(check, kinds);
  const session = parts.written([...path, 'session']) ?? null;
  if (session !== null && !isAccepted) {
    report.keyError(
      [...path, 'session'],
      `${nameOf(path)}.session has no use: the route accepts no sessions`,
      'accept: [service, session]',
    );
  }
  if (!isAccepted) return false;
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
  if (parts.written([...path, 'single_use']) === true) {
    report.keyError(
      [...path, 'single_use'],
      `${nameOf(path)}.single_use stands beside sessions, whose tokens have no jti and would all be refused`,
      'a route of its own for sessions',
    );
  }
  checkServiceKeys(check);
  checkClaims(check);
  return true;
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
  if (!parts.isWritten([...path, 'access'])) return;
  for (const key of ['accept', 'session']) {
    if ((parts.written([...path, key]) ?? null) !== null) {
      report.keyError([...path, key], `${nameOf(path)}.${key} stands beside ${nameOf(path)}.access`, 'one of them');
    }
  }
}

function checkServiceKeys({ path, parts, report }: RouteCheck): void {
  if (takesServiceTokens(parts, path)) return;
  for (const key of serviceKeys) {
    if (!parts.isWritten([...path, key])) continue;
    report.keyError(
      [...path, key],
      `${nameOf(path)}.${key} has no use: the route accepts no service tokens`,
      'accept: [service, session], or session.claims',
    );
  }
}

function checkClaims({ path, parts, report }: RouteCheck): void {
  const at = [...path, 'session', 'claims'];
  const claims = parts.written(at);
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
