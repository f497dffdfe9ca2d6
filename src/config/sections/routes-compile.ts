import type { Approval, Limits, Mode, Route, RoutePath } from '../../decision/route/policy.js';
import { compileLimits } from './limits-compile.js';
import { compileReservation } from './idempotency-compile.js';
import { compileSessionPolicy } from './sessions-compile.js';
import type { ConfigParts, Entry } from '../load/parse-sections.js';
import { readRoutePath } from './route-path.js';
import type { RouteFile } from './routes.js';
import type { Path } from '../load/source-tree.js';

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
  readonly mode: Mode;
  readonly limits: Limits | null;
}

/** Compiles the routes that could be read. */
export function compileRoutes(parts: ConfigParts): CompiledRoutes {
  const placeOfRoute = new Map<Route, Path>();
  const placeOfPath = new Map<RoutePath, Path>();
  const defaults: Defaults = {
    forwardsAuthorization: parts.identity?.value.forward_authorization ?? false,
    responseTimeoutMs: parts.upstream?.value.response_timeout ?? 0,
    mode: parts.mode?.value ?? 'enforce',
    limits: compileLimits(parts.limits?.value ?? null, null),
  };
  for (const entry of parts.routes) {
    if (entry.part === null) continue;
    const paths = compilePaths(entry, entry.part.value, parts, placeOfPath);
    placeOfRoute.set(compileRoute(entry.part.value, paths, defaults), entry.path);
  }
  const complete = placeOfRoute.size === parts.routes.length;
  return { routes: [...placeOfRoute.keys()], placeOfRoute, placeOfPath, complete };
}

function compilePaths(
  { path }: Entry<RouteFile>,
  route: RouteFile,
  parts: ConfigParts,
  places: Map<RoutePath, Path>,
): readonly RoutePath[] {
  const isList = parts.isWritten([...path, 'path', 0]);
  return route.path.flatMap((text, index) => {
    const read = readRoutePath(text);
    if (!read.ok) return [];
    places.set(read.value, isList ? [...path, 'path', index] : [...path, 'path']);
    return [read.value];
  });
}

function compileRoute(file: RouteFile, paths: readonly RoutePath[], defaults: Defaults): Route {
  const isPublic = file.access === 'public';
  const acceptsService = !isPublic && file.accept.includes('service');
  return {
    name: file.name,
    methods: file.methods.includes('*') ? null : new Set(file.methods),
    paths,
    access: isPublic ? 'public' : 'protected',
    mode: isPublic ? 'enforce' : (file.mode ?? defaults.mode),
    acceptsService,
    session: isPublic ? null : compileSessionPolicy(file),
    approvals: acceptsService ? approvalsOf(file) : [],
    issuers: file.issuers === undefined ? null : new Set(file.issuers),
    allowsWebSocket: file.websocket,
    origins: file.origins === undefined ? null : new Set(file.origins),
    allowsBody: file.body === 'allow',
    encodedSlashes: file.encoded_slashes === 'allow',
    pathParameters: file.path_parameters === 'allow',
    forwardsAuthorization: file.forward_authorization ?? (isPublic ? false : defaults.forwardsAuthorization),
    maxBodyBytes: file.max_body,
    responseTimeoutMs: file.response_timeout ?? defaults.responseTimeoutMs,
    reservation: compileReservation(file),
    unreservedBecause: file.idempotency?.because ?? null,
    limits: isPublic ? null : file.limits === undefined ? defaults.limits : compileLimits(file.limits, file.name),
  };
}

function approvalsOf(file: RouteFile): readonly Approval[] {
  const pairs = file.any_of ?? [{ subjects: file.subjects ?? [], permissions: file.permissions ?? [] }];
  return pairs.map(({ subjects, permissions }) => ({
    subjects: new Set(subjects),
    permissions: [...new Set(permissions)],
  }));
}
