/**
 * The check for spellings that an upstream's laxer router would fold together. Policy is matched on case, on a trailing
 * slash, on every character of a segment and on the method; many routers ignore some of that, and servers of scripts
 * what follows their names. Where `/Admin` is refused to a caller by one route, `/admin` and `/Admin.json` have to be
 * refused by whatever route they reach, or the spelling chooses the policy.
 */
import {
  createFoldedTable,
  endsInSlash,
  foldedPath,
  foldedPlaces,
  pathsInOtherFormats,
  pathsThatMeet,
  pathsThatOverlap,
  placesInOtherFormats,
  placesRoutedByScript,
  scriptsBefore,
  type FoldedTable,
  type Folding,
} from './folded-table.js';
import type { Route, RoutePath } from '../policy.js';
import { hasScriptEnding } from './script-names.js';
import { representativeMethods } from './unreachable.js';
import { keepsKeysApart } from './compare-access.js';
import { parameterSuspects, placesOfOptOut, slashSuspects } from './opt-outs.js';
import { rememberedComparison } from './remembered-comparison.js';
import { createSpeller, type Speller } from './sample-paths.js';
import { placeOf, type PlacedRoute, type RouteTable } from '../route-table.js';

/** What is known of the upstream's router. */
export interface ReceiverRouter {
  readonly caseSensitive: boolean;
  readonly strictSlash: boolean;
  /** Whether `/admin.json` may be `/admin` in another format. */
  readonly formatSuffix: boolean;
  /** Whether dots and blanks at the end of a segment, and blanks at its beginning, may be ignored. */
  readonly trailingDots: boolean;
  /** Whether HEAD may run what GET runs. */
  readonly headAsGet: boolean;
  /** Whether OPTIONS may run what other methods run. */
  readonly optionsAsGet: boolean;
  /** Whether what follows the name of a script in the path may be ignored, or routed without that name. */
  readonly pathInfo: boolean;
  /** Whether what only `path_parameters: allow` and `encoded_slashes: allow` let through may be read otherwise. */
  readonly optOuts: boolean;
}

/** What a router of that kind ignores in a path. */
export function foldingOf(receiver: ReceiverRouter): Folding {
  const { caseSensitive, strictSlash, formatSuffix, trailingDots, pathInfo } = receiver;
  return { case: !caseSensitive, slash: !strictSlash, suffix: formatSuffix, dots: trailingDots, pathInfo };
}

/**
 * What is wrong with a fold: the route that is reached lets through more than the one whose operation the upstream
 * would run, or it keeps keys for itself, so that one key, spelt two ways, runs twice.
 */
type FoldHarm = 'less_restrictive' | 'keys_apart';

/**
 * What the upstream's router does:
 *
 * - `spelling`: it ignores some of the path, or answers HEAD by what it does for GET
 * - `script`: it ignores what follows the name of a script
 * - `options`: it answers OPTIONS by what it does for another method
 * - `format`: it does the same for every format of a name
 * - `parameters`: it leaves out the parameters of a path
 * - `slashes`: it decodes slashes before it routes
 * - `routed`: it has a script do what the path without the script's name asks for
 */
type FoldKind = 'spelling' | 'script' | Advice;

/** Those that few routers do, of which nothing in a policy tells. */
export type Advice = 'options' | 'format' | 'parameters' | 'slashes' | 'routed';

const placesOf: Readonly<Record<FoldKind, typeof foldedPlaces>> = {
  spelling: foldedPlaces,
  script: foldedPlaces,
  options: foldedPlaces,
  format: placesInOtherFormats,
  parameters: placesOfOptOut,
  slashes: placesOfOptOut,
  routed: placesRoutedByScript,
};

/** Whether a fold is advice, rather than a fault. */
export function isAdvice({ kind, guard, spelling }: Pick<RouteFold, 'kind' | 'guard' | 'spelling'>): boolean {
  return (kind !== 'spelling' && kind !== 'script') || isFormatOfSlash(guard, spelling);
}

/**
 * Whether a spelling is the path with a format of the slash at its end: `/a/.x` of `/a/`. Spring before 5.3 alone takes
 * it for that, and a list at `/a/` with items at `/a/{id}` is an ordinary pair.
 */
function isFormatOfSlash({ path }: PlacedRoute, spelling: readonly string[]): boolean {
  const names = spelling.filter((text) => text !== '');
  return endsInSlash(path) && names.length === path.segments.length && names.at(-1)?.startsWith('.') === true;
}

