import type { Route, RoutePath, Segment } from '../../../src/decision/route/policy.js';
import { approval, route } from '../samples.js';

/** A path of decoded literals, `{x}` and `**`, without the checks of the config. */
export function routePath(text: string): RoutePath {
  const segments = text
    .split('/')
    .slice(1)
    .map((part): Segment => {
      if (part === '**') return { kind: 'rest' };
      const name = /^\{(.*)\}$/.exec(part)?.[1];
      return name === undefined ? { kind: 'literal', text: part } : { kind: 'parameter', name };
    });
  return { text, segments };
}

/** A route named like its methods and paths: `GET /a`, `GET,HEAD /a /b`, `* /a`, for subjects that may do it. */
export function routeOf(
  text: string,
  subjects: readonly string[] | 'public' = ['checkout'],
  overrides: Partial<Route> = {},
): Route {
  const [methods = '', ...paths] = text.split(' ');
  return route({
    name: text,
    methods: methods === '*' ? null : new Set(methods.split(',')),
    paths: paths.map(routePath),
    access: subjects === 'public' ? 'public' : 'protected',
    approvals: subjects === 'public' ? [] : [approval(subjects, [])],
    ...overrides,
  });
}

/** Segments of a path that holds nothing encoded. */
export function segmentsOf(path: string): readonly string[] {
  return path.split('/').slice(1);
}

const rank = { literal: 0, parameter: 1, rest: 2 };

/** Whether a path matches: written again, without a tree. */
export function pathTakes(
  path: RoutePath,
  segments: readonly string[],
  same = (a: string, b: string) => a === b,
): boolean {
  const rest = path.segments.at(-1)?.kind === 'rest';
  const fixed = rest ? path.segments.slice(0, -1) : path.segments;
  if (rest ? segments.length <= fixed.length : segments.length !== fixed.length) return false;
  return fixed.every((segment, at) => {
    const text = segments[at] ?? '';
    return segment.kind === 'literal' ? same(segment.text, text) : text !== '';
  });
}

/** Which of two paths that match the same request comes first: from left to right, literal, `{x}`, `**`. */
export function compareSpecificity(a: RoutePath, b: RoutePath): number {
  for (let at = 0; at < Math.max(a.segments.length, b.segments.length); at += 1) {
    const [one, other] = [a.segments[at], b.segments[at]];
    if (one === undefined) return -1;
    if (other === undefined) return 1;
    if (one.kind !== other.kind) return rank[one.kind] - rank[other.kind];
  }
  return 0;
}

/** The most specific path that matches and has a route for the method: by trying all of them. */
export function naiveMatch(routes: readonly Route[], method: string, segments: readonly string[]): Route | null {
  const found = routes
    .filter(({ methods }) => methods === null || methods.has(method))
    .flatMap((route) => route.paths.map((path) => ({ route, path })))
    .filter(({ path }) => pathTakes(path, segments))
    .sort((a, b) => compareSpecificity(a.path, b.path));
  return found[0]?.route ?? null;
}
