import { denial, type Denial } from '../denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** How the end of a request's body is found. */
export interface Framing {
  readonly contentLength: number | null;
  /** Whether it ends where the message says so, and its length is not known before. */
  readonly chunked: boolean;
}

/**
 * No sign, list or blank, and no more digits than the largest number has: a reader that counts in fewer bits may count
 * another way.
 */
const decimal = /^[0-9]{1,16}$/;

/** Methods whose requests say that they have no body where they have none (RFC 9110 §8.6). */
export const expectsBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

const chunkedCoding = /^chunked$/i;

/**
 * Reads the framing of a request, or refuses it with `framing`: Transfer-Encoding is exactly `chunked`, and neither
 * beside Content-Length nor in HTTP/1.0, whose readers ignore it (RFC 9112 §6.1, §6.3). Whatever two readers may end at
 * different places smuggles a second request to one of them.
 */
export function readFraming(
  contentLength: string | undefined,
  transferEncoding: string | undefined,
  httpVersion: string,
): Result<Framing, Denial> {
  if (transferEncoding !== undefined) {
    const isSound = contentLength === undefined && httpVersion === '1.1' && chunkedCoding.test(transferEncoding);
    return isSound ? accept({ contentLength: null, chunked: true }) : refuse(denial('framing'));
  }
  if (contentLength === undefined) return accept({ contentLength: null, chunked: false });
  const bytes = contentLengthOf(contentLength);
  return bytes === null ? refuse(denial('framing')) : accept({ contentLength: bytes, chunked: false });
}

/**
 * Reads the framing of a request of HTTP/2, where the stream says where the body ends: a length may be said beside it,
 * and has to be 0 where none follows (RFC 9113 §8.1.1).
 */
export function readStreamFraming(contentLength: string | undefined, endsStream: boolean): Result<Framing, Denial> {
  if (contentLength === undefined) return accept({ contentLength: null, chunked: !endsStream });
  const bytes = contentLengthOf(contentLength);
  if (bytes === null || (endsStream && bytes > 0)) return refuse(denial('framing'));
  return accept({ contentLength: bytes, chunked: false });
}

/**
 * Bytes that a Content-Length says, or `null` where two readers may read it in two ways, or not count so far (RFC 9110
 * §8.6).
 */
export function contentLengthOf(value: string): number | null {
  const bytes = decimal.test(value) ? Number(value) : NaN;
  return Number.isSafeInteger(bytes) ? bytes : null;
}
