import { approvesSubject } from '../approval.js';
import type { Approval, Route } from '../policy.js';
import { isSubsetOf } from '../../session/claim-rules.js';

/**
 * Whether one route lets through somebody whom another refuses: the question behind every check that compares two
 * policies.
 *
 * A caller is an issuer, a subject and a set of permissions, and more permissions never hurt: so it is enough to try,
 * for each approved subject, exactly the permissions that the approval asks for. Sessions are another matter: they
 * count or not, and claims that are asked for shut some out. Beside a credential a route may ask for a certificate, and
 * of pages that open WebSockets for their origin.
 *
 * @param issuerNames every issuer of the config: what `issuers: null` stands for
 */
export function isLessRestrictive(route: Route, than: Route, issuerNames: readonly string[]): boolean {
  if (admitsMorePages(route, than)) return true;
  if (than.access === 'public') return false;
  if (route.access === 'public') return true;
  if (route.mode === 'shadow' && than.mode === 'enforce') return true;
  return admitsMoreSessions(route, than) || admitsMoreServices(route, than, issuerNames);
}

/**
 * Whether a page may open WebSockets that may not at the other route. Where no origins are named, any page may with a
 * service token, but with a session those of the same host alone: then any name may be one more. A WebSocket is opened
 * by GET only, and this holds for every method: the safe side.
 */
function admitsMorePages(route: Route, than: Route): boolean {
  if (!route.allowsWebSocket || !than.allowsWebSocket) return false;
  const takeSessions = route.session !== null && than.session !== null;
  return namesMore(route.origins, than.origins) || (takeSessions && than.origins === null && route.origins !== null);
}

/** Whether one set names what another, that has to be met, does not; `null` asks for nothing. */
function namesMore(names: ReadonlySet<string> | null, than: ReadonlySet<string> | null): boolean {
  return than !== null && (names === null || [...names].some((name) => !than.has(name)));
}

function admitsMoreSessions({ session, ...route }: Route, than: Route): boolean {
  if (session === null) return false;
  if (than.session === null || asksForLess(route, than)) return true;
  return !isSubsetOf(than.session, session);
}

function admitsMoreServices(route: Route, than: Route, issuerNames: readonly string[]): boolean {
  if (!route.acceptsService) return false;
  if (!than.acceptsService) return route.approvals.length > 0;
  const issuers = issuerNames.filter((name) => countsAt(route, name));
  if (issuers.length === 0) return false;
  if (issuers.some((name) => !countsAt(than, name)) || asksForLess(route, than)) return route.approvals.length > 0;
  return route.approvals.some((approval) => admitsMore(approval, than.approvals));
}

function countsAt(route: Route, issuerName: string): boolean {
  return route.issuers === null || route.issuers.has(issuerName);
}

/** Whether the same caller passes without something that the other route insists on beside the credential. */
function asksForLess(route: Pick<Route, 'clientCertificates' | 'reservation'>, than: Route): boolean {
  return reservesLess(route, than) || namesMore(route.clientCertificates, than.clientCertificates);
}

/** Whether a write passes without the key, or with the used token, that the other route insists on. */
function reservesLess({ reservation }: Pick<Route, 'reservation'>, than: Route): boolean {
  if (than.reservation === null) return false;
  const { key, singleUse } = than.reservation;
  return (singleUse && reservation?.singleUse !== true) || (key === 'required' && reservation?.key !== 'required');
}

/** Whether both take keys, each for an operation of its own: the same key is then another one at the other route. */
export function keepsKeysApart({ reservation: one }: Route, { reservation: other }: Route): boolean {
  return one !== null && other !== null && one.key !== null && other.key !== null && one.operation !== other.operation;
}

function admitsMore(approval: Approval, others: readonly Approval[]): boolean {
  const held = new Set(approval.permissions);
  const satisfied = others.filter((other) => other.permissions.every((permission) => held.has(permission)));
  for (const subject of approval.subjects) {
    if (!satisfied.some((other) => approvesSubject(other, subject))) return true;
  }
  // What begins so is without end: only another beginning covers all of it.
  return approval.prefixes.some(
    (prefix) => !satisfied.some((other) => other.prefixes.some((theirs) => prefix.startsWith(theirs))),
  );
}
