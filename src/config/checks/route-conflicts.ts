import type { ParsedConfig } from '../load/parse-sections.js';
import { nameOf, type Report } from '../load/report.js';
import type { Path } from '../load/source-tree.js';
import { receiverRouter } from '../sections/receiver.js';
import type { CompiledRoutes } from '../sections/routes/routes.js';
import {
  findFolds,
  isAdvice,
  type Advice,
  type ReceiverRouter,
  type RouteFold,
} from '../../decision/route/conflicts/find-conflicts.js';
import { unreachablePaths } from '../../decision/route/conflicts/unreachable.js';
import {
  createRouteTable,
  type PlacedRoute,
  type RouteTable,
  type RouteTie,
} from '../../decision/route/route-table.js';

interface Routes extends CompiledRoutes {
  readonly report: Report;
}

/**
 * Arranges the routes, and checks what they say together: ties, paths without requests, and folded spellings.
 *
 * @param asksRouter whether the router of an application is asked at each request how it has read the path.
 */
export function checkTable(
  compiled: CompiledRoutes,
  parts: ParsedConfig,
  report: Report,
  asksRouter: boolean,
): RouteTable {
  const table = createRouteTable(compiled.routes);
  const routes: Routes = { ...compiled, report };
  for (const tie of table.ties) reportTie(tie, routes);
  // With a tie, or a route missing, the rest would be told of a table that there will never be.
  if (table.ties.length > 0 || !compiled.complete) return table;
  for (const placed of unreachablePaths(table)) {
    report.warning(
      pathOf(placed, routes),
      `${describe(placed, routes)} can never be reached: more specific paths take every request`,
      'a path that some request reaches',
    );
  }
  if (parts.receiver !== null) {
    const router = receiverRouter(parts.receiver.value);
    checkFolds(table, asksRouter ? { ...router, optOuts: false } : router, [...parts.issuers.keys()], routes);
  }
  return table;
}

function reportTie({ first, second, method }: RouteTie, routes: Routes): void {
  const which = method === '*' ? 'every method' : method;
  const message =
    first.route === second.route
      ? `${nameOf(pathOf(second, routes))} is the same path as in line ${lineOf(first, routes)}`
      : `${describe(second, routes)} ties with ${describe(first, routes)} for ${which}: nothing says which of them wins`;
  routes.report.error(
    pathOf(second, routes),
    message,
    'paths that differ in more than the names of parameters, or other methods',
  );
}

function checkFolds(table: RouteTable, receiver: ReceiverRouter, issuerNames: readonly string[], routes: Routes): void {
  const { folds, unfinished, cutShort } = findFolds(table, receiver, issuerNames);
  for (const fold of folds) reportFold(fold, receiver, routes);
  if (unfinished) {
    routes.report.keyError(
      ['routes'],
      'too many paths overlap to check what a lax router would mix up',
      `${curesOf(receiver)}, where they hold, or fewer overlapping paths`,
    );
  }
  for (const kind of cutShort) {
    const [does, cure] = adviceWords[kind];
    routes.report.warning(
      ['routes'],
      `not all was looked at: too many paths overlap to find all that a router that ${does} would mix up`,
      `${cure}, or fewer overlapping paths`,
    );
  }
}

const formatCure = 'receiver.format_suffix: false';
const pathInfoCure = 'receiver.path_info: false';

/** What a router may ignore, and the line of the config that says that it does not. */
const looseness: readonly {
  readonly has: (receiver: ReceiverRouter) => boolean;
  readonly ignores: string;
  readonly cure: string;
}[] = [
  { has: ({ caseSensitive }) => !caseSensitive, ignores: 'case', cure: 'receiver.case_sensitive: true' },
  { has: ({ strictSlash }) => !strictSlash, ignores: 'a trailing slash', cure: 'receiver.strict_slash: true' },
  { has: ({ formatSuffix }) => formatSuffix, ignores: 'a suffix such as .json', cure: formatCure },
  {
    has: ({ trailingDots }) => trailingDots,
    ignores: 'dots behind or blanks around a segment',
    cure: 'receiver.trailing_dots: false',
  },
];

const headCure = 'receiver.head_as_get: false';
const optionsCure = 'receiver.options_as_get: false';

function loosenessOf(receiver: ReceiverRouter): typeof looseness {
  return looseness.filter(({ has }) => has(receiver));
}

