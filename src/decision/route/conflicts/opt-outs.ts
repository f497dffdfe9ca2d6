/**
 * What only routes with an opt-out take, and is judged as one segment of its own: `/admin;x` (`path_parameters: allow`)
 * and `/admin%2Fusers` (`encoded_slashes: allow`). Where the upstream drops parameters, as servlets do, or decodes
 * slashes before it routes, it runs `/admin` and `/admin/users` for them.
 */
import { foldedPath, foldedPlaces, pathsThatOverlap, type FoldedTable } from './folded-table.js';
import type { MethodReading, Suspects, Work } from './find-conflicts.js';
import type { RoutePath, Segment } from '../policy.js';
import type { PlacedRoute } from '../route-table.js';
import type { Speller } from './sample-paths.js';

/** The places of a request to a router that drops parameters and decodes slashes. */
export function placesOfOptOut(
  table: FoldedTable,
  method: string,
  segments: readonly string[],
): readonly PlacedRoute[] {
  const read = segments.flatMap((text) => text.split('%2F')).map((text) => text.split(';', 1).join(''));
  return foldedPlaces(table, method, read);
}

/** Pairs of a route that takes parameters, and of one whose operation the upstream may run without them. */
export function* parameterSuspects(
  folded: FoldedTable,
  plain: Speller,
  methods: readonly MethodReading[],
): Generator<Suspects> {
  const speller = spellerWithParameters(plain);
  for (const reached of folded.placed.filter(({ route }) => route.pathParameters)) {
    for (const guard of pathsThatOverlap(folded, reached)) {
      yield { guard, reached, speller, methods, kind: 'parameters' };
    }
  }
}

/** Pairs of a route that takes encoded slashes, and of one whose operation the upstream may run for them decoded. */
export function* slashSuspects(
  folded: FoldedTable,
  plain: Speller,
  methods: readonly MethodReading[],
  work: Work,
): Generator<Suspects> {
  const speller = spellerWithSlashes(plain, folded, work);
  for (const reached of folded.placed.filter(({ route }) => route.encodedSlashes)) {
    const { segments } = reached.path;
    const from = segments.findIndex(({ kind }) => kind !== 'literal');
    if (from === -1) continue;
    const path: RoutePath = { ...reached.path, segments: [...segments.slice(0, from), { kind: 'rest' }] };
    for (const guard of pathsThatOverlap(folded, { route: reached.route, path })) {
      yield { guard, reached, speller, methods, kind: 'slashes' };
    }
  }
}

/** Adds a parameter wherever the path that is reached takes one: what else would take all of them takes fewer, too. */
function spellerWithParameters(speller: Speller): Speller {
  return function* (guard, reached) {
    for (const spelling of speller(guard, reached)) {
      yield spelling.map((text, at) => (text === '' || reached.segments[at]?.kind === 'literal' ? text : `${text};x`));
    }
  };
}

/** Segments of a request that are written as one, and the segment of a path that takes them. */
interface Division {
  readonly taker: Segment;
  readonly size: number;
}

/** Divisions of requests that are tried for a pair of paths: what others take of the first they mostly take of all. */
const maxDivisions = 64;

/** Writes several segments as one wherever the path that is reached takes any. A division is work like a match. */
function spellerWithSlashes(speller: Speller, { folding, placed }: FoldedTable, work: Work): Speller {
  // No path but one with `**` is as long, even where two segments are written as one.
  const longest = placed.reduce((most, { path }) => Math.max(most, path.segments.length), 0) + 2;
  return function* (guard, reached) {
    const least = foldedPath(guard, folding).length;
    const most = guard.segments.at(-1)?.kind === 'rest' ? Math.max(least, longest) : least;
    let left = maxDivisions;
    for (let length = least; length <= most; length += 1) {
      for (const divisions of divisionsOf(foldedPath(reached, folding), length)) {
        work.matches -= 1;
        if (work.matches < 0) return;
        if (divisions.every(({ size }) => size === 1)) continue;
        if (left === 0) return;
        left -= 1;
        const segments = divisions.flatMap(({ taker, size }) => Array<Segment>(size).fill(taker));
        for (const spelling of speller(guard, { ...reached, segments })) yield joined(spelling, divisions);
      }
    }
  };
}

/** Ways in which a path may take so many segments: a literal takes one, and `**` several. The first takes the most. */
function* divisionsOf(path: readonly Segment[], length: number): Generator<readonly Division[]> {
  const [segment, ...others] = path;
  if (segment === undefined) {
    if (length === 0) yield [];
    return;
  }
  const most = length - others.length;
  const taker: Segment = segment.kind === 'literal' ? segment : { kind: 'parameter', name: '' };
  for (let size = segment.kind === 'literal' ? Math.min(most, 1) : most; size > 0; size -= 1) {
    const behind = segment.kind === 'rest' && size < length ? path : others;
    for (const divisions of divisionsOf(behind, length - size)) yield [{ taker, size }, ...divisions];
  }
}

function joined(spelling: readonly string[], divisions: readonly Division[]): readonly string[] {
  let end = 0;
  const parts = divisions.map(({ size }) => {
    end += size;
    return spelling.slice(end - size, end).join('%2F');
  });
  return [...parts, ...spelling.slice(end)];
}
