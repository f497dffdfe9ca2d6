/** What goes on in either direction: the request that the upstream gets, and what its caller gets of the response. */
import type { Readable } from 'node:stream';
import type { RequestHead } from '../../decision/http/request-head.js';
import { requestTrailers, responseTrailers } from '../../decision/http/trailers.js';
import { http2Version } from '../../decision/http2/request-head.js';
import { withRenewedSession } from '../../decision/session/headers.js';
import type { Principal } from '../../decision/token/principal.js';
import type { Clock } from '../../ports/system.js';
import type { ActiveConfig } from '../auth/active-config.js';
import type { Admission } from '../auth/authorize-request.js';
import type { AllowedRequest } from '../inbound/received-request.js';
import type { UpstreamRequest } from '../upstream/call.js';
import { holderOf } from './concurrency.js';

/** An admitted request that is about to go out. */
interface OutgoingRequest {
  readonly admission: Admission;
  readonly method: string;
  /** `null` where it has none, or an empty one. */
  readonly body: Readable | Buffer | null;
  readonly activeConfig: ActiveConfig;
  /** `null` where it is not traced. */
  readonly trace: UpstreamRequest['trace'] | null;
  /** How long its caller waits; left out, or `null`, where it goes on without. */
  readonly callerWaitsMs?: number | null;
  /** What the upstream is told of its reservation: names and values in turn. */
  readonly ofReservation?: readonly string[];
}

/** Returns what the upstream is asked. To be made when it goes out: its assertion holds for a short time. */
export function upstreamRequest({
  admission,
  method,
  body,
  activeConfig,
  trace,
  callerWaitsMs,
  ofReservation = [],
}: OutgoingRequest): UpstreamRequest {
  const { forwarded, headers, route, target } = admission;
  const added = [...lengthOf(body, headers), ...ofReservation, ...assertionHeaders(admission, method, activeConfig)];
  return {
    holder: holderOf(admission),
    method,
    target: target.raw,
    headers: added.length === 0 ? forwarded : [...forwarded, ...added],
    body,
    responseTimeoutMs: Math.min(route.responseTimeoutMs, callerWaitsMs ?? Infinity),
    trace: trace ?? undefined,
  };
}

/** Returns the length of a body that came without one and was read whole, a name and a value. */
function lengthOf(body: Readable | Buffer | null, { contentLength, chunked }: Admission['headers']): readonly string[] {
  if (contentLength !== null || (body !== null && !Buffer.isBuffer(body))) return [];
  const length = body?.length ?? 0;
  return chunked || length > 0 ? ['Content-Length', String(length)] : [];
}

/**
 * Returns the signed assertion for one request, a name and a value; none for nobody. Made when the request goes out: a
 * body that was read whole before that may have taken longer than an assertion holds.
 */
export function assertionHeaders(
  { principal, target }: Pick<Admission, 'principal' | 'target'>,
  method: string,
  { assertion }: ActiveConfig,
): readonly string[] {
  return principal === null || assertion === null ? [] : assertion({ principal, method, target: target.raw });
}

/** Returns what whoever asked about a request is told where it may forward it. */
export function allowedRequest(
  admission: Admission,
  method: string,
  activeConfig: ActiveConfig,
  clock: Clock,
): AllowedRequest {
  const { forwarded, principal, requestId } = admission;
  return {
    forwarded: [...forwarded, ...assertionHeaders(admission, method, activeConfig)],
    response: withRenewedToken([], principal, activeConfig, clock),
    requestId,
    activeConfig,
  };
}

/**
 * Adds a renewed access token to the headers of a response. To be called after whatever is kept of it was kept:
 * the token is this caller's alone.
 */
export function withRenewedToken(
  headers: string[],
  principal: Principal | null,
  { sessions }: ActiveConfig,
  clock: Clock,
): string[] {
  const renewed = principal?.session?.renewed ?? null;
  return renewed === null || sessions === null
    ? headers
    : withRenewedSession(headers, renewed, sessions.settings.cookie, clock.now());
}

/** The exchange that a trailer section is part of. */
interface TrailersOf {
  readonly admission: Pick<Admission, 'headers' | 'route'>;
  readonly head: RequestHead;
  readonly activeConfig: ActiveConfig;
}

/**
 * What goes on of a trailer section, names and values in turn; `null` where nothing does. Trailers of a request go to
 * upstreams of HTTP/2 alone: one of HTTP/1.1 has no way to say that it takes them (RFC 9110 §6.5.1).
 */
export function passedTrailers(
  of: 'request' | 'response',
  trailers: readonly string[],
  { admission: { headers, route }, head, activeConfig }: TrailersOf,
): readonly string[] | null {
  const { http2 } = activeConfig.config.upstream;
  const context = {
    rules: activeConfig.headerRules,
    isAskedFor: of === 'request' ? http2 : headers.takesTrailers,
    isGrpcOverHttp2: route.isGrpc && head.httpVersion === http2Version && http2,
  };
  return of === 'request' ? requestTrailers(trailers, context) : responseTrailers(trailers, context);
}
