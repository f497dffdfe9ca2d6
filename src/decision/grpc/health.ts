/**
 * `grpc.health.v1.Health` as far as Sallyport answers it itself, for probes without credentials
 * (https://github.com/grpc/grpc/blob/master/doc/health-checking.md).
 */
import { frameMessage, isOneMessage } from './messages.js';
import { grpcNumberOf, type GrpcCode } from './status.js';

const servicePrefix = '/grpc.health.v1.Health/';

/** Longest message that is taken: the name of a service has no more. */
const maxHealthRequestBytes = 512;

/** Longest body that is read: a message and its prefix. */
export const maxHealthBodyBytes = frameMessage(new Uint8Array(maxHealthRequestBytes)).byteLength;

const serving = Uint8Array.of(0x08, 0x01);
const notServing = Uint8Array.of(0x08, 0x02);

/** A response to a call of the health service. */
interface HealthResponse {
  readonly headers: readonly string[];
  /** Empty where the call failed. */
  readonly body: Uint8Array;
  readonly trailers: readonly string[];
}

/** Tells whether a path is one of the health service. */
export function isHealthPath(path: string): boolean {
  return path.startsWith(servicePrefix);
}

/**
 * Answers a call. `Check` for the server as a whole, the empty name, is answered by readiness. Of a service by its name
 * nothing is known, and nothing said: who has no credential learns no names. `Watch` and other methods are not there,
 * which clients take for a server whose health is not watched.
 *
 * @param body the whole body of the request.
 */
export function healthResponse(path: string, body: Uint8Array, isReady: boolean): HealthResponse {
  if (path !== `${servicePrefix}Check`) return failed('UNIMPLEMENTED');
  if (!isOneMessage(body, maxHealthRequestBytes)) return failed('INTERNAL');
  // A message without a byte names no service; kubelet sends it where a probe has no `service`, or an empty one.
  if (body.byteLength > frameMessage(new Uint8Array()).byteLength) return failed('NOT_FOUND');
  return {
    headers: ['content-type', 'application/grpc'],
    body: frameMessage(isReady ? serving : notServing),
    trailers: ['grpc-status', '0'],
  };
}

function failed(code: GrpcCode): HealthResponse {
  return {
    headers: ['content-type', 'application/grpc', 'grpc-status', String(grpcNumberOf(code))],
    body: new Uint8Array(),
    trailers: [],
  };
}