/** A spelling that reaches another route than the one whose operation the upstream would run. */
export interface RouteFold {
  readonly harm: FoldHarm;
  /** The route whose path the upstream takes the spelling for. */
  readonly guard: PlacedRoute;
  /** The one that the spelling reaches. */
  readonly reached: PlacedRoute;
  readonly method: string;
  /** What the upstream takes the method for. */
  readonly runs: string;
  /** Decoded segments of the spelling. */
  readonly spelling: readonly string[];
  readonly kind: FoldKind;
}

/** What the check found. */
interface FoldReport {
  /**
   * At most one for each pair of routes, and one more by what follows a script's name or by formats; one for each route
   * of OPTIONS, of parameters and of slashes; where no other lends a right, one of what scripts route.
   */
  readonly folds: readonly RouteFold[];
  /** Whether the work limit ended the check: the config cannot be called safe. */
  readonly unfinished: boolean;
  /** Kinds of advice whose search a work limit ended. */
  readonly cutShort: readonly Advice[];
}

interface Check {
  readonly table: RouteTable;
  readonly folded: FoldedTable;
  readonly isLessRestrictive: (route: Route, than: Route) => boolean;
}

/** What may still be done in one search. */
export interface Work {
  /** Pairs of overlapping paths that may still be looked at: most cost little, since their policies do no harm. */
  pairs: number;
  /** Matches that may still be tried; a pair whose policies do harm, and a division of its paths, count as one. */
  matches: number;
}

/** A search that no other one ends. */
interface Search {
  /** `null` where it is for faults. */
  readonly advice: Advice | null;
  readonly suspects: Iterable<Suspects>;
  readonly work: Work;
}

/** Two routes of which one may be reached by a request that the upstream takes for the other's. */
export interface Suspects {
  readonly guard: PlacedRoute;
  readonly reached: PlacedRoute;
  readonly speller: Speller;
  /** Methods, and what the upstream takes them for. */
  readonly methods: readonly MethodReading[];
  readonly kind: FoldKind;
}

export interface MethodReading {
  readonly method: string;
  readonly runs: string;
}

/**
 * What the search for faults may do: about a second each. Ordinary configs of 5,000 routes need some thousands of
 * matches; only one in which thousands of paths overlap thousands of others, with unequal approvals and yet no fold,
 * comes here.
 */
const faultWork: Readonly<Work> = { pairs: 2_000_000, matches: 150_000 };

/**
 * What all advice may do besides, about half a second: it is looked for in the serving process at each reload. What one
 * kind leaves of the first is for the next; each has the second for itself, so that none hides another.
 */
const adviceWork: Readonly<Work> = { pairs: 800_000, matches: 25_000 };
const ownWork: Readonly<Work> = { pairs: 50_000, matches: 4_000 };

/** Folds of one harm, or one kind of advice, that are told of: after some tens the cure is the same for all of them. */
const maxFolds = 50;

/** Finds every pair of routes that an upstream's router may mix up to a caller's advantage. The table has no ties. */
export function findFolds(table: RouteTable, receiver: ReceiverRouter, issuerNames: readonly string[]): FoldReport {
  const folding = foldingOf(receiver);
  const { headAsGet, optionsAsGet, optOuts } = receiver;
  if (!Object.values(folding).includes(true) && !headAsGet && !optionsAsGet && !optOuts) {
    return { folds: [], unfinished: false, cutShort: [] };
  }
  const folded = createFoldedTable(table.routes, folding);
  const check: Check = { table, folded, isLessRestrictive: rememberedComparison(issuerNames) };
  const found: Found = { folds: [], told: new Set(), counts: new Map() };
  const cutShort: Advice[] = [];
  for (const search of searchesOf(check, receiver)) {
    const { advice } = search;
    const faults = found.counts.get('less_restrictive') ?? 0;
    // Where other spellings choose the policy, what is done about them comes first.
    if (faults === maxFolds || (advice === 'routed' && faults > 0)) break;
    look(check, search, found);
    if (search.work.pairs >= 0 && search.work.matches >= 0) continue;
    if (advice === null) return { folds: found.folds, unfinished: true, cutShort };
    cutShort.push(advice);
  }
  return { folds: found.folds, unfinished: false, cutShort };
}

interface Found {
  readonly folds: RouteFold[];
  readonly told: Set<string>;
  /** What is only warned of has bounds of its own, so that it ends no search for what is refused. */
  readonly counts: Map<FoldHarm | Advice, number>;
}

