/** What the check for look-alike spellings should find, worked out by asking for every spelling: no tree, no index. */
import fc from 'fast-check';
import type { Route, RoutePath, Segment } from '../../../../src/decision/route/policy.js';
import { findFolds, isAdvice, type ReceiverRouter } from '../../../../src/decision/route/conflicts/find-conflicts.js';
import { isLessRestrictive } from '../../../../src/decision/route/conflicts/compare-access.js';
import { createRouteTable, type PlacedRoute } from '../../../../src/decision/route/route-table.js';
import { compareSpecificity, naiveMatch, pathTakes, routeOf } from '../route-samples.js';

export const strict: ReceiverRouter = {
  caseSensitive: true,
  strictSlash: true,
  formatSuffix: false,
  trailingDots: false,
  headAsGet: false,
  optionsAsGet: false,
  pathInfo: false,
  optOuts: false,
};
export const issuers = ['core'];

/** Advice that is told by more than its spelling. */
const named = ['format', 'parameters', 'slashes', 'routed'];

/** `name subjects`: many subjects are less restrictive than few. */
export function foldsOf(texts: readonly string[], receiver: ReceiverRouter): readonly string[] {
  const routes = texts.map((text) => {
    const [method = '', path = '', who = ''] = text.split(' ');
    return routeOf(`${method} ${path}`, who === 'public' ? 'public' : who.split(','));
  });
  return findFolds(createRouteTable(routes), receiver, issuers).folds.map(
    ({ guard, reached, method, spelling, kind }) =>
      `${guard.path.text} < ${reached.path.text}: ${method} /${spelling.join('/')}${named.includes(kind) ? `, ${kind}` : ''}`,
  );
}

/** Whether a router that folds takes a request for a path: written again, without a tree. */
function takesFolded(path: RoutePath, segments: readonly string[], receiver: ReceiverRouter): boolean {
  const plain = (text: string): string =>
    receiver.trailingDots && /[^. ]/.test(text) ? text.replace(/^ +|[. ]+$/g, '') : text;
  const same = (a: string, b: string): boolean =>
    receiver.caseSensitive ? plain(a) === plain(b) : plain(a).toLowerCase() === plain(b).toLowerCase();
  if (receiver.strictSlash) return pathTakes(path, segments, same);
  const bare = foldedSegments(path);
  const seen = segments.length > 1 && segments.at(-1) === '' ? segments.slice(0, -1) : segments;
  return pathTakes(bare, seen, same) || (bare.segments.at(-1)?.kind === 'rest' && pathTakes(bare, [...seen, ''], same));
}

function namesNothing(segment: Segment | undefined): boolean {
  return segment?.kind === 'literal' && segment.text === '';
}

function foldedSegments(path: RoutePath): RoutePath {
  const last = path.segments.at(-1);
  const slashed = path.segments.length > 1 && last?.kind === 'literal' && last.text === '';
  return slashed ? { ...path, segments: path.segments.slice(0, -1) } : path;
}

/** A request without its format, which may begin at any dot: `/.x` is `/`, and `/a/.x` is `/a/`. */
function formatReadings(
  request: readonly string[],
  { formatSuffix, strictSlash, trailingDots }: ReceiverRouter,
): readonly (readonly string[])[] {
  const isSlashed = !strictSlash && request.length > 1 && request.at(-1) === '';
  const seen = isSlashed ? request.slice(0, -1) : request;
  const last = seen.at(-1) ?? '';
  const trimmed = trailingDots ? last.replace(/^ +|[. ]+$/g, '') : last;
  const plain = Array.from(trimmed, (_, at) => trimmed.slice(0, at)).filter(
    (text) => trimmed.startsWith('.', text.length) && text.length < trimmed.length - 1,
  );
  return formatSuffix ? plain.map((text) => [...seen.slice(0, -1), text]) : [];
}

