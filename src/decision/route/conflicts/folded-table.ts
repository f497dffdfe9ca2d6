import type { Route, RoutePath, Segment } from '../policy.js';
import type { PlacedRoute } from '../route-table.js';
import { hasScriptEnding, isScript } from './script-names.js';

/** Which differences a laxer router ignores. */
export interface Folding {
  readonly case: boolean;
  readonly slash: boolean;
  /**
   * Whether dots and blanks at the end of a segment are ignored, as Windows does with names of files, and blanks at its
   * beginning, as Spring did before 4.3.
   */
  readonly dots: boolean;
  /** Whether `/admin.json` is `/admin` in another format: only the last segment has one. */
  readonly suffix: boolean;
  /**
   * Whether `/admin.php/x` is `/admin.php`: a server that runs scripts hands the rest of the path to them. And whether
   * `/index.php/admin` is `/admin`: a script may route by that rest, as Symfony and Laravel do.
   */
  readonly pathInfo: boolean;
}

/** The routes as a router that folds would hold them: several may share one place. */
export interface FoldedTable {
  readonly folding: Folding;
  readonly placed: readonly PlacedRoute[];
  readonly root: FoldedNode;
  /** Of the literals, without what is ignored: a longer text is none of them. */
  readonly longest: number;
  /** Where suffixes are ignored: paths that end in a literal, by `endKey`. */
  readonly plain: ReadonlyMap<string, readonly PlacedRoute[]>;
  /** Those whose last literal has a suffix, by each `endKey` of what may be left without it. */
  readonly suffixed: ReadonlyMap<string, readonly PlacedRoute[]>;
  /** Where suffixes are ignored: paths that end in a slash, with it, as a tree of their own. Else `null`. */
  readonly slashed: FoldedNode | null;
  /** Where suffixes are ignored: paths whose last literal has one, by each name without it, as a tree. */
  readonly bases: FoldedNode;
  /** Where what follows a script is ignored: paths that name one, as a tree of their own. Else `null`. */
  readonly scripts: FoldedNode | null;
}

interface FoldedNode {
  readonly literals: Map<string, FoldedNode>;
  parameter: FoldedNode | null;
  readonly here: PlacedRoute[];
  readonly below: PlacedRoute[];
}

/** Arranges routes as a laxer router would. */
export function createFoldedTable(routes: readonly Route[], folding: Folding): FoldedTable {
  const placed = routes.flatMap((route) => route.paths.map((path) => ({ route, path })));
  const ends = (
    keysOf: (path: RoutePath, folding: Folding) => readonly string[],
  ): ReadonlyMap<string, readonly PlacedRoute[]> =>
    folding.suffix ? placesByKey(placed, ({ path }) => keysOf(path, folding)) : new Map();
  const folded = (place: PlacedRoute): Placement => ({ place, segments: foldedPath(place.path, folding) });
  const slashed = folding.suffix
    ? placed.filter(({ path }) => endsInSlash(path)).map((place) => ({ place, segments: place.path.segments }))
    : [];
  const bases = folding.suffix ? placed.flatMap((place) => basesOf(place, folding)) : [];
  const scripts = folding.pathInfo ? placed.filter(({ path }) => namesScript(path, folding)).map(folded) : [];
  return {
    folding,
    placed,
    root: treeOf(placed.map(folded), folding),
    longest: longestLiteral(placed, folding),
    plain: ends(plainKeys),
    suffixed: ends(suffixedKeys),
    slashed: treeUnlessEmpty(slashed, folding),
    bases: treeOf(bases, folding),
    scripts: treeUnlessEmpty(scripts, folding),
  };
}

function longestLiteral(placed: readonly PlacedRoute[], folding: Folding): number {
  return placed
    .flatMap(({ path }) => path.segments)
    .reduce(
      (most, segment) => (segment.kind === 'literal' ? Math.max(most, foldText(segment.text, folding).length) : most),
      0,
    );
}

/** A path, and the segments by which it is found in a tree. */
interface Placement {
  readonly place: PlacedRoute;
  readonly segments: readonly Segment[];
}

