/** Whose idempotency keys a new config leaves behind, and of which requests. */
import { audienceOf } from '../decision/idempotency/scope.js';
import { holderClaim } from '../decision/token/profile-claims.js';
import { createRouteTable, placeOf, type RouteTable } from '../decision/route/route-table.js';
import type { IssuerRules, Route, RoutePath } from '../decision/route/policy.js';
import type { CompiledConfig } from './types.js';

type Routes = Pick<CompiledConfig, 'routes'>;
type Scoped = Pick<CompiledConfig, 'routes' | 'issuers'>;

/**
 * Whose keys count no more, since what they are counted by has changed: an issuer's `iss`, the claim that names its
 * callers, or the audience of the first entry with this `iss`; for users, the audience of the first issuer. A retry of
 * what they sent before is a new request.
 */
export function movedScopes(before: Scoped, after: Scoped): readonly string[] {
  const moved = before.issuers.filter(
    ({ rules }) => keepsKeys(before, (route) => countsAt(route, rules.name)) && !isKept(rules, before, after),
  );
  const users =
    keepsKeys(before, ({ session }) => session !== null) &&
    before.issuers[0]?.rules.audience !== after.issuers[0]?.rules.audience;
  return [...moved.map(({ rules: { name } }) => `callers of issuers.${name}`), ...(users ? ['users'] : [])];
}

/** Whether callers of an issuer go by the same names, and have their keys counted by the same audience. */
function isKept(rules: IssuerRules, before: Scoped, after: Scoped): boolean {
  const ofSameIssuer = after.issuers.filter((entry) => entry.rules.issuer === rules.issuer);
  const [first] = ofSameIssuer;
  if (first?.rules.audience !== audienceOf(rules, before.issuers)) return false;
  // Their next tokens may be taken by an entry of another name, for each audience by another one; where none is for
  // what these were for, by any.
  const taking = [...rules.audiences].map((name) => ofSameIssuer.filter((entry) => entry.rules.audiences.has(name)));
  const taken = taking.filter((entries) => entries.length > 0);
  const named = holderClaim(rules);
  return (taken.length > 0 ? taken : [ofSameIssuer]).every((entries) =>
    entries.some((entry) => holderClaim(entry.rules) === named),
  );
}

/**
 * Operations that keys were reserved under and no longer are: a retry of what was sent under one of them is a new
 * request.
 */
export function droppedOperations(before: Routes, after: Routes): readonly string[] {
  const kept = operationsOf(after);
  return [...operationsOf(before)].filter((operation) => !kept.has(operation));
}

/**
 * Operations that were one for some requests and are another now, `OLD -> NEW`, or `none` where they are reserved no
 * more: a narrower route came or went. A retry of what was sent before is a new request. Those that are gone from the
 * config are none of them.
 */
export function movedOperations(before: Routes, after: Routes): readonly string[] {
  const [old, now] = [createRouteTable(before.routes), createRouteTable(after.routes)];
  const kept = operationsOf(after);
  const moved = new Set<string>();
  for (const [from, to] of takers(old, now, ['POST'])) {
    if (from === null || to === null) continue;
    const [left, taken] = [keyedOperation(from), keyedOperation(to)];
    if (left !== null && left !== taken && kept.has(left)) moved.add(`${left} -> ${taken ?? 'none'}`);
  }
  return [...moved];
}

/** A text that no route names, as far as anybody can tell. */
const sample = 'any-9f3c';

/**
 * The routes that take a request in two tables, for requests of each path and method that either names; `null` where
 * none does. What only two paths that cross have in common, as `/{a}/x` and `/y/{b}` have `/y/x`, is not among these.
 *
 * @param every Methods of routes that take all.
 */
export function* takers(
  before: RouteTable,
  after: RouteTable,
  every: Iterable<string>,
): Generator<readonly [Route | null, Route | null]> {
  const routes = [...before.routes, ...after.routes];
  // What takes requests of other lengths takes those of one of these, too.
  const lengths = new Set(
    routes.flatMap(({ paths }) => paths.flatMap(({ segments: { length } }) => [length, length + 1])),
  );
  for (const { paths, methods } of routes) {
    for (const segments of paths.flatMap((path) => samplesOf(path, lengths))) {
      for (const method of methods ?? every) {
        yield [placeOf(before, method, segments)?.route ?? null, placeOf(after, method, segments)?.route ?? null];
      }
    }
  }
}

/** Requests for a path; of one that ends in `**` with a slash at the end, and of each length that it takes. */
function samplesOf({ segments }: RoutePath, lengths: Iterable<number>): readonly (readonly string[])[] {
  const texts = segments.map((segment) => (segment.kind === 'literal' ? segment.text : sample));
  if (segments.at(-1)?.kind !== 'rest') return [texts];
  const longer = [...lengths].map((length) => length - texts.length).filter((more) => more >= 0);
  return [[...texts.slice(0, -1), ''], ...longer.map((more) => [...texts, ...Array<string>(more).fill(sample)])];
}

function operationsOf({ routes }: Routes): ReadonlySet<string> {
  return new Set(routes.flatMap((route) => keyedOperation(route) ?? []));
}

/** What a route counts keys under; `null` where it takes none. */
function keyedOperation({ reservation }: Pick<Route, 'reservation'>): string | null {
  return reservation === null || reservation.key === null ? null : reservation.operation;
}

type ActiveRoute = CompiledConfig['routes'][number];

function keepsKeys({ routes }: Scoped, counts: (route: ActiveRoute) => boolean): boolean {
  return routes.some((route) => route.reservation !== null && route.reservation.key !== null && counts(route));
}

function countsAt({ acceptsService, issuers }: ActiveRoute, issuerName: string): boolean {
  return acceptsService && (issuers === null || issuers.has(issuerName));
}
