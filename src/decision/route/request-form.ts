/** Which forms of requests a route takes, whoever sends them: another protocol, spellings of the path, a body. Pure. */
import { denial, type Denial, type Reason } from '../denial.js';
import { isGrpc } from '../grpc/content-type.js';
import { readGrpcTimeout } from '../grpc/timeout.js';
import { valuesOf } from '../http/header-values.js';
import type { RequestHead } from '../http/request-head.js';
import type { RequestHeaders } from '../http/request-headers.js';
import type { RequestTarget } from '../http/request-target.js';
import { refusedUpgrade } from '../websocket/handshake.js';
import type { Route } from './policy.js';
import { placeOf, type RouteTable, type RouteTarget } from './route-table.js';

/** A request as it was read. */
interface ReadRequest {
  readonly head: RequestHead;
  readonly headers: RequestHeaders;
  readonly target: RequestTarget;
}

/**
 * Refuses what no route of the table would accept, or the public route that was meant does not: told to anybody.
 *
 * @param route the one that was found, or `null`.
 */
export function refusedOnAnyRoute(
  { head, headers, target }: ReadRequest,
  route: Route | null,
  table: RouteTable,
): Denial | null {
  const upgrade = headers.upgrade === null ? null : refusedUpgrade(head, headers, table.anyAllowsWebSocket);
  if (upgrade !== null) return upgrade;
  if (target.encodedSlash && !table.anyAllowsEncodedSlashes) return denial('target_malformed');
  if (target.pathParameters && !table.anyAllowsPathParameters) return denial('target_malformed');
  if (hasUnexpectedBody(head, headers) && !table.anyAllowsBody) return denial('body_not_allowed');
  if (route !== null || !hasOtherReading(target, head.method, table)) return null;
  return placeOf(table, head.method, target.segments)?.route.access === 'public' ? denial('target_malformed') : null;
}

/** Why the route that was found does not take it, by what its head says of protocol and body; or `null`. */
export function refusedBody({ head, headers }: Omit<ReadRequest, 'target'>, route: Route): Reason | null {
  if (headers.upgrade !== null && !route.allowsWebSocket) return 'upgrade_refused';
  if (hasUnexpectedBody(head, headers) && !route.allowsBody) return 'body_not_allowed';
  if (route.isGrpc) {
    const [contentType = null] = valuesOf(headers.passed, 'content-type');
    if (!isGrpc(contentType)) return 'content_type_refused';
    if (!readGrpcTimeout(valuesOf(headers.passed, 'grpc-timeout')).ok) return 'field_malformed';
  }
  return (headers.contentLength ?? 0) > route.maxBodyBytes ? 'body_too_large' : null;
}

/**
 * How long a gRPC caller waits, milliseconds; `null` where it does not say, and on routes that are not of gRPC. What is
 * malformed was refused before.
 */
export function grpcTimeoutOf({ passed }: RequestHeaders, route: Route): number | null {
  const timeout = route.isGrpc ? readGrpcTimeout(valuesOf(passed, 'grpc-timeout')) : null;
  return timeout?.ok === true ? timeout.value : null;
}

/**
 * Of a target that no route takes: whether that is for the spelling of its path, which only some routes take, or in
 * which only some routers find the route.
 */
export function hasOtherReading(
  { segments, literalSegments, encodedSlash, pathParameters }: RouteTarget,
  method: string,
  table: RouteTable,
): boolean {
  if (encodedSlash || pathParameters) return true;
  return literalSegments !== null && placeOf(table, method, segments) !== null;
}

function hasUnexpectedBody({ method }: RequestHead, { hasBody }: RequestHeaders): boolean {
  return hasBody && (method === 'GET' || method === 'HEAD');
}
