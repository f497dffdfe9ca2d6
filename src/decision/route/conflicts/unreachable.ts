import { routeFor, type PlacedRoute, type RouteNode, type RouteTable } from '../route-table.js';

/**
 * Finds the paths that no request can reach, because more specific ones take everything that they match. Only a path
 * that ends in `**` can be shadowed: `/a/`, `/a/{x}` and `/a/{x}/**` together leave nothing to `/a/**`.
 */
export function unreachablePaths(table: RouteTable): readonly PlacedRoute[] {
  const methods = representativeMethods(table);
  const found: PlacedRoute[] = [];
  const pending: RouteNode[] = [table.root];
  for (let node = pending.pop(); node !== undefined; node = pending.pop()) {
    pending.push(...node.literals.values());
    if (node.parameter !== null) pending.push(node.parameter);
    if (node.below === null) continue;
    const placed = new Set([...node.below.named.values(), ...(node.below.any === null ? [] : [node.below.any])]);
    for (const candidate of placed) {
      const own = methods.filter((method) => routeFor(node.below, method) === candidate);
      if (own.every((method) => takesAllBelow(node, method))) found.push(candidate);
    }
  }
  return found;
}

/** Every method that a route names, and one that none does: together they stand for all methods. */
export function representativeMethods(table: RouteTable): readonly string[] {
  const named = new Set<string>();
  for (const route of table.routes) route.methods?.forEach((method) => named.add(method));
  let other = 'OTHER';
  while (named.has(other)) other += 'X';
  return [...named, other];
}

/** Whether the paths below a node, its own `**` aside, leave nothing for a method. */
function takesAllBelow(node: RouteNode, method: string): boolean {
  let at = node;
  for (;;) {
    if (routeFor(at.literals.get('')?.here ?? null, method) === null) return false;
    if (at.parameter === null || routeFor(at.parameter.here, method) === null) return false;
    if (routeFor(at.parameter.below, method) !== null) return true;
    at = at.parameter;
  }
}