function treeUnlessEmpty(placements: readonly Placement[], folding: Folding): FoldedNode | null {
  return placements.length > 0 ? treeOf(placements, folding) : null;
}

function treeOf(placements: readonly Placement[], folding: Folding): FoldedNode {
  const root = growNode();
  for (const { place, segments } of placements) {
    let node = root;
    let isRest = false;
    for (const segment of segments) {
      if (segment.kind === 'rest') isRest = true;
      else if (segment.kind === 'parameter') node = node.parameter ??= growNode();
      else node = literalChild(node, foldText(segment.text, folding));
    }
    (isRest ? node.below : node.here).push(place);
  }
  return root;
}

function basesOf(place: PlacedRoute, folding: Folding): readonly Placement[] {
  const segments = foldedPath(place.path, folding);
  const last = segments.at(-1);
  const names = last?.kind === 'literal' ? withoutSuffix(foldText(last.text, folding), folding) : [];
  return names
    .filter((name) => name !== '')
    .map((text) => ({ place, segments: [...segments.slice(0, -1), { kind: 'literal', text }] }));
}

function namesScript(path: RoutePath, folding: Folding): boolean {
  const texts = foldedPath(path, folding).map((segment) =>
    segment.kind === 'literal' ? foldText(segment.text, folding) : null,
  );
  return isScript(texts);
}

function placesByKey(
  placed: readonly PlacedRoute[],
  keysOf: (place: PlacedRoute) => readonly string[],
): ReadonlyMap<string, readonly PlacedRoute[]> {
  const places = new Map<string, PlacedRoute[]>();
  for (const place of placed) {
    for (const key of keysOf(place)) {
      const known = places.get(key);
      if (known === undefined) places.set(key, [place]);
      else known.push(place);
    }
  }
  return places;
}

/** The `endKey` of a path; none where its last segment is no literal, or the slash at the end. */
function plainKeys(path: RoutePath, folding: Folding): readonly string[] {
  const segments = endOf(path, folding);
  const last = segments.at(-1);
  return last?.kind === 'literal' && last.text !== '' ? [endKey(segments.length, foldText(last.text, folding))] : [];
}

/** Each `endKey` that a path may have without its suffix. */
function suffixedKeys(path: RoutePath, folding: Folding): readonly string[] {
  const segments = endOf(path, folding);
  const last = segments.at(-1);
  const plain = last?.kind === 'literal' ? withoutSuffix(foldText(last.text, folding), folding) : [];
  return plain.map((text) => endKey(segments.length, text));
}

/** Only paths of one length and with one text at the end can be one path in two formats. */
function endKey(length: number, lastText: string): string {
  return `${String(length)} ${lastText}`;
}

/**
 * Returns the segments of a path up to a `**` that may be empty: `/a/` is in `/a/**`, and is `/a` to a router that
 * ignores the slash.
 */
function endOf(path: RoutePath, folding: Folding): readonly Segment[] {
  const segments = foldedPath(path, folding);
  return folding.slash && segments.at(-1)?.kind === 'rest' ? segments.slice(0, -1) : segments;
}

/** Text as a laxer router compares it. */
export function foldText(text: string, folding: Folding): string {
  const trimmed = folding.dots ? withoutBlanks(text) : text;
  return folding.case ? foldCase(trimmed) : trimmed;
}

const ascii = /^[\0-\x7f]*$/;

/**
 * Letters without their case, each by itself: as in Java, ı and İ are i and ſ is s, by its capital. Of İ, `toLowerCase`
 * makes an i with a dot. Letters whose capital is several stay: ß is not ss.
 */
function foldCase(text: string): string {
  const lower = text.toLowerCase();
  if (ascii.test(text)) return lower;
  return Array.from(lower, (letter) => {
    const folded = letter.toUpperCase().toLowerCase();
    return folded.length === letter.length ? folded : letter;
  })
    .join('')
    .replaceAll('i\u0307', 'i');
}

