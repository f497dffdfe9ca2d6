/** Status codes of gRPC (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md). */
import { valuesOf } from '../http/header-values.js';

/** Names of the codes; the place in the list is the number. */
export const grpcCodes = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const;

export type GrpcCode = (typeof grpcCodes)[number];

/** The number that `grpc-status` has, 0 to 16. */
export function grpcNumberOf(code: GrpcCode): number {
  return grpcCodes.indexOf(code);
}

/** What each code is in HTTP, by google/rpc/code.proto. */
const httpStatuses: Readonly<Record<GrpcCode, number>> = {
  OK: 200,
  CANCELLED: 499,
  UNKNOWN: 500,
  INVALID_ARGUMENT: 400,
  DEADLINE_EXCEEDED: 504,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  FAILED_PRECONDITION: 400,
  ABORTED: 409,
  OUT_OF_RANGE: 400,
  UNIMPLEMENTED: 501,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DATA_LOSS: 500,
  UNAUTHENTICATED: 401,
};

const statusHeader = 'grpc-status';

/** A number that no code has is one of a later version, which callers take for UNKNOWN. */
const wellFormedStatus = /^(?:0|[1-9][0-9]{0,9})$/;

/**
 * Reads how a call ended out of the headers or trailers that say it, names and values in turn.
 *
 * @returns 0 to 16; a number that no code has counts as UNKNOWN, as for callers. `null` where none is there, or
 *   several, or one that is no number.
 */
export function grpcStatusIn(headers: readonly string[]): number | null {
  const [value, ...more] = valuesOf(headers, statusHeader);
  if (value === undefined || more.length > 0 || !wellFormedStatus.test(value)) return null;
  const number = Number(value);
  return number < grpcCodes.length ? number : grpcNumberOf('UNKNOWN');
}

/** The end of a response, as far as it tells how the call ended. */
export interface ResponseEnd {
  /** Status of the response head. */
  readonly status: number;
  /** Headers of the response, names and values in turn. */
  readonly headers: readonly string[];
  /** Trailers, names and values in turn; empty where there are none. */
  readonly trailers: readonly string[];
  /** Whether the response had a body, of whatever size. */
  readonly hasBody: boolean;
}

/**
 * Says in HTTP's terms how a call ended: what stands in `grpc-status`, in the trailers, or in the head of a response
 * that is nothing but a head. Of a response that is no 200 the status itself counts: no server of gRPC sent it.
 *
 * @returns a status, 200 to 999; `null` where none was sent, or several, or one that is no number: the response is
 *   broken, and whether the call ran is not known.
 */
export function httpStatusOf(end: ResponseEnd): number | null {
  if (end.status !== 200) return end.status;
  const isHeadAlone = end.trailers.length === 0 && !end.hasBody;
  const number = grpcStatusIn(isHeadAlone ? end.headers : end.trailers);
  return number === null ? null : httpStatuses[grpcCodes[number] ?? 'UNKNOWN'];
}
