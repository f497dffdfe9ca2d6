import { sensitiveHeaders, type OutgoingHttpHeaders } from 'node:http2';
import { contentLengthOf, expectsBody } from '../../../decision/http/framing.js';
import { isFieldName } from '../../../decision/http/header-names.js';
import { isFieldValue } from '../../../decision/http/header-values.js';
import { connectionHeaders, oneLineHeaders } from '../../../decision/http2/header-names.js';
import { memoize } from '../../../lib/memo.js';

/** What is written of a request before its body. */
interface RequestHeadParts {
  readonly method: string;
  /** The request target, byte for byte as it goes out. */
  readonly target: string;
  /** Names and values in turn; `Host` among them. */
  readonly headers: readonly string[];
}

/** What all requests of one upstream have in common. */
export interface HeadRules {
  readonly scheme: 'http' | 'https';
  /** Names in lower case of what goes into no table that other requests are compressed with (RFC 7541 §7.1.3). */
  readonly sensitiveNames: readonly string[];
}

const method = /^[!#$%&'*+\-.^_`|~0-9A-Z]+$/;
const target = /^[\x21-\x7e]+$/;

/** The name in lower case, as HTTP/2 has it; empty where it may be no header of a request there. */
const sentName = memoize(
  (name: string): string => {
    const lowerCase = name.toLowerCase();
    return isFieldName(name) && !connectionHeaders.has(lowerCase) ? lowerCase : '';
  },
  // Names are the callers' to choose.
  { maxNames: 512, maxLength: 64 },
);

/**
 * Writes the head of a request for Node's HTTP/2 (RFC 9113 §8.3.1): one character for each byte of a value. The object
 * has no prototype, so that no name of a header means something else.
 *
 * @param length bytes of its body; `null` where nobody knows before its end.
 * @returns `null` where the parts do not make one head and nothing else, or say something else of the body: a bug.
 */
export function requestHead(
  { method: sentMethod, target: path, headers }: RequestHeadParts,
  length: number | null,
  { scheme, sensitiveNames }: HeadRules,
): OutgoingHttpHeaders | null {
  if (!method.test(sentMethod) || !target.test(path)) return null;
  const head = Object.create(null) as OutgoingHttpHeaders;
  head[':method'] = sentMethod;
  head[':scheme'] = scheme;
  head[':authority'] = '';
  head[':path'] = path;
  let isStated = false;
  for (let i = 0; i < headers.length; i += 2) {
    const name = sentName(headers[i] ?? '');
    const value = headers[i + 1] ?? '';
    if (name === '' || !isFieldValue(value)) return null;
    if (name === 'host') {
      if (head[':authority'] !== '' || value === '') return null;
      head[':authority'] = value;
      continue;
    }
    if (name === 'te' && value !== 'trailers') return null;
    if (name === 'content-length') {
      const stated = contentLengthOf(value);
      if (isStated || stated === null || stated !== length) return null;
      isStated = true;
    }
    addHeader(head, name, value);
  }
  if (head[':authority'] === '') return null;
  if (!isStated && length !== null && (length > 0 || expectsBody.has(sentMethod))) head['content-length'] = length;
  (head as Record<symbol, unknown>)[sensitiveHeaders] = sensitiveNames;
  return head;
}

/**
 * nghttp2 sends no longer section, as it estimates it, and Node closes the whole connection where it refuses one
 * (`nghttp2_option_set_max_send_header_block_length`, `nghttp2_hd_deflate_bound`).
 */
const maxSectionBytes = 64 * 1024;

/** What nghttp2 counts for a section, with a priority that it might have, and for each line of it; bytes. */
const bytesOfSection = 17;
const bytesOfLine = 12;

/** `:method`, `:scheme` with `https`, `:authority` in place of `host`, `:path`, and a `content-length`; bytes. */
const bytesOfPseudo = 5 * bytesOfLine + 64;

/** Whether a head may be too long for HTTP/2, of which a few bytes less than there may be are let through. */
export function isHeadTooLong({ method: sentMethod, target: path, headers }: RequestHeadParts): boolean {
  return sectionBytes(headers) + bytesOfPseudo + sentMethod.length + path.length > maxSectionBytes;
}

/** Whether a trailer section is too long for it; names and values in turn. */
export function isSectionTooLong(fields: readonly string[]): boolean {
  return sectionBytes(fields) > maxSectionBytes;
}

/** Bytes of a section with these names and values, as nghttp2 estimates them. */
function sectionBytes(fields: readonly string[]): number {
  let bytes = bytesOfSection + (fields.length / 2) * bytesOfLine;
  for (const text of fields) bytes += text.length;
  return bytes;
}

/**
 * Adds a line; `name` in lower case. Where Node sends one line and no more, several go out as one, which means the same
 * (RFC 9110 §5.3); of all others each line stays a line of its own.
 */
export function addHeader(section: OutgoingHttpHeaders, name: string, value: string): void {
  const earlier = section[name];
  if (earlier === undefined) section[name] = value;
  else if (oneLineHeaders.has(name)) section[name] = `${String(earlier)}, ${value}`;
  else if (Array.isArray(earlier)) earlier.push(value);
  else section[name] = [String(earlier), value];
}
