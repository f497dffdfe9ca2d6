import type { CompiledConfig } from '../../config/types.js';
import type { Route } from '../../decision/route/policy.js';
import type { RequestHead } from '../../decision/http/request-head.js';
import { readTarget, type RequestTarget } from '../../decision/http/request-target.js';
import { createFoldedTable, foldedPlaces } from '../../decision/route/conflicts/folded-table.js';
import { representativeMethods } from '../../decision/route/conflicts/unreachable.js';
import { createRouteTable, matchRoute, placeOf } from '../../decision/route/route-table.js';

/** Names that are listed; of a thousand routes those that have nothing to do with the request are counted. */
const maxNamed = 8;

/** Says which route was taken and why none of the others. Each is asked alone, by the functions that match. */
export function explainRoute(
  { method, target: raw }: RequestHead,
  config: CompiledConfig,
  matched: Route | null,
): readonly string[] {
  const target = readTarget(raw, config.listen.maxTargetBytes);
  if (!target.ok) return [];
  const taken = matched === null ? null : placeOf(config.table, method, target.value.segments);
  const reasons = config.routes
    .filter((route) => route !== matched)
    .map((route) => ({ route, why: whyNot(route, method, target.value) }));
  const related = reasons.filter(({ why }) => why !== null);
  const others = reasons.filter(({ why }) => why === null).map(({ route }) => route.name);
  return [
    taken === null
      ? 'no route has this method and path'
      : `${taken.route.name}, by ${methodsOf(taken.route)} ${taken.path.text}${modeOf(taken.route)}`,
    ...related.slice(0, maxNamed).map(({ route, why }) => `not ${route.name}: ${why ?? ''}`),
    ...(related.length > maxNamed ? [`not ${related.length - maxNamed} more of the kind`] : []),
    ...(others.length > 0
      ? [
          `other paths: ${others.slice(0, maxNamed).join(' ')}${others.length > maxNamed ? ` and ${others.length - maxNamed} more` : ''}`,
        ]
      : []),
  ];
}

/** Methods of a route, as the config writes them. */
function methodsOf({ methods }: Route): string {
  return methods === null ? '*' : [...methods].join(' ');
}

/** What keeps a route that is near from this request; `null` where its paths are others. */
function whyNot(route: Route, method: string, target: RequestTarget): string | null {
  const alone = createRouteTable([route]);
  const placed = placeOf(alone, method, target.segments);
  if (matchRoute(alone, method, target) !== null) {
    return `${placed?.path.text ?? 'its path'} matches too, and a more specific path wins`;
  }
  if (placed !== null) return `${placed.path.text} matches, but ${whyNotTaken(placed.route, target)}`;
  const methods = representativeMethods(alone);
  const [byMethod] = methods.map((other) => placeOf(alone, other, target.segments)).filter((place) => place !== null);
  if (byMethod !== undefined) return `${byMethod.path.text} is for ${methodsOf(route)}`;
  const folded = createFoldedTable([route], { case: true, slash: true, dots: false, suffix: false, pathInfo: false });
  const [near] = methods.flatMap((other) => foldedPlaces(folded, other, target.segments));
  return near === undefined ? null : `${near.path.text} differs in case or in a trailing slash, which count`;
}

function whyNotTaken(route: Route, { encodedSlash, pathParameters }: RequestTarget): string {
  if (encodedSlash && !route.encodedSlashes) return 'the route allows no encoded slashes';
  if (pathParameters && !route.pathParameters) return 'the route allows no path parameters';
  return 'not for routers that leave the escape of a character that may stand as it is';
}

function modeOf({ mode, access }: Route): string {
  if (access === 'public') return ', which is public';
  return mode === 'shadow' ? ', which is in shadow mode: nobody is kept out' : '';
}
