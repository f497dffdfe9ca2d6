import { listElements } from '../../../decision/http/header-values.js';
import { trimBlanks } from '../../../lib/text.js';
import { contentLengthOf } from '../../../decision/http/framing.js';

/** The head of an upstream's response, and what it says of the connection. */
export interface ResponseHead {
  /** 100 to 999. */
  readonly status: number;
  /** Names and values in turn, as they came but for blanks around values. */
  readonly headers: string[];
  /** Bytes of the body where they are known; else how its end is found. */
  readonly body: number | 'chunked' | 'until-end';
  /** Whether another request may follow on the connection, by what both sides said. */
  readonly persists: boolean;
  /**
   * Whether the upstream may see the end elsewhere: the response has no body by rule, and not everybody keeps to it.
   */
  readonly endIsDoubtful: boolean;
  /** How long the upstream keeps the idle connection, where it says so; seconds. */
  readonly keepAliveS: number | null;
}

/**
 * A whole head but for its empty line (RFC 9112 §2.1, §4, §5). Folded lines, bare line feeds, blanks before a colon and
 * control bytes are refused: what a reader has to mend, the caller's reader may mend in another way.
 */
const wellFormed =
  /^HTTP\/1\.[01] [1-9][0-9]{2}(?: [\t\x20-\x7e\x80-\xff]*)?\r\n(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e\x80-\xff]*\r\n)*$/;

const minorVersionAt = 'HTTP/1.'.length;
const statusAt = 'HTTP/1.1 '.length;
const statusEnd = statusAt + 3;

const firstFinal = 200;
export const switchingProtocols = 101;
const noContent = 204;
const notModified = 304;

/** Final statuses whose responses have no body (RFC 9112 §6.3). */
export const bodyless: ReadonlySet<number> = new Set([noContent, notModified]);

const keepAliveTimeout = /(?:^|[\s,;])timeout=([0-9]{1,9})/i;

const keepAliveOnly: readonly string[] = ['keep-alive'];

/** What the headers say of the message, as they are found. */
interface Framing {
  contentLength: string | null;
  transferEncoding: string | null;
  connection: string | null;
  keepAlive: string | null;
  /** Whether one that may stand only once came again. */
  isAmbiguous: boolean;
}

/** Tells a head that another one follows. */
export function isInterim({ status }: ResponseHead): boolean {
  return status < firstFinal && status !== switchingProtocols;
}

/**
 * Reads a head, one character for each byte, up to and with the end of its last line; `null` where it is malformed or
 * two readers could find the end of its body in different places: both lengths and codings, a repeated or odd length,
 * any coding but `chunked` (RFC 9112 §6).
 *
 * @param isToHead whether the request was a HEAD, whose response has no body whatever it says.
 */
export function readResponseHead(text: string, isToHead: boolean): ResponseHead | null {
  if (!wellFormed.test(text)) return null;
  const status = Number(text.slice(statusAt, statusEnd));
  const headers: string[] = [];
  const framing: Framing = {
    contentLength: null,
    transferEncoding: null,
    connection: null,
    keepAlive: null,
    isAmbiguous: false,
  };
  for (let at = text.indexOf('\r\n') + 2; at < text.length;) {
    const colon = text.indexOf(':', at);
    const end = text.indexOf('\r\n', colon);
    const name = text.slice(at, colon);
    const value = trimBlanks(text.slice(colon + 1, end));
    headers.push(name, value);
    recordFramingHeader(framing, name, value);
    at = end + 2;
  }
  const isOld = text[minorVersionAt] === '0';
  const hasNoBody = isToHead || status < firstFinal || bodyless.has(status);
  const body = bodyOf(framing, isOld);
  if (body === null) return null;
  const options = optionsOf(framing.connection);
  // A 204 may not speak of a body (RFC 9110 §8.6). One that does may have it come after.
  const endIsKnown = hasNoBody ? status !== noContent || body === 0 || body === 'until-end' : body !== 'until-end';
  return {
    status,
    headers,
    body: hasNoBody ? 0 : body,
    persists: endIsKnown && !options.includes('close') && (!isOld || options.includes('keep-alive')),
    endIsDoubtful: hasNoBody && !(status === notModified && body === 0),
    keepAliveS: framing.keepAlive === null ? null : keepAliveOf(framing.keepAlive),
  };
}

/** Keeps what says something of the message. Most names are told apart by their length. */
function recordFramingHeader(framing: Framing, name: string, value: string): void {
  switch (name.length) {
    case 'connection'.length: {
      const lowerCase = name.toLowerCase();
      if (lowerCase === 'connection') {
        framing.connection = framing.connection === null ? value : `${framing.connection}, ${value}`;
      }
      if (lowerCase === 'keep-alive') framing.keepAlive = value;
      break;
    }
    case 'content-length'.length:
      if (name.toLowerCase() !== 'content-length') break;
      framing.isAmbiguous ||= framing.contentLength !== null;
      framing.contentLength = value;
      break;
    case 'transfer-encoding'.length:
      if (name.toLowerCase() !== 'transfer-encoding') break;
      framing.isAmbiguous ||= framing.transferEncoding !== null;
      framing.transferEncoding = value;
      break;
    default:
  }
}

function bodyOf(
  { contentLength, transferEncoding, isAmbiguous }: Framing,
  isOld: boolean,
): ResponseHead['body'] | null {
  if (isAmbiguous) return null;
  if (transferEncoding !== null) {
    return contentLength === null && !isOld && transferEncoding.toLowerCase() === 'chunked' ? 'chunked' : null;
  }
  return contentLength === null ? 'until-end' : contentLengthOf(contentLength);
}

function optionsOf(connection: string | null): readonly string[] {
  if (connection === null) return [];
  // What almost every upstream says, where it says something.
  return connection === 'keep-alive' ? keepAliveOnly : listElements(connection);
}

function keepAliveOf(value: string): number | null {
  const seconds = keepAliveTimeout.exec(value)?.[1];
  return seconds === undefined ? null : Number(seconds);
}