/** Whether the path names a script: `/a.php`, or `/cgi-bin/a`. */
function namesScript({ segments }: RoutePath, { caseSensitive, trailingDots }: ReceiverRouter): boolean {
  const last = segments.at(-1);
  if (last?.kind !== 'literal' || last.text === '') return false;
  const isAmongPrograms = segments
    .slice(0, -1)
    .some(
      (segment) =>
        segment.kind === 'literal' && (caseSensitive ? segment.text : segment.text.toLowerCase()) === 'cgi-bin',
    );
  return isAmongPrograms || (trailingDots ? /.\.php[. ]*$/i : /.\.php$/i).test(last.text);
}

/** A request that goes through a script, as the script routes it: without its name. */
function routedReadings(
  request: readonly string[],
  { pathInfo, trailingDots }: ReceiverRouter,
): readonly (readonly string[])[] {
  if (!pathInfo) return [];
  return request.flatMap((text, at) => {
    const isScript = (trailingDots ? /.\.php[. ]*$/i : /.\.php$/i).test(text);
    return isScript && (request[at + 1] ?? '') !== '' ? [request.filter((_, index) => index !== at)] : [];
  });
}

/** What is nothing but a format is one of the slash at the end, where a path has it. */
function slashedPlaces(
  placed: readonly PlacedRoute[],
  reading: readonly string[],
  receiver: ReceiverRouter,
): readonly PlacedRoute[] {
  const taking = placed
    .filter(({ path }) => namesNothing(path.segments.at(-1)))
    .filter(({ path }) => takesFolded(path, reading, { ...receiver, strictSlash: true }))
    .sort((a, b) => compareSpecificity(a.path, b.path));
  return taking.filter(({ path }) => taking.slice(0, 1).every((first) => compareSpecificity(first.path, path) === 0));
}

function naiveFolds(
  routes: readonly Route[],
  receiver: ReceiverRouter,
  requests: readonly (readonly string[])[],
  isRouted: boolean,
): Set<string> {
  const bare = (path: RoutePath): RoutePath => (receiver.strictSlash ? path : foldedSegments(path));
  const folds = new Set<string>();
  const methods = ['GET', 'PUT', 'PATCH', 'HEAD'].map((method) => [method, method] as const);
  for (const [method, runs] of [...methods, ...(receiver.headAsGet ? [['HEAD', 'GET'] as const] : [])]) {
    const placed = routes
      .filter(({ methods }) => methods === null || methods.has(runs))
      .flatMap((route) => route.paths.map((path) => ({ route, path })));
    for (const request of requests) {
      const reached = naiveMatch(routes, method, request);
      if (reached === null) continue;
      // A parameter takes the format along, and so does what is below a path; `/a/`, which is in `/a/**`, does not.
      const hasFormat = (path: RoutePath, reading: readonly string[]): boolean => {
        const { segments } = bare(path);
        const isItself = segments.at(-1)?.kind === 'rest' && segments.length - 1 === reading.length;
        return segments.at(isItself && !receiver.strictSlash ? -2 : -1)?.kind === 'literal';
      };
      const formats = formatReadings(request, receiver);
      const slashed = isRouted ? [] : formats.filter((reading) => reading.at(-1) === '');
      for (const { route } of slashed.flatMap((reading) => slashedPlaces(placed, reading, receiver))) {
        if (route !== reached && isLessRestrictive(reached, route, issuers)) {
          folds.add(`${route.name} < ${reached.name}`);
        }
      }
      const routed = routedReadings(request, receiver).map((reading) => ({ reading, isRun: () => true }));
      const readings = [
        { reading: request, isRun: () => true },
        ...formats
          .filter((reading) => reading.at(-1) !== '')
          .map((reading) => ({ reading, isRun: (path: RoutePath) => hasFormat(path, reading) })),
        ...Array.from({ length: receiver.pathInfo ? request.length - 1 : 0 }, (_, at) => ({
          reading: request.slice(0, at + 1),
          isRun: (path: RoutePath) => namesScript(bare(path), receiver),
        })),
      ];
      for (const { reading, isRun } of isRouted ? routed : readings) {
        const taking = placed
          .filter(({ path }) => takesFolded(path, reading, receiver))
          .sort((a, b) => compareSpecificity(bare(a.path), bare(b.path)));
        const [first] = taking;
        for (const { route, path } of taking) {
          if (first === undefined || compareSpecificity(bare(first.path), bare(path)) !== 0 || route === reached) {
            continue;
          }
          if (!isRun(path)) continue;
          if (isLessRestrictive(reached, route, issuers)) folds.add(`${route.name} < ${reached.name}`);
        }
      }
    }
  }
  return folds;
}

