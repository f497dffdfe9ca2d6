/** Which requests and responses are gRPC (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md). */

/**
 * `application/grpc`, perhaps with `+` and the name of a message format, perhaps with parameters. Another protocol is
 * `application/grpc-web`: no format is named behind a hyphen.
 */
const grpcType = /^application\/grpc(?:\+[!#$%&'*+.^_`|~0-9a-z-]+)?[ \t]*(?:;|$)/i;

/**
 * Tells whether a `Content-Type` is gRPC's. Types of media have no case (RFC 9110 §8.3.1).
 *
 * @param contentType the value as received; `null` where there is none.
 */
export function isGrpc(contentType: string | null): boolean {
  return contentType !== null && grpcType.test(contentType);
}
