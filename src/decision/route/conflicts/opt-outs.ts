/**
 * What only routes with an opt-out take, and is judged as one segment of its own: `/admin;x` (`path_parameters: allow`)
 * and `/admin%2Fusers` (`encoded_slashes: allow`). Where the upstream drops parameters, as servlets do, or decodes
 * slashes before it routes, it runs `/admin` and `/admin/users` for them.
 */
import { foldedPath, foldedPlaces, pathsThatOverlap, type FoldedTable, type Folding } from './folded-table.js';
import type { MethodReading, Suspects } from './find-conflicts.js';
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

/** Pairs of a route that takes such a target, and of one whose operation the upstream may run for it. */
export function* optOutSuspects(
  folded: FoldedTable,
  speller: Speller,
  methods: readonly MethodReading[],
): Generator<Suspects> {
  for (const reached of folded.placed.filter(({ route }) => route.pathParameters)) {
    const through = spellerWithParameters(speller);
    for (const guard of pathsThatOverlap(folded, reached)) {
      yield { guard, reached, speller: through, methods, kind: 'parameters' };
    }
  }
  for (const reached of folded.placed.filter(({ route }) => route.encodedSlashes)) {
    const { segments } = reached.path;
    const from = segments.findIndex(({ kind }) => kind !== 'literal');
    if (from === -1) continue;
    const path: RoutePath = { ...reached.path, segments: [...segments.slice(0, from), { kind: 'rest' }] };
    const through = spellerWithSlashes(speller, folded.folding);
    for (const guard of pathsThatOverlap(folded, { route: reached.route, path })) {
      yield { guard, reached, speller: through, methods, kind: 'slashes' };
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

/** Writes several segments as one wherever the path that is reached takes any. */
function spellerWithSlashes(speller: Speller, folding: Folding): Speller {
  return function* (guard, reached) {
    const segments = foldedPath(reached, folding);
    for (const sizes of sizesOf(segments, foldedPath(guard, folding).length)) {
      if (sizes.every((size) => size === 1)) continue;
      const split = segments.flatMap((segment, at) => Array<Segment>(sizes[at] ?? 0).fill(oneOf(segment)));
      for (const spelling of speller(guard, { ...reached, segments: split })) yield joined(spelling, sizes);
    }
  };
}

/** Ways in which the segments of a path may take so many: a literal takes one. The first takes the most. */
function* sizesOf([segment, ...others]: readonly Segment[], length: number): Generator<readonly number[]> {
  if (segment === undefined) {
    if (length === 0) yield [];
    return;
  }
  const most = length - others.length;
  for (let size = segment.kind === 'literal' ? Math.min(most, 1) : most; size > 0; size -= 1) {
    for (const sizes of sizesOf(others, length - size)) yield [size, ...sizes];
  }
}

function oneOf(segment: Segment): Segment {
  return segment.kind === 'literal' ? segment : { kind: 'parameter', name: '' };
}

function joined(spelling: readonly string[], sizes: readonly number[]): readonly string[] {
  let end = 0;
  const parts = sizes.map((size) => {
    end += size;
    return spelling.slice(end - size, end).join('%2F');
  });
  return [...parts, ...spelling.slice(end)];
}
