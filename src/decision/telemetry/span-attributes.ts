/**
 * What spans say: OpenTelemetry's stable semantic conventions for HTTP and RPC, and three words of our own. Every value
 * is one of the config, of a list, or a number of few: nothing that a caller chooses.
 */
import { grpcCodes } from '../grpc/status.js';

type AttributeValue = string | number;
export type Attributes = Readonly<Record<string, AttributeValue>>;

/** What the parts of a request have in common. */
interface TracedRequest {
  readonly method: string;
  /** The path of the route as the config writes it; `null` where no route took the request. */
  readonly path: string | null;
  /** Name of the route, or `none`. */
  readonly route: string;
  /** Whether the route takes gRPC calls. */
  readonly isGrpc: boolean;
}

/** A request as it ended. */
export interface ServedRequest extends TracedRequest {
  readonly scheme: 'http' | 'https';
  /** `1.0`, `1.1` or `2`. */
  readonly httpVersion: string;
  /** What the caller was sent; 0 where nothing was. */
  readonly status: number;
  readonly grpcStatus: number | null;
  readonly decision: string;
  readonly reason: string | null;
}

/** A request that went out. */
export interface SentRequest extends TracedRequest {
  /** `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`. */
  readonly origin: string;
  readonly httpVersion: string;
  /** How often it was sent before. */
  readonly resends: number;
}

/** What came of it. */
export interface SentResult {
  /** 0 where there was no response. */
  readonly status: number;
  readonly grpcStatus: number | null;
  /** Why there is no whole response. */
  readonly reason: string | null;
}

/** Methods that stand for themselves (RFC 9110 §9, RFC 5789); any other is a caller's to make up. */
const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'DELETE',
  'CONNECT',
  'OPTIONS',
  'TRACE',
  'PATCH',
]);

const other = '_OTHER';
const firstClientError = 400;
const firstServerError = 500;

/** What a gRPC server says went wrong with itself, by the conventions: the rest is its caller's trouble. */
const grpcServerErrors: ReadonlySet<string> = new Set([
  'UNKNOWN',
  'DEADLINE_EXCEEDED',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
]);

/** The name of the span: the method and the route's path, of gRPC calls the method alone. */
export function spanName({ method, path, isGrpc }: TracedRequest): string {
  if (isGrpc) return rpcMethod(path);
  const verb = knownMethods.has(method) ? method : 'HTTP';
  return path === null ? verb : `${verb} ${path}`;
}

/** Of the request as the caller sees it. */
export function serverAttributes(served: ServedRequest): Attributes {
  const { path, scheme, httpVersion, status, grpcStatus, decision, reason } = served;
  return {
    ...requestAttributes(served),
    ...(path === null ? {} : { 'http.route': path, 'url.path': path }),
    'url.scheme': scheme,
    'network.protocol.version': httpVersion,
    ...statusAttributes(status, grpcStatus),
    ...errorType(serverError(served), served),
    'sallyport.decision': decision,
    ...(reason === null ? {} : { 'sallyport.reason': reason }),
  };
}

/** Whether the request failed, and not for what its caller did. */
export function serverError({ status, grpcStatus, decision, isGrpc }: ServedRequest): boolean {
  if (isGrpc && grpcStatus !== null) return grpcServerErrors.has(grpcCode(grpcStatus));
  return decision === 'failed' || status >= firstServerError;
}

/** Of the request to the upstream, before it has an answer. */
export function clientAttributes(sent: SentRequest): Attributes {
  const { origin, path, httpVersion, resends } = sent;
  return {
    ...requestAttributes(sent),
    ...placeAttributes(origin, path),
    'network.protocol.version': httpVersion,
    ...(resends === 0 ? {} : { 'http.request.resend_count': resends }),
  };
}

/** What came of it. */
export function resultAttributes(result: SentResult): Attributes {
  return { ...statusAttributes(result.status, result.grpcStatus), ...errorType(clientError(result), result) };
}

/** Whether it failed, as its sender sees it. */
export function clientError({ status, grpcStatus, reason }: SentResult): boolean {
  return reason !== null || status >= firstClientError || (grpcStatus ?? 0) !== 0;
}

function requestAttributes({ method, path, route, isGrpc }: TracedRequest): Attributes {
  const isKnown = knownMethods.has(method);
  return {
    'http.request.method': isKnown ? method : other,
    ...(isGrpc ? { 'rpc.system.name': 'grpc', 'rpc.method': rpcMethod(path) } : {}),
    'sallyport.route': route,
  };
}

/** `package.Service/Method`, where the route names one. */
function rpcMethod(path: string | null): string {
  return path !== null && /^\/[^/{}*]+\/[^/{}*]+$/.test(path) ? path.slice(1) : other;
}

/** Where it went, with the route's path in the place of what was asked for: a path and its query may hold anything. */
function placeAttributes(origin: string, path: string | null): Attributes {
  if (origin.startsWith('unix:')) {
    return { 'server.address': origin.slice('unix:'.length), 'network.transport': 'unix' };
  }
  const { hostname, port, protocol } = new URL(origin);
  return {
    'server.address': hostname.replace(/^\[|\]$/g, ''),
    'server.port': port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port),
    'url.full': `${origin.replace(/\/$/, '')}${path ?? '/'}`,
  };
}

function statusAttributes(status: number, grpcStatus: number | null): Attributes {
  return {
    ...(status === 0 ? {} : { 'http.response.status_code': status }),
    ...(grpcStatus === null ? {} : { 'rpc.status_code': grpcCode(grpcStatus) }),
  };
}

function errorType(isError: boolean, { status, grpcStatus, reason }: SentResult): Attributes {
  if (!isError) return {};
  return { 'error.type': reason ?? (grpcStatus === null ? String(status) : grpcCode(grpcStatus)) };
}

function grpcCode(status: number): string {
  return grpcCodes[status] ?? other;
}
