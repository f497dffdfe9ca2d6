/** Routes against the services that the upstream has, as its `.proto` files or descriptors declare them. */
import { nearestName } from '../../lib/did-you-mean.js';
import { placeOf, type RouteTable } from '../../decision/route/route-table.js';
import type { Route, RoutePath } from '../../decision/route/policy.js';
import { nameOf, type Report } from '../load/report.js';
import type { CompiledRoutes } from '../sections/routes/routes.js';

/** A method, and which of its sides sends more than one message. */
export interface GrpcMethodKind {
  readonly streamsRequests: boolean;
  readonly streamsResponses: boolean;
}

/** What the files declare. */
export interface GrpcApi {
  /** By the full name of the service, and by the name of the method; what imported files declare is there, too. */
  readonly services: ReadonlyMap<string, ReadonlyMap<string, GrpcMethodKind>>;
  /** Services that were asked about: their methods need routes. */
  readonly named: ReadonlySet<string>;
}

/**
 * Names routes of services and methods that do not exist, streams on routes that reserve, and methods without a route.
 */
export function checkGrpcApi(api: GrpcApi, compiled: CompiledRoutes, table: RouteTable, report: Report): void {
  for (const route of compiled.routes) {
    if (!route.isGrpc) continue;
    for (const path of route.paths) checkExists(path, api, compiled, report);
    checkStreams(route, api, compiled, table, report);
  }
  // Of a route that could not be read nobody knows what it takes.
  if (!compiled.complete) return;
  for (const service of api.named) {
    const methods = [...(api.services.get(service)?.keys() ?? [])];
    const missing = methods.filter((method) => placeOf(table, 'POST', [service, method]) === null);
    if (missing.length > 0) {
      report.warning(
        ['routes'],
        `no route takes ${service}/${missing.join(`, ${service}/`)}: calls are refused`,
        'a route for each, with grpc; or none where nobody is to call it',
      );
    }
  }
}

function checkExists(path: RoutePath, api: GrpcApi, compiled: CompiledRoutes, report: Report): void {
  const at = compiled.placeOfPath.get(path) ?? ['routes'];
  const [service = '', method = null] = namesIn(path);
  const methods = api.services.get(service);
  if (methods === undefined) {
    say('service', [...api.services.keys()], service, (name) => (method === null ? name : `${name}/${method}`));
  } else if (method !== null && !methods.has(method)) {
    say('method', [...methods.keys()], method, (name) => `${service}/${name}`);
  }

  function say(what: string, known: readonly string[], name: string, written: (name: string) => string): void {
    const nearest = nearestName(name, known);
    report.error(
      at,
      `${nameOf(at)} is ${report.show(at)}, and there is no such ${what}`,
      nearest !== null && report.mayShow(at)
        ? `${written(nearest)}, if that was meant`
        : known.toSorted().slice(0, mostListed).map(written).join(', ') ||
            'no gRPC route: the files declare no service',
    );
  }
}

/** Names that are proposed where none is near. */
const mostListed = 8;

/** A stream has no one request to reserve for, and no one answer to keep. */
function checkStreams(route: Route, api: GrpcApi, compiled: CompiledRoutes, table: RouteTable, report: Report): void {
  const { reservation, paths } = route;
  if (reservation === null) return;
  const isFaulty = (kind: GrpcMethodKind): boolean =>
    reservation.key === null
      ? kind.streamsRequests && kind.streamsResponses
      : kind.streamsRequests || kind.streamsResponses;
  const streams = paths.flatMap((path) => {
    const [service = '', named = null] = namesIn(path);
    const methods = [...(api.services.get(service) ?? [])];
    return methods
      .filter(([method, kind]) => (named === null || named === method) && isFaulty(kind))
      .filter(([method]) => placeOf(table, 'POST', [service, method])?.route === route)
      .map(([method]) => `${service}/${method}`);
  });
  if (streams.length === 0) return;
  const at = [
    ...(compiled.placeOfRoute.get(route) ?? ['routes']),
    reservation.key === null ? 'single_use' : 'idempotency',
  ];
  report.error(
    at,
    `${nameOf(at)} reserves calls that stream: ${streams.join(', ')}`,
    reservation.key === null
      ? 'a route of its own without single_use for methods that stream both ways'
      : 'a route of its own with idempotency: none for methods that stream',
  );
}

/** The service of a path, and its method where it names one. */
function namesIn({ segments }: RoutePath): readonly string[] {
  return segments.flatMap((segment) => (segment.kind === 'literal' ? [segment.text] : []));
}
