/** Whose requests a route takes from now on: a reload compares what becomes of them. */
import { takers } from '../../config/moved-scopes.js';
import type { CompiledConfig } from '../../config/types.js';
import { representativeMethods } from '../../decision/route/conflicts/unreachable.js';
import type { Route } from '../../decision/route/policy.js';

/**
 * Finds the routes in force whose requests a route of another config takes: the one of its name, and those at its
 * paths. None where nobody could ask for it before, and none but its namesake where its paths only cross theirs.
 */
export function createTakenOver(inForce: CompiledConfig, wanted: CompiledConfig): (route: Route) => readonly Route[] {
  const byName = new Map(inForce.routes.map((route) => [route.name, route]));
  const found = new Map<Route, Set<Route>>(
    wanted.routes.map((route) => {
      const namesake = byName.get(route.name);
      return [route, new Set(namesake === undefined ? [] : [namesake])];
    }),
  );
  const every = new Set([inForce.table, wanted.table].flatMap(representativeMethods));
  for (const [before, to] of takers(inForce.table, wanted.table, every)) {
    // In shadow mode requests without a route are let through, too.
    const from = before ?? inForce.unmatched?.route;
    if (to !== null && from !== undefined) found.get(to)?.add(from);
  }
  return (route) => [...(found.get(route) ?? [])];
}
