/**
 * What spans say: OpenTelemetry's stable semantic conventions for HTTP and RPC, and three words of our own. Every value
 * is one of the config, of a list, or a number of few: nothing that a caller chooses.
 */
import { memoize } from '../../lib/memo.js';
import { grpcCodes } from '../grpc/status.js';

type AttributeValue = string | number;
export type Attributes = Readonly<Record<string, AttributeValue>>;
/** Filled in place: a copy for each part would cost more than what it says. */
type GrowingAttributes = Record<string, AttributeValue>;

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
  const { path, reason } = served;
  const attributes = requestAttributes(served);
  if (path !== null) {
    attributes['http.route'] = path;
    attributes['url.path'] = path;
  }
  attributes['url.scheme'] = served.scheme;
  attributes['network.protocol.version'] = served.httpVersion;
  addResult(attributes, served, serverError(served));
  attributes['sallyport.decision'] = served.decision;
  if (reason !== null) attributes['sallyport.reason'] = reason;
  return attributes;
}

/** Whether the request failed, and not for what its caller did. */
export function serverError({ status, grpcStatus, decision, isGrpc }: ServedRequest): boolean {
  if (isGrpc && grpcStatus !== null) return grpcServerErrors.has(grpcCode(grpcStatus));
  return decision === 'failed' || status >= firstServerError;
}

/** Of the request to the upstream, and what came of it. */
export function clientAttributes(sent: SentRequest, result: SentResult): Attributes {
  const { origin, path, httpVersion, resends } = sent;
  const attributes = requestAttributes(sent);
  addPlace(attributes, origin, path);
  attributes['network.protocol.version'] = httpVersion;
  if (resends !== 0) attributes['http.request.resend_count'] = resends;
  addResult(attributes, result, clientError(result));
  return attributes;
}

/** Whether it failed, as its sender sees it. */
export function clientError({ status, grpcStatus, reason }: SentResult): boolean {
  return reason !== null || status >= firstClientError || (grpcStatus ?? 0) !== 0;
}

function requestAttributes({ method, path, route, isGrpc }: TracedRequest): GrowingAttributes {
  const attributes: GrowingAttributes = { 'http.request.method': knownMethods.has(method) ? method : other };
  if (isGrpc) {
    attributes['rpc.system.name'] = 'grpc';
    attributes['rpc.method'] = rpcMethod(path);
  }
  attributes['sallyport.route'] = route;
  return attributes;
}

/** `package.Service/Method`, where the route names one. */
function rpcMethod(path: string | null): string {
  return path !== null && /^\/[^/{}*]+\/[^/{}*]+$/.test(path) ? path.slice(1) : other;
}

/** Where it went, with the route's path in the place of what was asked for: a path and its query may hold anything. */
function addPlace(attributes: GrowingAttributes, origin: string, path: string | null): void {
  if (origin.startsWith('unix:')) {
    attributes['server.address'] = origin.slice('unix:'.length);
    attributes['network.transport'] = 'unix';
    return;
  }
  const { host, port } = addressOf(origin);
  attributes['server.address'] = host;
  attributes['server.port'] = port;
  attributes['url.full'] = `${origin.replace(/\/$/, '')}${path ?? '/'}`;
}

/** Origins are the config's: few, and the same for each request. */
const addressOf = memoize(
  (origin: string) => {
    const { hostname, port, protocol } = new URL(origin);
    const standardPort = protocol === 'https:' ? 443 : 80;
    return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? standardPort : Number(port) };
  },
  { maxNames: 256, maxLength: 1024 },
);

function addResult(attributes: GrowingAttributes, result: SentResult, isError: boolean): void {
  const { status, grpcStatus, reason } = result;
  if (status !== 0) attributes['http.response.status_code'] = status;
  if (grpcStatus !== null) attributes['rpc.status_code'] = grpcCode(grpcStatus);
  if (isError) attributes['error.type'] = reason ?? (grpcStatus === null ? String(status) : grpcCode(grpcStatus));
}

function grpcCode(status: number): string {
  return grpcCodes[status] ?? other;
}
