import { responseOf, type Denial, type Reason } from '../denial.js';
import { onlyBearer, proxyErrorOf, retryAfterOf, type Challenges, type Problem } from '../http/problem-details.js';
import { proxyStatus } from '../http/proxy-status.js';
import { encodeErrorDetails } from './error-details.js';
import { grpcNumberOf, type GrpcCode } from './status.js';

/**
 * The gRPC code for each HTTP status that answers have. Where the upstream may have acted, it is UNKNOWN or
 * DEADLINE_EXCEEDED; where it certainly did not, UNAVAILABLE, after which clients repeat calls by themselves. Other
 * statuses are INTERNAL: what is malformed here is so for servers and clients of gRPC, too.
 */
const codeOfStatus: ReadonlyMap<number, GrpcCode> = new Map([
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [405, 'UNIMPLEMENTED'],
  [408, 'DEADLINE_EXCEEDED'],
  [409, 'ABORTED'],
  [413, 'RESOURCE_EXHAUSTED'],
  [414, 'RESOURCE_EXHAUSTED'],
  [422, 'FAILED_PRECONDITION'],
  [429, 'RESOURCE_EXHAUSTED'],
  [431, 'RESOURCE_EXHAUSTED'],
  [502, 'UNKNOWN'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
]);

/** Reasons whose status says less than a code can. */
const codeOfReason: ReadonlyMap<Reason, GrpcCode> = new Map<Reason, GrpcCode>([
  ['idempotency_key_missing', 'INVALID_ARGUMENT'],
  ['idempotency_key_malformed', 'INVALID_ARGUMENT'],
  // What servers of gRPC answer where a unary method gets another number of messages than one (https://grpc.github.io/grpc/core/md_doc_statuscodes.html).
  ['grpc_not_unary', 'UNIMPLEMENTED'],
  ['caller_gone', 'CANCELLED'],
]);

/** The code by which a reason is told. */
export function grpcCodeOf(reason: Reason): GrpcCode {
  return codeOfReason.get(reason) ?? codeOfStatus.get(responseOf(reason).status) ?? 'INTERNAL';
}

/**
 * Answers a denial of a gRPC call: a response that is one head and nothing else (`Trailers-Only`), which is a 200 in
 * HTTP. It tells as much as the problem document does: each UNAUTHENTICATED is the same but for the request
 * id, and each PERMISSION_DENIED. Names are in lower case, as HTTP/2 has them (RFC 9113 §8.2.1).
 */
export function grpcRefusalOf(denial: Denial, requestId: string, challenges: Challenges = onlyBearer): Problem {
  const { status, title, type } = responseOf(denial.reason);
  const code = grpcNumberOf(grpcCodeOf(denial.reason));
  const headers = [
    'content-type',
    'application/grpc',
    'grpc-status',
    String(code),
    'grpc-message',
    encodeGrpcMessage(title),
  ];
  if (type !== null) {
    headers.push('grpc-status-details-bin', encodeErrorDetails({ code, message: title, type, record: denial.record }));
  }
  headers.push('x-request-id', requestId, 'proxy-status', proxyStatus(proxyErrorOf(denial)));
  if (status === 401) headers.push(...challenges().map((text, i) => (i % 2 === 0 ? text.toLowerCase() : text)));
  const retryAfterS = retryAfterOf(denial);
  if (retryAfterS !== undefined) {
    // gRFC A6: how long clients wait before they repeat the call by themselves.
    headers.push('retry-after', String(retryAfterS), 'grpc-retry-pushback-ms', String(retryAfterS * 1000));
  }
  if (denial.rateLimit !== undefined) {
    headers.push('ratelimit-policy', denial.rateLimit.policy, 'ratelimit', denial.rateLimit.state);
  }
  return { status: 200, headers, body: '' };
}

/** Writes `grpc-message`: UTF-8, of which visible ASCII and blanks stand as they are, but for the percent sign. */
export function encodeGrpcMessage(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) =>
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('');
}
