/** Requests that stand for all others: every path that some route of some policies tells from the rest. */
import { METHODS } from 'node:http';
import { encodeSegment, readTarget } from '../../decision/http/request-target.js';
import type { Route } from '../../decision/route/policy.js';
import { placeOf, type RouteNode, type RouteTable } from '../../decision/route/route-table.js';
import { unusedText } from '../../lib/text.js';

/** One path, as a request spells it. */
interface Spelling {
  /** Decoded segments. */
  readonly segments: readonly string[];
  /** The request target. */
  readonly target: string;
  /** For people: `{any}` is a segment that no route names, `**` anything below. */
  readonly text: string;
}

/** What the representative paths of some policies are. */
interface Spellings {
  readonly all: readonly Spelling[];
  /** False where there are too many to be listed. */
  readonly complete: boolean;
}

/**
 * Policies of thousands of routes have about as many paths; only those in which hundreds of `{x}` overlap have more
 * than this.
 */
const maxSpellings = 50_000;

interface Growing {
  readonly found: Spelling[];
  readonly fresh: string;
  complete: boolean;
}

/**
 * Lists paths such that every request is matched like one of them by each of the tables. Walks the tables side by side:
 * at every segment all texts that a route names there, one that none does, and the end with and without a slash. Below
 * the point where no table goes on, only a `**` above can match, whatever follows.
 */
export function spellingsOf(tables: readonly RouteTable[]): Spellings {
  const growing: Growing = { found: [], fresh: freshText(tables), complete: true };
  grow(
    tables.map(({ root }) => root),
    [],
    growing,
  );
  return { all: growing.found, complete: growing.complete };
}

/** Every method that a route names, and one that none does. */
export function methodsOf(tables: readonly RouteTable[]): {
  readonly named: readonly string[];
  readonly other: string | null;
} {
  const named = new Set(tables.flatMap(({ routes }) => routes.flatMap(({ methods }) => [...(methods ?? [])])));
  const ordinary = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', ...METHODS].filter(
    (method) => !['TRACE', 'CONNECT'].includes(method),
  );
  return { named: [...named], other: ordinary.find((method) => !named.has(method)) ?? null };
}

/** A request for each route that takes any of these paths: method and target. */
export function placesOf(
  table: RouteTable,
  spellings: readonly Spelling[],
): ReadonlyMap<Route, { readonly method: string; readonly path: string }> {
  const { named, other } = methodsOf([table]);
  const methods = ['GET', 'POST', ...named, ...(other === null ? [] : [other])];
  const places = new Map<Route, { readonly method: string; readonly path: string }>();
  for (const { segments, target } of spellings) {
    for (const method of methods) {
      const route = placeOf(table, method, segments)?.route;
      if (route !== undefined && !places.has(route)) places.set(route, { method, path: target });
    }
  }
  return places;
}

function grow(nodes: readonly RouteNode[], segments: readonly string[], growing: Growing): void {
  const literals = new Set(nodes.flatMap(({ literals: known }) => [...known.keys()]));
  literals.delete('');
  for (const text of ['', growing.fresh, ...literals]) {
    const path = [...segments, text];
    const next = nodes.flatMap((node) => childrenOf(node, text));
    add(path, next.length === 0, growing);
    if (growing.found.length >= maxSpellings) {
      growing.complete = false;
      return;
    }
    if (text !== '' && next.length > 0) grow(next, path, growing);
  }
}

function childrenOf({ literals, parameter }: RouteNode, text: string): readonly RouteNode[] {
  const literal = literals.get(text);
  return [...(literal === undefined ? [] : [literal]), ...(parameter === null || text === '' ? [] : [parameter])];
}

/** What no request can spell (`;` and kin are no literals to any) stands for nothing. */
function add(segments: readonly string[], isEnd: boolean, { found, fresh }: Growing): void {
  const target = `/${segments.map(encodeSegment).join('/')}`;
  const read = readTarget(target, target.length);
  if (!read.ok || read.value.segments.some((segment, at) => segment !== segments[at])) return;
  const shown = segments.map((text, at) =>
    text !== fresh ? encodeSegment(text) : isEnd && at === segments.length - 1 ? '**' : '{any}',
  );
  found.push({ segments, target, text: `/${shown.join('/')}` });
}

function freshText(tables: readonly RouteTable[]): string {
  const known = new Set(
    tables.flatMap(({ routes }) =>
      routes.flatMap(({ paths }) =>
        paths.flatMap(({ segments }) =>
          segments.flatMap((segment) => (segment.kind === 'literal' ? [segment.text] : [])),
        ),
      ),
    ),
  );
  return unusedText('x', (text) => known.has(text));
}
