/** Shadow mode: what would be refused for want of a credential or a right goes on, and is written down. */
import { lackedPermissions } from './authorize.js';
import { responseOf, type Denial } from '../denial.js';
import type { Route } from './policy.js';
import type { Principal } from '../token/principal.js';
import { foldedPlaces, placesRoutedByScript, type FoldedTable } from './conflicts/folded-table.js';
import type { RouteTarget } from './route-table.js';

/** A refusal that was not answered. */
export interface ShadowPass {
  readonly denial: Denial;
  /** Whom a credential that held speaks for. Nobody else learns of it: the request goes on without an identity. */
  readonly principal: Principal | null;
  /**
   * Permissions, or claims of a session, that a verified caller lacks on a route that exists; `null` where that is not
   * known.
   */
  readonly missing: readonly string[] | null;
}

/** How requests without a route go on. */
export interface Unmatched {
  /** Stands in for the route that there is not. */
  readonly route: Route;
  /** The routes as the upstream's router may read them. */
  readonly readings: FoldedTable;
  /** What the upstream may run for OPTIONS, beside that. */
  readonly ranForOptions: readonly string[];
}

/** Whether shadow mode lets it pass. What could not be decided (503) and what is malformed is refused as ever. */
export function passesInShadow({ reason }: Denial): boolean {
  const { status } = responseOf(reason);
  return status === 401 || status === 403;
}

/**
 * The route of a request that passes unjudged: with the caller's `Authorization` and session, without a reservation,
 * and as nobody.
 */
export function unjudged(route: Route): Route {
  return {
    ...route,
    access: 'public',
    acceptsService: false,
    session: null,
    approvals: [],
    forwardsAuthorization: true,
    reservation: null,
  };
}

/** What is written down of it. */
export function shadowPass(denial: Denial, principal: Principal | null, route: Route | null): ShadowPass {
  if (principal === null || route === null) return { denial, principal, missing: null };
  return {
    denial,
    principal,
    missing: principal.kind === 'session' ? (denial.missing ?? null) : lackedPermissions(route, principal),
  };
}

/**
 * The route by which a request without one passes; `null` where it does not: a spelling (`/Admin`), a script's name
 * (`/index.php/admin`) or a method (HEAD for GET) by which the upstream would run the operation of a route that is
 * enforced must not get round it.
 */
export function unmatchedRoute(
  { route, readings, ranForOptions }: Unmatched,
  method: string,
  { segments }: RouteTarget,
): Route | null {
  const asOthers: Readonly<Record<string, readonly string[]>> = { HEAD: ['GET'], OPTIONS: ranForOptions };
  const meant = [method, ...(asOthers[method] ?? [])].flatMap((name) => [
    ...foldedPlaces(readings, name, segments),
    ...(readings.folding.pathInfo ? placesRoutedByScript(readings, name, segments) : []),
  ]);
  return meant.some(({ route: { access, mode } }) => access === 'protected' && mode === 'enforce') ? null : route;
}
