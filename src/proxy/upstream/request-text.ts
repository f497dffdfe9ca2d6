/** What is written of a request before its body. */
export interface RequestHeadParts {
  readonly method: string;
  /** The request target, byte for byte as it goes out. */
  readonly target: string;
  /** Names and values in turn. */
  readonly fields: readonly string[];
}

/** Methods whose requests say that they have no body where they have none (RFC 9110 §8.6). */
const expectsBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);

/**
 * The one form that a head of ours has. What goes in was judged field by field; this holds the whole once more, so that no
 * mistake there could end a line early and begin another field or request.
 */
const wellFormed = /^[!#$%&'*+\-.^_`|~0-9A-Z]+ [\x21-\x7e]+ HTTP\/1\.1\r\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+: [\t\x20-\x7e\x80-\xff]*\r\n)+\r\n$/;

const contentLength = 'content-length';

/** The length that the fields give the body; `null` where they give none. */
export function statedLength(fields: readonly string[]): number | null {
  for (let i = 0; i < fields.length; i += 2) {
    const name = fields[i] ?? '';
    if (name.length === contentLength.length && name.toLowerCase() === contentLength) return Number(fields[i + 1]);
  }
  return null;
}

/**
 * Writes the head of a request, one character for each byte (RFC 9112 §3, §5).
 *
 * @param framing whether the body comes in chunks, has the length that the fields state, or there is none.
 * @returns `null` where the parts do not make one head and nothing else: a bug.
 */
export function requestText({ method, target, fields }: RequestHeadParts, framing: 'chunked' | 'stated' | 'none'): string | null {
  let text = `${method} ${target} HTTP/1.1\r\n`;
  for (let i = 0; i < fields.length; i += 2) text += `${fields[i] ?? ''}: ${fields[i + 1] ?? ''}\r\n`;
  text += 'Connection: keep-alive\r\n';
  if (framing === 'chunked') text += 'Transfer-Encoding: chunked\r\n';
  else if (framing === 'none' && expectsBody.has(method) && statedLength(fields) === null) text += 'Content-Length: 0\r\n';
  text += '\r\n';
  return wellFormed.test(text) ? text : null;
}
