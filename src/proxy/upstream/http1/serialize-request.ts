import { contentLengthOf, expectsBody } from '../../../decision/http/framing.js';

/** What is written of a request before its body. */
interface RequestHeadParts {
  readonly method: string;
  /** The request target, byte for byte as it goes out. */
  readonly target: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Protocol to switch to, where one is asked for. */
  readonly upgrade?: string;
}

const contentLength = 'content-length';

/** Headers that are written here alone. */
const transferEncoding = 'transfer-encoding';
const connection = 'connection';
const upgradeName = 'upgrade';
const te = 'te';

/** The one value of TE that is sent: that trailers are taken (RFC 9110 §10.1.4). */
const trailersOnly = 'trailers';

/**
 * The one form that a head of ours has. What goes in was judged header by header; this holds the whole once more, and
 * its lines are counted, so that no mistake there could end a line early and begin another header or request.
 */
const wellFormed =
  /^[!#$%&'*+\-.^_`|~0-9A-Z]+ [\x21-\x7e]+ HTTP\/1\.1\r\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [\t\x20-\x7e\x80-\xff]*\r\n)+\r\n$/;

/** The length that the headers give the body; `null` where they give none, `NaN` where it cannot be read. */
export function statedLength(headers: readonly string[]): number | null {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (isNamed(name, contentLength)) return lengthOf(headers[i + 1] ?? '');
  }
  return null;
}

/**
 * Writes the head of a request, one character for each byte (RFC 9112 §3, §5).
 *
 * @param length bytes of its body; `null` sends it in chunks.
 * @param isLast whether the upstream is told that no other request follows on the connection.
 * @returns `null` where the parts do not make one head and nothing else, or say something else of the body: a bug.
 */
export function serializeRequest(
  { method, target, headers, upgrade }: RequestHeadParts,
  length: number | null,
  isLast = false,
): string | null {
  let text = `${method} ${target} HTTP/1.1\r\n`;
  let isStated = false;
  let takesTrailers = false;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    const value = headers[i + 1] ?? '';
    if (isNamed(name, contentLength)) {
      if (isStated || lengthOf(value) !== length) return null;
      isStated = true;
    } else if (isNamed(name, transferEncoding) || isNamed(name, connection)) return null;
    else if (upgrade !== undefined && isNamed(name, upgradeName)) return null;
    else if (isNamed(name, te)) {
      if (takesTrailers || value !== trailersOnly || upgrade !== undefined) return null;
      takesTrailers = true;
    }
    text += `${name}: ${value}\r\n`;
  }
  if (upgrade !== undefined) text += `Connection: upgrade\r\nUpgrade: ${upgrade}\r\n`;
  else {
    text += isLast ? 'Connection: close' : 'Connection: keep-alive';
    // TE is for this connection alone.
    text += takesTrailers ? ', TE\r\n' : '\r\n';
  }
  const isFramed = isStated || (length === 0 && !expectsBody.has(method));
  if (!isFramed) text += length === null ? 'Transfer-Encoding: chunked\r\n' : `Content-Length: ${String(length)}\r\n`;
  text += '\r\n';
  // The first line, Connection and the empty one are no header of the request.
  const lines = headers.length / 2 + (isFramed ? 3 : 4) + (upgrade === undefined ? 0 : 1);
  return wellFormed.test(text) && hasLines(text, lines) ? text : null;
}

function hasLines(text: string, count: number): boolean {
  let found = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) found++;
  return found === count;
}

function isNamed(name: string, lowerCase: string): boolean {
  return name.length === lowerCase.length && name.toLowerCase() === lowerCase;
}

/** `NaN` where it is none. */
function lengthOf(value: string): number {
  return contentLengthOf(value) ?? NaN;
}