/** A text without blanks at its beginning, and dots and blanks at its end; one of nothing else stays as it is. */
function withoutBlanks(text: string): string {
  let end = text.length;
  while (end > 0 && (text[end - 1] === '.' || text[end - 1] === ' ')) end -= 1;
  if (end === 0) return text;
  let start = 0;
  while (text[start] === ' ') start += 1;
  return text.slice(start, end);
}

/**
 * What may be left of a folded text without its suffix, which begins at its last dot to some routers (Rails), and at
 * any to others (Spring before 5.3). None where it has no suffix; and the empty text where it is nothing else, since
 * `/.x` is `/` in another format to Spring before 5.3, and `/admin/.x` is `/admin/`.
 *
 * @param longest above which nothing is looked for: a text may be all dots.
 */
function withoutSuffix(text: string, { dots }: Folding, longest = Infinity): readonly string[] {
  const plain = new Set<string>();
  let end = 0; // of what is left without dots and blanks behind it
  for (let at = 0; at < text.length - 1; at += 1) {
    if (text[at] === '.') {
      const length = dots && end > 0 ? end : at;
      if (length > longest) break;
      plain.add(text.slice(0, length));
    } else if (text[at] !== ' ') end = at + 1;
  }
  return [...plain];
}

/** Whether a path is `/`, or has a slash at its end. */
export function endsInSlash({ segments }: RoutePath): boolean {
  const last = segments.at(-1);
  return last?.kind === 'literal' && last.text === '';
}

/** Segments of a path without the trailing slash that a laxer router ignores; `/` keeps its own. */
export function foldedPath(path: RoutePath, folding: Folding): readonly Segment[] {
  return folding.slash && path.segments.length > 1 && endsInSlash(path) ? path.segments.slice(0, -1) : path.segments;
}

/** The places that a laxer router finds for a request: more than one where paths differ only in what it ignores. */
export function foldedPlaces(table: FoldedTable, method: string, segments: readonly string[]): readonly PlacedRoute[] {
  const { folding } = table;
  const seen = seenBy(table, segments);
  const exact = walk(table, table.root, method, seen, 0);
  const plain = folding.suffix ? withoutSuffix(seen.at(-1) ?? '', folding, table.longest) : [];
  // Which of them the router takes depends on the order of its routes, which nobody told us. A parameter takes the
  // suffix along, and so does a `**` that the last segment is in.
  const formatted = plain.flatMap((text) =>
    text === '' ? [] : walk(table, table.root, method, [...seen.slice(0, -1), text], 0),
  );
  const slashed =
    table.slashed !== null && plain.includes('')
      ? walk(table, table.slashed, method, [...seen.slice(0, -1), ''], 0)
      : [];
  const hasFormat = ({ path }: PlacedRoute): boolean => {
    const end = endOf(path, folding);
    return end.length === seen.length && end.at(-1)?.kind === 'literal';
  };
  return [...exact, ...formatted.filter(hasFormat), ...slashed, ...scriptsOf(table, method, seen, segments.length)];
}

/** The places of a request that goes through a script to what it routes: its name is no part of the path then. */
export function placesRoutedByScript(
  table: FoldedTable,
  method: string,
  segments: readonly string[],
): readonly PlacedRoute[] {
  const seen = seenBy(table, segments);
  return seen.flatMap((name, at) =>
    hasScriptEnding(name) && (seen[at + 1] ?? '') !== ''
      ? walk(table, table.root, method, seen.toSpliced(at, 1), 0)
      : [],
  );
}

/** The places that have the name of a request in another format: one action may answer for all of them, as in Rails. */
export function placesInOtherFormats(
  table: FoldedTable,
  method: string,
  segments: readonly string[],
): readonly PlacedRoute[] {
  const seen = seenBy(table, segments);
  const last = seen.at(-1) ?? '';
  const names = [last, ...withoutSuffix(last, table.folding, table.longest)];
  return names.flatMap((name) => walk(table, table.bases, method, [...seen.slice(0, -1), name], 0));
}

