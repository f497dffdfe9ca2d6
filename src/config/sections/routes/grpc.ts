/** Routes of gRPC methods: what stands in the place of `methods` and `path`, and what has no use beside it. */
import { z } from 'zod';
import type { ParsedConfig } from '../../load/parse-sections.js';
import { nameOf, type Report } from '../../load/report.js';
import type { Path } from '../../load/source-tree.js';
import { oneOrMore } from '../../schema/scalars.js';
import { grpcMethodAllowed, grpcPathOf, readGrpcMethod } from '../../../decision/grpc/method.js';
import type { RoutePath } from '../../../decision/route/policy.js';

const methodText = z
  .string(grpcMethodAllowed)
  .max(1_024, 'at most 1024 characters')
  .superRefine((text, context) => {
    const read = readGrpcMethod(text);
    if (read.ok) return;
    context.addIssue({ code: 'custom', message: grpcMethodAllowed, params: { fault: read.error } });
  });

export const grpcSchema = oneOrMore(methodText, 'services and methods').describe(
  'Instead of `methods` and `path`: a gRPC method, `shop.v1.Orders/List`, all methods of a service, `shop.v1.Orders`, or a list. ' +
    'Case counts. Only gRPC calls pass.',
);

/** What every gRPC call is in HTTP. */
const grpcMethods: readonly string[] = ['POST'];

const healthService = 'grpc.health.v1.Health';

/** Keys that a gRPC route has no use for, and why. */
const useless: readonly (readonly [string, string])[] = [
  ['websocket', 'no call opens a WebSocket'],
  ['origins', 'no call opens a WebSocket'],
  ['body', 'every call has a body'],
  ['encoded_slashes', 'names of methods have no slash'],
  ['path_parameters', 'names of methods have no semicolon'],
];

/** Whether a route says that it is one of gRPC, however that is written. */
export function isGrpcRoute({ isPresent }: Pick<ParsedConfig, 'isPresent'>, path: Path): boolean {
  return isPresent([...path, 'grpc']);
}

/** The methods that a route says or, of gRPC, implies: as they are written, unchecked. */
export function writtenMethods(parts: ParsedConfig, path: Path): unknown {
  return isGrpcRoute(parts, path) ? grpcMethods : parts.rawValue([...path, 'methods']);
}

/** Checks that a route has either `grpc` or `methods` and `path`. */
export function checkPlace(parts: ParsedConfig, path: Path, report: Report): void {
  const isPresent = (key: string): boolean => parts.isPresent([...path, key]);
  if (!isPresent('grpc')) {
    if (!isPresent('methods')) {
      report.error(path, `${nameOf(path)}.methods is missing`, 'a list of methods, at least one; of gRPC routes grpc');
    }
    if (!isPresent('path')) {
      report.error(path, `${nameOf(path)}.path is missing`, 'one or a list of paths; of gRPC routes grpc');
    }
    return;
  }
  for (const key of ['methods', 'path'].filter(isPresent)) {
    report.keyError([...path, key], `${nameOf(path)}.${key} stands beside ${nameOf(path)}.grpc`, 'one of them');
  }
  for (const [key, why] of useless) {
    if (!isPresent(key)) continue;
    report.keyError([...path, key], `${nameOf(path)}.${key} has no use with ${nameOf(path)}.grpc: ${why}`, `no ${key}`);
  }
}

/** Checks gRPC routes against what listener and upstream are set to. */
export function checkGrpcRoutes(parts: ParsedConfig, report: Report): void {
  const routes = parts.routes.filter(({ path }) => isGrpcRoute(parts, path));
  const [first] = routes;
  if (first !== undefined && parts.upstream?.value.http2 === false) {
    const at = [...first.path, 'grpc'];
    report.warning(at, `${nameOf(at)} has an upstream that is asked in HTTP/1.1`, 'upstream.http2: true');
  }
  if (parts.listen?.value.grpc_health !== 'answer') return;
  for (const { path, parsed } of routes) {
    const names = parsed?.value.grpc ?? [];
    if (!names.some((name) => name === healthService || name.startsWith(`${healthService}/`))) continue;
    const at = [...path, 'grpc'];
    report.error(
      at,
      `${nameOf(at)} names ${healthService}, which is answered here: listen.grpc_health is answer`,
      'listen.grpc_health: route, or no such route',
    );
  }
}

/** The method and the paths of the calls that are named. */
export function compileGrpc(names: readonly string[]): {
  readonly methods: ReadonlySet<string>;
  readonly paths: readonly RoutePath[];
} {
  const paths = names.flatMap((name) => {
    const read = readGrpcMethod(name);
    return read.ok ? [grpcPathOf(read.value)] : [];
  });
  return { methods: new Set(grpcMethods), paths };
}
