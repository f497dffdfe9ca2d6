import { codeOf } from '../../lib/errors.js';
import { denial, type Denial, type ProxyError } from '../../decision/denial.js';

/** The response is not whole. What the upstream sent is not in it. */
export class BrokenResponse extends Error {
  readonly code = 'SALLYPORT_BROKEN_ANSWER';
}

/** The upstream certainly did nothing with the request (RFC 9113 §8.7). */
export class NotProcessed extends Error {
  readonly code = 'SALLYPORT_NOT_PROCESSED';
}

/** The other side speaks, but not HTTP/2. */
export class NotHttp2 extends Error {
  readonly code = 'SALLYPORT_NOT_HTTP2';
}

/** No connection that can carry a request within the time for it. */
export class ConnectTimeout extends Error {
  readonly code = 'ETIMEDOUT';
}

/** A request that could not be written: a mistake of ours, for the client's part was checked. */
const ownMistake = 'SALLYPORT_MALFORMED_REQUEST';

/** A head that we would not send. */
export class MalformedRequest extends Error {
  readonly code = ownMistake;
}

const headTooLong = 'SALLYPORT_HEAD_TOO_LONG';

/** A head that HTTP/2 does not carry. */
export class HeadTooLong extends Error {
  readonly code = headTooLong;
}

/** Codes that tell more than that there was no connection. */
const connectErrors: ReadonlyMap<string, ProxyError> = new Map<string, ProxyError>([
  ['ENOTFOUND', 'dns_error'],
  ['EAI_AGAIN', 'dns_error'],
  ['EAI_FAIL', 'dns_error'],
  ['EAI_NODATA', 'dns_error'],
  ['EAI_NONAME', 'dns_error'],
  ['ETIMEDOUT', 'connection_timeout'],
  ['EHOSTUNREACH', 'destination_ip_unroutable'],
  ['ENETUNREACH', 'destination_ip_unroutable'],
  ['ECONNRESET', 'connection_terminated'],
  ['EPROTO', 'tls_protocol_error'],
  ['SALLYPORT_NOT_PROCESSED', 'connection_terminated'],
  ['SALLYPORT_NOT_HTTP2', 'connection_terminated'],
]);

/** OpenSSL's names of what is wrong with a certificate, as Node gives them. */
const certificateCode = /CERT|SELF_SIGNED|UNABLE_TO_|INVALID_CA|CRL|HOSTNAME_MISMATCH|PATH_LENGTH/;

/** Why the upstream was certainly not reached: nothing was written. */
export function connectFailure(error: unknown): Denial {
  const code = codeOf(error, '');
  if (code === ownMistake) return denial('internal');
  if (code === headTooLong) return denial('header_too_large_for_http2');
  return { reason: 'upstream_unreachable', error: connectError(code) };
}

/** Why there is no whole response although something may have been written: the upstream may have acted. */
export function responseFailure(error: unknown): Denial {
  return denial(codeOf(error, '') === ownMistake ? 'internal' : 'upstream_failed');
}

function connectError(code: string): ProxyError {
  const known = connectErrors.get(code);
  if (known !== undefined) return known;
  if (certificateCode.test(code)) return 'tls_certificate_error';
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS')) return 'tls_protocol_error';
  return 'connection_refused';
}