/** Segments of a request as a laxer router sees them. */
function seenBy({ folding }: FoldedTable, segments: readonly string[]): readonly string[] {
  const slashed = folding.slash && segments.length > 1 && segments.at(-1) === '';
  return (slashed ? segments.slice(0, -1) : segments).map((text) => foldText(text, folding));
}

/** The scripts that a request may run whose path goes on behind their names. */
function scriptsOf(
  table: FoldedTable,
  method: string,
  seen: readonly string[],
  length: number,
): readonly PlacedRoute[] {
  if (table.scripts === null) return [];
  const beginnings = seen.slice(0, length - 1).map((_, at) => seen.slice(0, at + 1));
  return beginnings
    .flatMap((texts) => walk(table, table.root, method, texts, 0))
    .filter(({ path }) => namesScript(path, table.folding));
}

/**
 * Yields the paths that a request may reach which a laxer router hands to the operation of this one: those that share a
 * folded spelling with it and are, to such a router, no more specific. Of those with a suffix also the more specific
 * ones: without it they are no place of their own, so that `/a/b.json` is `/{x}/b`.
 */
export function* pathsThatMeet(table: FoldedTable, guard: PlacedRoute): Generator<PlacedRoute> {
  yield* meet(table, table.root, foldedPath(guard.path, table.folding), 0, false);
  for (const key of plainKeys(guard.path, table.folding)) {
    yield* beginAlike(table, endOf(guard.path, table.folding), table.suffixed.get(key));
  }
  if (!table.folding.suffix || !endsInSlash(guard.path)) return;
  const { segments } = guard.path;
  yield* meet(table, table.root, [...segments.slice(0, -1), formatOfNothing], 0, true);
  yield* beginAlike(table, segments, table.suffixed.get(endKey(segments.length, '')));
}

/** Stands for every format of the slash at the end of a path: no route writes it. */
const formatOfNothing: Segment = { kind: 'literal', text: '.' };

/** Yields the paths whose operation a laxer router may run for a request that reaches this one, specific or not. */
export function* pathsThatOverlap(table: FoldedTable, reached: PlacedRoute): Generator<PlacedRoute> {
  yield* meet(table, table.root, foldedPath(reached.path, table.folding), 0, true);
  const end = endOf(reached.path, table.folding);
  const keys = suffixedKeys(reached.path, table.folding);
  for (const key of keys) yield* beginAlike(table, end, table.plain.get(key));
  if (table.slashed === null) return;
  const { segments } = reached.path;
  if (segments.at(-1)?.kind === 'rest') yield* meet(table, table.slashed, segments, 0, true);
  // What is below a path takes the slash behind a format, too: `/a/.x/` is in `/a/{x}/**`.
  if (end.at(-1)?.kind === 'parameter' || keys.includes(endKey(end.length, ''))) {
    yield* meet(table, table.slashed, [...end.slice(0, -1), { kind: 'literal', text: '' }], 0, true);
  }
}

/** Yields the paths whose last literal is that of this one without a suffix, or with another. */
export function* pathsInOtherFormats(table: FoldedTable, guard: PlacedRoute): Generator<PlacedRoute> {
  if (!table.folding.suffix) return;
  for (const { segments } of basesOf(guard, table.folding)) {
    yield* meet(table, table.bases, segments, 0, true);
    for (const place of meet(table, table.root, segments, 0, true)) {
      if (endOf(place.path, table.folding).at(-1)?.kind === 'literal') yield place;
    }
  }
}

/** Yields the scripts that may be run for a request which reaches this path and is longer than their own. */
export function* scriptsBefore({ scripts, folding }: FoldedTable, reached: PlacedRoute): Generator<PlacedRoute> {
  if (scripts !== null) yield* before(scripts, foldedPath(reached.path, folding), 0, folding);
}

