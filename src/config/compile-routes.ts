import type { Approval, Route, RoutePath } from '../decision/policy.js';
import type { ConfigParts, Entry } from './parse.js';
import { nameOf, type Report } from './report.js';
import { readRoutePath } from './route-path.js';
import type { RouteFile } from './schema-routes.js';
import type { Path } from './source-tree.js';

/** Routes as the decision functions read them, and where in the file they came from. */
export interface CompiledRoutes {
  readonly routes: readonly Route[];
  readonly placeOfRoute: ReadonlyMap<Route, Path>;
  readonly placeOfPath: ReadonlyMap<RoutePath, Path>;
  /** Whether every route of the file is among them. */
  readonly complete: boolean;
}

/** What routes take from other sections. */
interface Defaults {
  readonly forwardsAuthorization: boolean;
  readonly responseTimeoutMs: number;
}

/** Compiles the routes that could be read; paths that no request can have are reported. */
export function compileRoutes(parts: ConfigParts, report: Report): CompiledRoutes {
  const placeOfRoute = new Map<Route, Path>();
  const placeOfPath = new Map<RoutePath, Path>();
  const defaults: Defaults = {
    forwardsAuthorization: parts.identity?.value.forward_authorization ?? false,
    responseTimeoutMs: parts.upstream?.value.response_timeout ?? 0,
  };
  let complete = true;
  for (const entry of parts.routes) {
    const paths = entry.part === null ? null : compilePaths(entry, entry.part.value, parts, placeOfPath, report);
    if (entry.part === null || paths === null) complete = false;
    else placeOfRoute.set(compileRoute(entry.part.value, paths, defaults), entry.path);
  }
  return { routes: [...placeOfRoute.keys()], placeOfRoute, placeOfPath, complete };
}

function compilePaths(
  { path }: Entry<RouteFile>, route: RouteFile, parts: ConfigParts, places: Map<RoutePath, Path>, report: Report,
): readonly RoutePath[] | null {
  const isList = parts.isWritten([...path, 'path', 0]);
  const paths: RoutePath[] = [];
  route.path.forEach((text, index) => {
    const at = isList ? [...path, 'path', index] : [...path, 'path'];
    const read = readRoutePath(text);
    if (read.ok) {
      paths.push(read.value);
      places.set(read.value, at);
    } else {
      const message = report.mayShow(at) ? `${report.show(at)} ${read.error.message}` : `${report.show(at)} is no path of a request`;
      report.error(at, `${nameOf(at)}: ${message}`, read.error.allowed);
    }
  });
  return paths.length === route.path.length ? paths : null;
}

function compileRoute(file: RouteFile, paths: readonly RoutePath[], defaults: Defaults): Route {
  const isPublic = file.access === 'public';
  return {
    name: file.name,
    methods: file.methods.includes('*') ? null : new Set(file.methods),
    paths,
    access: isPublic ? 'public' : 'protected',
    approvals: isPublic ? [] : approvalsOf(file),
    issuers: file.issuers === undefined ? null : new Set(file.issuers),
    allowsBody: file.body === 'allow',
    encodedSlashes: file.encoded_slashes === 'allow',
    pathParameters: file.path_parameters === 'allow',
    forwardsAuthorization: file.forward_authorization ?? (isPublic ? false : defaults.forwardsAuthorization),
    maxBodyBytes: file.max_body,
    responseTimeoutMs: file.response_timeout ?? defaults.responseTimeoutMs,
  };
}

function approvalsOf(file: RouteFile): readonly Approval[] {
  const pairs = file.any_of ?? [{ subjects: file.subjects ?? [], permissions: file.permissions ?? [] }];
  return pairs.map(({ subjects, permissions }) => ({ subjects: new Set(subjects), permissions: [...new Set(permissions)] }));
}
