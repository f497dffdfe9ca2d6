/** Whose requests a route takes from now on: a reload compares what becomes of them. */
import { routeAt } from '../../config/moved-scopes.js';
import type { CompiledConfig } from '../../config/types.js';
import { representativeMethods } from '../../decision/route/conflicts/unreachable.js';
import type { Route } from '../../decision/route/policy.js';

/**
 * Finds the routes in force whose requests a route of another config takes: the one of its name, or else those at its
 * paths. None where nobody could ask for it before.
 */
export function createTakenOver(inForce: CompiledConfig, wanted: CompiledConfig): (route: Route) => readonly Route[] {
  const byName = new Map(inForce.routes.map((route) => [route.name, [route]]));
  const byPlace = new Map<Route, Set<Route>>(wanted.routes.map((route) => [route, new Set()]));
  const every = new Set([inForce.table, wanted.table].flatMap(representativeMethods));
  for (const { paths, methods } of [...inForce.routes, ...wanted.routes]) {
    for (const path of paths) {
      for (const method of methods ?? every) {
        const to = routeAt(wanted.table, method, path);
        // In shadow mode requests without a route are let through, too.
        const from = routeAt(inForce.table, method, path) ?? inForce.unmatched?.route;
        if (to !== null && from !== undefined) byPlace.get(to)?.add(from);
      }
    }
  }
  return (route) => byName.get(route.name) ?? [...(byPlace.get(route) ?? [])];
}