/** Every path of up to so many of the texts. */
export function sequences(texts: readonly string[], most: number): readonly (readonly string[])[] {
  if (most === 0) return [];
  const shorter = sequences(texts, most - 1);
  return [...texts.map((text) => [text]), ...shorter.flatMap((parts) => texts.map((text) => [...parts, text]))];
}

type Specs = readonly (readonly [method: string, path: string, who: string])[];

/** Throws where the check and the naive model differ. */
export function compareWithModel(
  specs: Specs,
  receiver: ReceiverRouter,
  requests: readonly (readonly string[])[],
): void {
  const all = specs.map(([method, path, who], index) =>
    routeOf(`${method} ${path}`, who === 'public' ? 'public' : who.split(','), { name: `r${index}` }),
  );
  const table = createRouteTable(all);
  if (table.ties.length > 0) return;
  const { folds, unfinished } = findFolds(table, receiver, issuers);
  const namesOf = (some: typeof folds): readonly string[] =>
    // One more by what follows a script's name.
    [...new Set(some.map(({ guard, reached }) => `${guard.route.name} < ${reached.route.name}`))].sort();
  const found = namesOf(folds.filter(({ kind }) => !named.includes(kind)));
  const expected = [...naiveFolds(all, receiver, requests, false)].sort();
  if (unfinished || found.join() !== expected.join()) throw new Error(JSON.stringify({ found, expected, unfinished }));
  const routed = namesOf(folds.filter(({ kind }) => kind === 'routed'));
  const scripts = new Set(['index.php', ...specs.flatMap(([, path]) => path.match(/[^/]+\.php/gi) ?? [])]);
  const through = requests.flatMap((request) =>
    [...scripts].flatMap((script) => request.map((_, at) => request.toSpliced(at, 0, script))),
  );
  const most = naiveFolds(all, receiver, [...requests, ...through], true);
  const atRoot = requests.map((request) => ['index.php', ...request]);
  const least = naiveFolds(all, receiver, atRoot, true);
  const others = folds.filter((fold) => !isAdvice(fold)).length;
  const isRight = routed.length === 0 ? others > 0 || least.size === 0 : others === 0 && routed.length === 1;
  if (!isRight || routed.some((pair) => !most.has(pair))) {
    throw new Error(JSON.stringify({ routed, others, least: [...least], most: [...most] }));
  }
}

interface DrawnPolicies {
  /** Paths of their routes. */
  readonly path: fc.Arbitrary<string>;
  /** What every receiver does or does not; the rest of its folds is drawn. */
  readonly folds: Pick<ReceiverRouter, 'formatSuffix' | 'pathInfo'>;
  readonly requests: readonly (readonly string[])[];
  readonly numRuns: number;
}

/** Throws where the check and the naive model differ over a policy of two to five routes, drawn at random. */
export function comparePoliciesWithModel({ path, folds, requests, numRuns }: DrawnPolicies): void {
  const routes = fc.array(
    fc.tuple(fc.constantFrom('GET', 'GET', 'HEAD', '*'), path, fc.constantFrom('public', 'u', 'v', 'u,v')),
    { minLength: 2, maxLength: 5 },
  );
  const receivers = fc.record({
    caseSensitive: fc.boolean(),
    strictSlash: fc.boolean(),
    formatSuffix: fc.constant(folds.formatSuffix),
    trailingDots: fc.boolean(),
    headAsGet: fc.boolean(),
    optionsAsGet: fc.constant(false),
    pathInfo: fc.constant(folds.pathInfo),
    optOuts: fc.constant(false),
  });
  fc.assert(
    fc.property(routes, receivers, (specs, receiver) => compareWithModel(specs, receiver, requests)),
    { numRuns },
  );
}