function* before(node: FoldedNode, path: readonly Segment[], at: number, folding: Folding): Generator<PlacedRoute> {
  const segment = path[at];
  if (segment === undefined) return;
  yield* node.here;
  if (segment.kind === 'rest') {
    yield* everythingFrom(node, false);
    return;
  }
  if (segment.kind === 'parameter') {
    for (const literal of node.literals.values()) yield* before(literal, path, at + 1, folding);
  } else {
    const literal = node.literals.get(foldText(segment.text, folding));
    if (literal !== undefined) yield* before(literal, path, at + 1, folding);
  }
  if (node.parameter !== null) yield* before(node.parameter, path, at + 1, folding);
}

/** Returns those of the places whose segments but the last take a text that the same segment of the path takes. */
function beginAlike(
  { folding }: FoldedTable,
  end: readonly Segment[],
  places: readonly PlacedRoute[] = [],
): readonly PlacedRoute[] {
  const before = end.slice(0, -1);
  return places.filter((place) => {
    const others = endOf(place.path, folding);
    return before.every((segment, at) => takeOneText(segment, others[at], folding));
  });
}

/** Whether two segments before the last one, which are never empty, take one text. */
function takeOneText(one: Segment, other: Segment | undefined, folding: Folding): boolean {
  if (one.kind !== 'literal' || other?.kind !== 'literal') return true;
  return foldText(one.text, folding) === foldText(other.text, folding);
}

function walk(
  table: FoldedTable,
  node: FoldedNode,
  method: string,
  segments: readonly string[],
  at: number,
): readonly PlacedRoute[] {
  const text = segments[at];
  if (text === undefined) {
    const here = taking(node.here, method);
    // `/a` and `/a/` are one to a router that ignores the slash, and `/a/` is below `/a/**`.
    return here.length > 0 || !table.folding.slash ? here : taking(node.below, method);
  }
  const literal = node.literals.get(text);
  if (literal !== undefined) {
    const found = walk(table, literal, method, segments, at + 1);
    if (found.length > 0) return found;
  }
  if (node.parameter !== null && text !== '') {
    const found = walk(table, node.parameter, method, segments, at + 1);
    if (found.length > 0) return found;
  }
  return taking(node.below, method);
}

function taking(places: readonly PlacedRoute[], method: string): readonly PlacedRoute[] {
  return places.filter(({ route }) => route.methods === null || route.methods.has(method));
}

/**
 * @param isLess whether the walk has already left for a less specific path; only then may it pass a more specific
 * segment
 */
function* meet(
  table: FoldedTable,
  node: FoldedNode,
  path: readonly Segment[],
  at: number,
  isLess: boolean,
): Generator<PlacedRoute> {
  const segment = path[at];
  if (segment === undefined) {
    yield* node.here;
    if (table.folding.slash) yield* node.below;
    return;
  }
  if (segment.kind === 'rest') {
    if (isLess) yield* everythingFrom(node, table.folding.slash);
    else yield* node.below;
    return;
  }
  yield* node.below;
  if (segment.kind === 'literal') {
    const text = foldText(segment.text, table.folding);
    const literal = node.literals.get(text);
    if (literal !== undefined) yield* meet(table, literal, path, at + 1, isLess);
  } else if (isLess) {
    for (const [text, literal] of node.literals) if (text !== '') yield* meet(table, literal, path, at + 1, isLess);
  }
  const becomesLess = isLess || segment.kind === 'literal';
  if (node.parameter !== null && !(segment.kind === 'literal' && segment.text === '')) {
    yield* meet(table, node.parameter, path, at + 1, becomesLess);
  }
}

function* everythingFrom(node: FoldedNode, withItself: boolean): Generator<PlacedRoute> {
  if (withItself) yield* node.here;
  yield* node.below;
  for (const literal of node.literals.values()) yield* everythingFrom(literal, true);
  if (node.parameter !== null) yield* everythingFrom(node.parameter, true);
}

function growNode(): FoldedNode {
  return { literals: new Map(), parameter: null, here: [], below: [] };
}

function literalChild(node: FoldedNode, text: string): FoldedNode {
  let child = node.literals.get(text);
  if (child === undefined) {
    child = growNode();
    node.literals.set(text, child);
  }
  return child;
}