/** Looks through the suspects of a search, as long as its work lasts and there is more to tell of. */
function look(check: Check, { advice, suspects: all, work }: Search, { folds, told, counts }: Found): void {
  for (const suspects of all) {
    work.pairs -= 1;
    if (work.pairs < 0 || work.matches < 0) return;
    const { guard, reached } = suspects;
    if (reached.route === guard.route) continue;
    const harm = harmOf(check, guard.route, reached.route);
    if (harm === null || (harm === 'keys_apart' && advice !== null)) continue;
    const counted = advice ?? harm;
    const count = counts.get(counted) ?? 0;
    if (count === maxFolds) continue;
    const pair = toldBy(suspects, harm);
    if (told.has(pair)) continue;
    const fold = foldBetween(check, suspects, work);
    if (fold === null) continue;
    if (advice === null && isAdvice(fold)) {
      addAdvice({ harm, ...fold }, pair, { folds, told, counts });
      continue;
    }
    told.add(pair);
    counts.set(counted, count + 1);
    folds.push({ harm, ...fold });
    // What scripts route is told of once.
    if (counted !== 'keys_apart' && (count + 1 === maxFolds || advice === 'routed')) return;
  }
}

/** Advice that the search for faults came by: the same routes may have a fault as well. */
function addAdvice(fold: RouteFold, pair: string, { folds, told, counts }: Found): void {
  const [name, count] = [`${pair}\nadvice`, counts.get('format') ?? 0];
  if (told.has(name) || count === maxFolds) return;
  told.add(name);
  counts.set('format', count + 1);
  folds.push(fold);
}

/** One fold is told of for each of these. */
function toldBy({ guard, reached, kind }: Suspects, harm: FoldHarm): string {
  if (kind === 'routed') return kind;
  if (kind === 'options' || kind === 'parameters' || kind === 'slashes') return `${kind}\n${reached.route.name}`;
  const names = [guard.route.name, reached.route.name];
  // Keys that are kept apart are so from both sides.
  return [harm, kind, ...(harm === 'keys_apart' ? names.sort() : names)].join('\n');
}

/** Faults first, then each kind of advice. */
function* searchesOf(check: Check, receiver: ReceiverRouter): Generator<Search> {
  const { table, folded } = check;
  const { folding } = folded;
  const methods = representativeMethods(table).map((method) => ({ method, runs: method }));
  const asGet = receiver.headAsGet ? [{ method: 'HEAD', runs: 'GET' }] : [];
  const plain = createSpeller(table.routes, folding, true);
  const all = [...methods, ...asGet];
  yield { advice: null, suspects: faultSuspects(check, plain, methods, asGet), work: { ...faultWork } };
  let work = { ...adviceWork };
  const search = (advice: Advice, suspectsOf: () => Iterable<Suspects>): Search => {
    work = {
      pairs: Math.max(work.pairs, 0) + ownWork.pairs,
      matches: Math.max(work.matches, 0) + ownWork.matches,
    };
    return { advice, suspects: suspectsOf(), work };
  };
  if (receiver.optionsAsGet) yield search('options', () => optionsSuspects(folded, plain, methods));
  if (folding.suffix) yield search('format', () => formatSuspects(folded, plain, all));
  if (receiver.optOuts) {
    yield search('parameters', () => parameterSuspects(folded, plain, all));
    yield search('slashes', () => slashSuspects(folded, plain, all, work));
  }
  if (folding.pathInfo) yield search('routed', () => routedSuspects(check, plain, all));
}

function* faultSuspects(
  { table, folded }: Check,
  plain: Speller,
  methods: readonly MethodReading[],
  asGet: readonly MethodReading[],
): Generator<Suspects> {
  const { placed, folding } = folded;
  const speller = createSpeller(table.routes, folding, false);
  for (const guard of placed) {
    for (const reached of pathsThatMeet(folded, guard)) {
      yield { guard, reached, speller, methods, kind: 'spelling' };
    }
  }
  const behind = { speller: spellerBehind(plain, folding), methods: [...methods, ...asGet] };
  for (const reached of placed) {
    for (const guard of scriptsBefore(folded, reached)) yield { guard, reached, ...behind, kind: 'script' };
  }
  // A more specific path for HEAD alone takes nothing away from what GET runs.
  const head = { speller: plain, methods: asGet, kind: 'spelling' } as const;
  for (const reached of asGet.length > 0 ? placed.filter(({ route }) => takes(route, 'HEAD')) : []) {
    for (const guard of pathsThatOverlap(folded, reached)) yield { guard, reached, ...head };
  }
}

