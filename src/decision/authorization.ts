import { denial, type Denial } from './denial.js';
import type { Route } from './policy.js';
import type { Principal } from './principal.js';

/** Tells whether credentials of the principal's issuer count on this route; elsewhere they are no credential: 401, not 403. */
export function acceptsIssuer(route: Route, principal: Principal): boolean {
  return route.issuers === null || route.issuers.has(principal.issuerName);
}

/**
 * Decides whether a verified caller may use a route: `null`, or why not. One approval has to hold whole, subject and
 * permissions; a subject of one and the permissions of another make none. Names are compared exactly. Without any
 * approval nobody is approved, so a public route is not to be asked about here.
 */
export function authorize(route: Route, principal: Principal): Denial | null {
  const approvals = route.approvals.filter(({ subjects }) => subjects.has(principal.subject));
  if (approvals.length === 0) return denial('subject_not_approved');
  const held: ReadonlySet<string> = new Set(principal.permissions);
  const lacks = approvals.map(({ permissions }) => permissions.filter((permission) => !held.has(permission)));
  // Of several approvals the one that comes nearest is worth telling the operator.
  const missing = lacks.reduce((nearest, lack) => (lack.length < nearest.length ? lack : nearest));
  return missing.length === 0 ? null : { reason: 'permission_missing', missing };
}
