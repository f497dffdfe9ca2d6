import { denial, type Denial } from './denial.js';
import { accept, refuse, type Result } from './result.js';

/** How the end of a request's body is found. */
export interface Framing {
  readonly contentLength: number | null;
  readonly chunked: boolean;
}

/** RFC 9110 §8.6: a sign, a list or a blank would be read in several ways. */
const decimal = /^[0-9]+$/;

const chunkedCoding = /^chunked$/i;

/**
 * Reads the framing of a request, or refuses it with `framing`: Transfer-Encoding is exactly `chunked`, and neither beside
 * Content-Length nor in HTTP/1.0, whose readers ignore it (RFC 9112 §6.1, §6.3). Whatever two readers may end at different
 * places smuggles a second request to one of them.
 */
export function readFraming(
  contentLength: string | undefined, transferEncoding: string | undefined, httpVersion: string,
): Result<Framing, Denial> {
  if (transferEncoding !== undefined) {
    const isSound = contentLength === undefined && httpVersion === '1.1' && chunkedCoding.test(transferEncoding);
    return isSound ? accept({ contentLength: null, chunked: true }) : refuse(denial('framing'));
  }
  if (contentLength === undefined) return accept({ contentLength: null, chunked: false });
  const bytes = decimal.test(contentLength) ? Number(contentLength) : NaN;
  return Number.isSafeInteger(bytes) ? accept({ contentLength: bytes, chunked: false }) : refuse(denial('framing'));
}