/** The lines that help against what it ignores; else those about some routes alone. */
function curesOf(receiver: ReceiverRouter): string {
  const cures = loosenessOf(receiver).map(({ cure }) => cure);
  const { headAsGet, pathInfo } = receiver;
  const rest = [...(headAsGet ? [headCure] : []), ...(pathInfo ? [pathInfoCure] : [])];
  return (cures.length > 0 ? cures : rest).join(', ');
}

/** What few routers do, and what helps where one stands in front of too many paths to look at all. */
const adviceWords: Readonly<Record<Advice, readonly [string, string]>> = {
  options: ['answers OPTIONS by what it does for other methods', whereKnown(optionsCure)],
  format: ['does the same for every format of a name', whereKnown(formatCure)],
  parameters: ['leaves out what follows a semicolon', 'path_parameters: refuse on more routes'],
  slashes: ['decodes slashes before it routes', 'encoded_slashes: refuse on more routes'],
  routed: ['has a script route what follows its name', whereKnown(pathInfoCure)],
};

/** What the router does that the fold is made of, and what else helps than to let the same callers through. */
function routerDoes({ kind, method, runs }: RouteFold, receiver: ReceiverRouter): readonly [string, string] {
  const asGet = `answers ${method} by what it does for ${runs}`;
  if (kind === 'options') return [asGet, whereKnown(optionsCure)];
  if (kind === 'format') return adviceWords[kind];
  // Each of them is a word of the route itself.
  if (kind === 'parameters') return [adviceWords[kind][0], 'path_parameters: refuse on the first'];
  if (kind === 'slashes') return [adviceWords[kind][0], 'encoded_slashes: refuse on the first'];
  if (kind === 'script' || kind === 'routed') {
    const does = kind === 'script' ? 'ignores what follows a script’s name' : adviceWords[kind][0];
    return [method === runs ? does : `${asGet} and ${does}`, whereKnown(pathInfoCure)];
  }
  if (method !== runs) return [asGet, whereKnown(headCure)];
  const ignored = loosenessOf(receiver).map(({ ignores }) => ignores);
  return [`ignores ${ignored.join(' or ')}`, whereKnown(curesOf(receiver))];
}

function whereKnown(cures: string): string {
  return `${cures} where the receiver’s router is known to be so`;
}

function reportFold(fold: RouteFold, receiver: ReceiverRouter, routes: Routes): void {
  const { harm, guard, reached, method, spelling } = fold;
  const { report } = routes;
  const isShown = [guard, reached].every((placed) => report.mayShow(pathOf(placed, routes)));
  const request = isShown
    ? `${method} ${JSON.stringify(`/${spelling.map(encodeSegment).join('/')}`)}`
    : `a ${method} spelt otherwise`;
  const [does, otherwise] = routerDoes(fold, receiver);
  const [wrong, same] =
    harm === 'less_restrictive'
      ? (['is less restrictive than', `the same ${whatToShare(fold)} on both`] as const)
      : (['keeps idempotency keys apart from', 'the same idempotency.operation on both'] as const);
  // One key spelled two ways is the caller's doing and runs a write twice; it lends nobody a right.
  const say = harm === 'less_restrictive' && !isAdvice(fold) ? report.error : report.warning;
  say(
    pathOf(reached, routes),
    `${describe(reached, routes)} ${wrong} ${describe(guard, routes)}: ${request} reaches it, which a router that ${does}` +
      ' takes for the other’s',
    `${same}, or ${otherwise}`,
  );
}

/** What only an opt-out lets through stays as it came. */
function encodeSegment(text: string): string {
  return encodeURIComponent(text).replace(/%(3B|252F)/g, decodeURIComponent);
}

function whatToShare({ guard: { route }, reached }: RouteFold): string {
  const certificates = route.clientCertificates === null ? [] : ['client_certificates'];
  const takeWebSockets = route.allowsWebSocket && reached.route.allowsWebSocket;
  const namesOrigins = route.origins !== null || reached.route.origins !== null;
  const origins = takeWebSockets && namesOrigins ? ['origins'] : [];
  return ['approvals', ...certificates, ...origins].join(' and ');
}

function describe(placed: PlacedRoute, routes: Routes): string {
  const at = pathOf(placed, routes);
  const name = routes.report.show([...(routes.placeOfRoute.get(placed.route) ?? []), 'name']);
  return `route ${name} with ${routes.report.show(at)} (line ${lineOf(placed, routes)})`;
}

function lineOf(placed: PlacedRoute, routes: Routes): number {
  return routes.report.lineOf(pathOf(placed, routes));
}

function pathOf({ path }: PlacedRoute, routes: Routes): Path {
  return routes.placeOfPath.get(path) ?? ['routes'];
}
