import { denial, type Denial } from '../denial.js';
import { approvesSubject } from './approval.js';
import type { Approval, Route } from './policy.js';
import type { AcceptedKinds } from '../token/credential.js';
import type { Principal } from '../token/principal.js';
import { unmetClaims } from '../session/claim-rules.js';

const fewPermissions = 16;

/**
 * Which credentials count on a route. Without a route any that some route takes: one has to be shown to learn that.
 *
 * @param takesSessions whether some route takes them.
 */
export function acceptedKinds(route: Route | null, takesSessions: boolean): AcceptedKinds {
  if (route === null) return { service: true, session: takesSessions };
  return { service: route.acceptsService, session: route.session !== null };
}

/**
 * Tells whether credentials of the principal's issuer count on this route; elsewhere they are no credential: 401, not
 * 403.
 */
export function acceptsIssuer(route: Route, principal: Principal): boolean {
  return principal.kind === 'session' || route.issuers === null || route.issuers.has(principal.issuerName);
}

/**
 * Decides whether a verified caller may use a route: `null`, or why not. One approval has to hold whole, subject and
 * permissions; a subject of one and the permissions of another make none. Subjects are compared
 * exactly unless the approval has how they may begin, permissions always. Without any
 * approval nobody is approved, so a public route is not to be asked about here. A session is held to the route's policy
 * for sessions, and to nothing else.
 */
export function authorize(route: Route, principal: Principal): Denial | null {
  if (principal.kind === 'session') return authorizeSession(route, principal);
  const holds = holderOf(principal.permissions);
  let isApproved = false;
  for (const approval of route.approvals) {
    if (!approvesSubject(approval, principal.subject)) continue;
    if (approval.permissions.every(holds)) return null;
    isApproved = true;
  }
  return isApproved
    ? { reason: 'permission_missing', missing: lackedPermissions(route, principal) }
    : denial('subject_not_approved');
}

/**
 * Permissions that would be needed besides those held, by the approval that comes nearest: for operators who write a
 * policy from what was refused. It counts approvals of other subjects where none names this one.
 */
export function lackedPermissions(route: Route, principal: Principal): readonly string[] {
  const own = route.approvals.filter((approval) => approvesSubject(approval, principal.subject));
  return route.approvals.length === 0 ? [] : fewestLacking(own.length === 0 ? route.approvals : own, principal);
}

/** Of several approvals the one that comes nearest is worth telling the operator. There is at least one. */
function fewestLacking(approvals: readonly Approval[], principal: Principal): readonly string[] {
  const holds = holderOf(principal.permissions);
  const lacks = approvals.map(({ permissions }) => permissions.filter((permission) => !holds(permission)));
  return lacks.reduce((nearest, lack) => (lack.length < nearest.length ? lack : nearest));
}

/** Tells which permissions are held. To arrange a few for looking them up takes longer than to look through them. */
function holderOf(permissions: readonly string[]): (permission: string) => boolean {
  if (permissions.length <= fewPermissions) return (permission) => permissions.includes(permission);
  const held: ReadonlySet<string> = new Set(permissions);
  return (permission) => held.has(permission);
}

function authorizeSession({ session: policy }: Route, { session }: Principal): Denial | null {
  if (policy === null || session === undefined) return denial('credential_kind_refused');
  const unmet = unmetClaims(policy, session.claims);
  if (unmet.length === 0) return null;
  const names = new Set(unmet.flatMap(({ path }) => path.slice(0, 1)));
  return {
    reason: 'session_claim_missing',
    session: { message: 'invalid claim', claims: [...names] },
    missing: unmet.map(({ path }) => path.join('.')),
  };
}