function* optionsSuspects(
  folded: FoldedTable,
  speller: Speller,
  methods: readonly MethodReading[],
): Generator<Suspects> {
  const others = methods.filter(({ method }) => method !== 'OPTIONS' && method !== 'HEAD');
  const options = {
    speller,
    methods: others.map(({ method }) => ({ method: 'OPTIONS', runs: method })),
    kind: 'options',
  } as const;
  for (const reached of folded.placed.filter(({ route }) => takes(route, 'OPTIONS'))) {
    for (const guard of pathsThatOverlap(folded, reached)) yield { guard, reached, ...options };
  }
}

function* formatSuspects(
  folded: FoldedTable,
  speller: Speller,
  methods: readonly MethodReading[],
): Generator<Suspects> {
  for (const guard of folded.placed) {
    for (const reached of pathsInOtherFormats(folded, guard)) {
      yield { guard, reached, speller, methods, kind: 'format' };
    }
  }
}

/**
 * Pairs of a path that a script can be named in, and of one that is asked for where that name is left out: the script
 * routes the rest.
 */
function* routedSuspects({ folded }: Check, speller: Speller, methods: readonly MethodReading[]): Generator<Suspects> {
  const fresh = freshScript(folded);
  for (const reached of folded.placed) {
    for (const [at, segment] of reached.path.segments.entries()) {
      // Where no route names a script, it is in the first segment: other folders rarely have one of their own.
      if (segment.kind === 'literal' ? !hasScriptEnding(segment.text) : at > 0) continue;
      const script = segment.kind === 'literal' ? segment.text : fresh;
      const segments = segment.kind === 'rest' ? reached.path.segments : reached.path.segments.toSpliced(at, 1);
      if (segments.length === at) continue;
      const path: RoutePath = { ...reached.path, segments };
      const through: Speller = function* (guard) {
        for (const spelling of speller(guard, path)) yield spelling.toSpliced(at, 0, script);
      };
      for (const guard of pathsThatOverlap(folded, { route: reached.route, path })) {
        yield { guard, reached, speller: through, methods, kind: 'routed' };
      }
    }
  }
}

/** The usual name of a script that routes, or one like it that no route names. */
function freshScript({ placed }: FoldedTable): string {
  const named = new Set(
    placed.flatMap(({ path }) => path.segments.map((segment) => (segment.kind === 'literal' ? segment.text : ''))),
  );
  let script = 'index.php';
  while (named.has(script)) script = `x${script}`;
  return script;
}

/** Spells out requests for what follows a path: rather with a name there than with a slash alone. */
function spellerBehind(speller: Speller, folding: Folding): Speller {
  return function* (guard, reached) {
    const segments = foldedPath(guard, folding);
    const below: RoutePath = { ...guard, segments: [...segments, { kind: 'rest' }] };
    for (const isSlash of [false, true]) {
      for (const spelling of speller(below, reached)) {
        if (spelling.length > segments.length && (spelling.at(-1) === '') === isSlash) yield spelling;
      }
    }
  };
}

function harmOf({ isLessRestrictive }: Check, guard: Route, reached: Route): FoldHarm | null {
  if (isLessRestrictive(reached, guard)) return 'less_restrictive';
  return keepsKeysApart(reached, guard) ? 'keys_apart' : null;
}

/** A spelling that the policy gives to `reached` and the upstream to `guard`, rather a fault: found by asking both. */
function foldBetween(
  check: Check,
  { guard, reached, speller, methods: all, kind }: Suspects,
  work: Work,
): Omit<RouteFold, 'harm'> | null {
  work.matches -= 1;
  const methods = all.filter(({ method, runs }) => takes(guard.route, runs) && takes(reached.route, method));
  if (methods.length === 0) return null;
  let advice: Omit<RouteFold, 'harm'> | null = null;
  for (const spelling of speller(guard.path, reached.path)) {
    for (const { method, runs } of methods) {
      work.matches -= 1;
      if (placeOf(check.table, method, spelling)?.route !== reached.route) continue;
      if (!placesOf[kind](check.folded, runs, spelling).some((place) => place.route === guard.route)) continue;
      const fold = { guard, reached, method, runs, spelling, kind };
      if (kind !== 'spelling' || !isAdvice(fold)) return fold;
      advice ??= fold;
    }
    if (work.matches < 0) return null;
  }
  return advice;
}

function takes(route: Route, method: string): boolean {
  return route.methods === null || route.methods.has(method);
}
