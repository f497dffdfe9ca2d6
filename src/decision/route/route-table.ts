/** Routes arranged for matching: a tree with one level for each segment. */
import type { Route, RoutePath } from './policy.js';

/** What of a request target a route is chosen by. */
export interface RouteTarget {
  /** Decoded once; a trailing slash is a last, empty segment. */
  readonly segments: readonly string[];
  /** The same by which other routers look for literals; `null` where they are alike. */
  readonly literalSegments: readonly string[] | null;
  /** Whether the target holds what only a route with `encoded_slashes: allow` takes. */
  readonly encodedSlash: boolean;
  /** Whether the target holds what only a route with `path_parameters: allow` takes. */
  readonly pathParameters: boolean;
}

/** The routes of one config, arranged once and only read afterwards. */
export interface RouteTable {
  readonly routes: readonly Route[];
  readonly root: RouteNode;
  /** Pairs of paths for which no rule says which one wins: a config that has any is refused. */
  readonly ties: readonly RouteTie[];
  readonly anyAllowsEncodedSlashes: boolean;
  readonly anyAllowsPathParameters: boolean;
  readonly anyAllowsBody: boolean;
  readonly anyAllowsWebSocket: boolean;
}

/** What may follow after some segments. */
export interface RouteNode {
  readonly literals: ReadonlyMap<string, RouteNode>;
  readonly parameter: RouteNode | null;
  /** Routes whose path ends here. */
  readonly here: RoutesByMethod | null;
  /** Routes whose path goes on with `/**`. */
  readonly below: RoutesByMethod | null;
}

/** The routes of one path. */
interface RoutesByMethod {
  readonly named: ReadonlyMap<string, PlacedRoute>;
  /** The route for every method that none names. */
  readonly any: PlacedRoute | null;
}

/** A route, and the one of its paths that led to it. */
export interface PlacedRoute {
  readonly route: Route;
  readonly path: RoutePath;
}

/** Two paths that are the same but for the names of their parameters. */
export interface RouteTie {
  readonly first: PlacedRoute;
  readonly second: PlacedRoute;
  /** The first method that both take; `*` where that is every method. */
  readonly method: string;
}

interface GrowingNode {
  readonly literals: Map<string, GrowingNode>;
  parameter: GrowingNode | null;
  here: GrowingRoutes | null;
  below: GrowingRoutes | null;
}

interface GrowingRoutes {
  readonly named: Map<string, PlacedRoute>;
  any: PlacedRoute | null;
}

/** Methods that `methods: ["*"]` leaves out: they make an intermediary open a tunnel or echo credentials. */
const neverRouted: ReadonlySet<string> = new Set(['TRACE', 'TRACK', 'CONNECT']);

/** Arranges routes for matching. */
export function createRouteTable(routes: readonly Route[]): RouteTable {
  const root = growNode();
  const ties: RouteTie[] = [];
  for (const route of routes) {
    for (const path of route.paths) {
      const tie = place({ route, path }, leafOf(root, path));
      if (tie !== null) ties.push(tie);
    }
  }
  return {
    routes,
    root,
    ties,
    anyAllowsEncodedSlashes: routes.some((route) => route.encodedSlashes),
    anyAllowsPathParameters: routes.some((route) => route.pathParameters),
    anyAllowsBody: routes.some((route) => route.allowsBody),
    anyAllowsWebSocket: routes.some((route) => route.allowsWebSocket),
  };
}

/**
 * Finds the route of a request: of the paths that match and have a route for the method, the most specific one (from
 * left to right a literal beats `{x}` beats `**`, docs/configuration.md).
 *
 * A target that uses an opt-out (`encodedSlash`, `pathParameters`) which the most specific route does not grant has no
 * route: falling through to a laxer one would let a spelling choose the policy. The caller answers it like any
 * ambiguous target. The same goes for one that other routers take to another path, or to none: what they have there
 * may be what nobody is to reach. Another path of the same route is no better: a router that decodes more than some
 * and less than others finds what is between the two.
 *
 * A walk enters each node of the tree at most once, so its cost is bounded by the config and not by the target.
 */
export function matchRoute(table: RouteTable, method: string, target: RouteTarget): Route | null {
  const placed = walk(table.root, method, target.segments, 0);
  if (placed === null) return null;
  const { route } = placed;
  if (target.encodedSlash && !route.encodedSlashes) return null;
  if (target.pathParameters && !route.pathParameters) return null;
  const others = target.literalSegments;
  return others === null || walk(table.root, method, others, 0) === placed ? route : null;
}

/** Finds a route and the path it was reached by, whatever opt-outs the target uses. */
export function placeOf(table: RouteTable, method: string, segments: readonly string[]): PlacedRoute | null {
  return walk(table.root, method, segments, 0);
}

/** The route for a method among those of one path. */
export function routeFor(routes: RoutesByMethod | null, method: string): PlacedRoute | null {
  if (routes === null) return null;
  const named = routes.named.get(method);
  if (named !== undefined) return named;
  return neverRouted.has(method) ? null : routes.any;
}

function walk(node: RouteNode, method: string, segments: readonly string[], at: number): PlacedRoute | null {
  const text = segments[at];
  if (text === undefined) return routeFor(node.here, method);
  const literal = node.literals.get(text);
  if (literal !== undefined) {
    const found = walk(literal, method, segments, at + 1);
    if (found !== null) return found;
  }
  // A parameter is one whole, non-empty segment: it never takes the empty one after a trailing slash.
  if (node.parameter !== null && text !== '') {
    const found = walk(node.parameter, method, segments, at + 1);
    if (found !== null) return found;
  }
  return routeFor(node.below, method);
}

function growNode(): GrowingNode {
  return { literals: new Map(), parameter: null, here: null, below: null };
}

function leafOf(root: GrowingNode, path: RoutePath): GrowingRoutes {
  let node = root;
  for (const segment of path.segments) {
    if (segment.kind === 'rest') return (node.below ??= { named: new Map(), any: null });
    if (segment.kind === 'parameter') {
      node = node.parameter ??= growNode();
      continue;
    }
    let next = node.literals.get(segment.text);
    if (next === undefined) {
      next = growNode();
      node.literals.set(segment.text, next);
    }
    node = next;
  }
  return (node.here ??= { named: new Map(), any: null });
}

/** Puts a route at the end of its path; the one that was there first stays. */
function place(placed: PlacedRoute, routes: GrowingRoutes): RouteTie | null {
  const { methods } = placed.route;
  if (methods === null) {
    const [taken] = routes.named;
    if (routes.any !== null) return { first: routes.any, second: placed, method: '*' };
    routes.any = placed;
    return taken === undefined ? null : { first: taken[1], second: placed, method: taken[0] };
  }
  let tie: RouteTie | null = null;
  for (const method of methods) {
    const first = routes.named.get(method) ?? routes.any;
    if (first === null) routes.named.set(method, placed);
    else tie ??= { first, second: placed, method };
  }
  return tie;
}
