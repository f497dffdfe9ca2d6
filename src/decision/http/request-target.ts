import { denial, type Denial } from '../denial.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** An unambiguous request target: every router reads the same path from it. */
export interface RequestTarget {
  /** As it came, and as it is forwarded. */
  readonly raw: string;
  /** What precedes the query, as it came. */
  readonly path: string;
  /** What follows the first `?`, or `null`. Forwarded, never judged. */
  readonly query: string | null;
  /**
   * What the policy judges: decoded once. A trailing slash is a last, empty segment. An encoded slash and path
   * parameters stay as they came, so that no literal of a route matches them.
   */
  readonly segments: readonly string[];
  /**
   * By which routers that leave such escapes look for literals: a segment with an escape that could have been spelled
   * otherwise is as it came. `null` where there is none, as in almost every target.
   */
  readonly literalSegments: readonly string[] | null;
  /** Whether a segment holds `%2F`, which only routes with `encoded_slashes: allow` take. */
  readonly encodedSlash: boolean;
  /** Whether a segment holds `;`, which only routes with `path_parameters: allow` take. */
  readonly pathParameters: boolean;
}

const forbidden = 0;
const plain = 1;
const slash = 2;
/** `%` and `;`. */
const needsReading = 3;

type ByteKind = typeof forbidden | typeof plain | typeof slash | typeof needsReading;

/**
 * What a byte means in a path. RFC 3986 §3.3 `pchar` is plain; raw controls, non-ASCII, `\`, `#` and kin are forbidden.
 */
const pathBytes = byteKinds();

/** Visible ASCII but `#`: no client sends a fragment, and readers differ in where a target with one ends. */
const queryText = /^[\x21\x22\x24-\x7e]*$/;

const slashCode = 0x2f;
const dotCode = 0x2e;

/**
 * Reads a request target in origin-form (RFC 9112 §3.2.1), or refuses it: `target_too_long` beyond `maxTargetBytes`,
 * `target_malformed` for every target that two readers may read differently. Nothing is normalised: what
 * would have to be is refused, so that the bytes judged are the bytes forwarded.
 */
export function readTarget(raw: string, maxTargetBytes: number): Result<RequestTarget, Denial> {
  if (raw.length > maxTargetBytes) return refuse(denial('target_too_long'));
  if (raw.charCodeAt(0) !== slashCode) return malformed();
  const question = raw.indexOf('?');
  const pathEnd = question === -1 ? raw.length : question;
  const segments: string[] = [];
  let encodedSlash = false;
  let pathParameters = false;
  let hasEscape = false;
  let start = 1;
  let isPlain = true;
  for (let i = 1; i <= pathEnd; i++) {
    const kind = i === pathEnd ? slash : pathBytes[raw.charCodeAt(i)];
    if (kind === plain) continue;
    if (kind === needsReading) {
      isPlain = false;
      hasEscape = true;
      continue;
    }
    if (kind !== slash) return malformed();
    const text = raw.slice(start, i);
    // Only the last segment may be empty: `//` is one slash to some routers, and begins a host to others.
    if (isDotSegment(text) || (text === '' && i !== pathEnd)) return malformed();
    if (isPlain) {
      segments.push(text);
    } else {
      const segment = readPathSegment(text);
      if (segment === null) return malformed();
      encodedSlash ||= segment.encodedSlash;
      pathParameters ||= segment.parameters;
      segments.push(segment.text);
    }
    start = i + 1;
    isPlain = true;
  }
  const path = question === -1 ? raw : raw.slice(0, question);
  const query = question === -1 ? null : raw.slice(question + 1);
  if (query !== null && !queryText.test(query)) return malformed();
  const literalSegments = hasEscape ? leaveEscapes(path, spelledOtherwise) : null;
  return accept({ raw, path, query, segments, literalSegments, encodedSlash, pathParameters });
}

/**
 * Escapes with another spelling: of `! $ & ' ( ) * + , : = @`, which may stand as they are.
 * Express leaves all escapes while it looks for literals, and Fastify those that `decodeURI` leaves.
 */
const spelledOtherwise = /%(?:2[146-9A-C]|3[AD]|40)/i;

/**
 * The segments of a path that was read, those with such an escape as they came and the others decoded; `null` where
 * none has one. No literal of a route is spelled like what stays.
 */
export function leaveEscapes(path: string, escapes: RegExp): readonly string[] | null {
  if (!escapes.test(path)) return null;
  return path
    .slice(1)
    .split('/')
    .map((segment) => (escapes.test(segment) ? segment : decodeURIComponent(segment)));
}

/**
 * Spells a decoded segment as `readTarget` takes it: percent-encodes what may not stand there as it is (RFC 3986 §3.3),
 * and nothing else.
 */
export function encodeSegment(text: string): string {
  return encodeURIComponent(text).replace(/%(?:24|26|2B|2C|3A|3D|40)/g, decodeURIComponent);
}

function isDotSegment(text: string): boolean {
  return text.charCodeAt(0) === dotCode && (text.length === 1 || text === '..');
}

function malformed(): { readonly ok: false; readonly error: Denial } {
  return refuse(denial('target_malformed'));
}

function byteKinds(): Uint8Array {
  const kinds = new Uint8Array(256);
  const mark = (characters: string, kind: ByteKind): void => {
    for (let i = 0; i < characters.length; i++) kinds[characters.charCodeAt(i)] = kind;
  };
  mark('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~', plain);
  mark("!$&'()*+,=:@", plain);
  mark('/', slash);
  mark('%;', needsReading);
  return kinds;
}

/** A path segment that holds escapes or parameters, read. */
interface PathSegment {
  /** Decoded once, but for encoded slashes, which stay as they came. */
  readonly text: string;
  /** Whether it holds `%2F`. */
  readonly encodedSlash: boolean;
  /** Whether it holds `;`. */
  readonly parameters: boolean;
}

const percentCode = 0x25;
const notCharacter = -1;

/** The length of `%` and two digits. */
const escapeLength = 3;

/**
 * ASCII characters that may be escaped. The rest is refused: controls forge log lines; unreserved ones have a plain
 * spelling, so that an escape only hides them; `\ ; ? #` end or split a path in readers that decode before they split.
 */
const escapable: ReadonlySet<number> = new Set(Buffer.from(' "%<>[]^`{|}!$&\'()*+,=:@'));

/** C1 controls begin after DEL and end before the no-break space. */
const firstPrintableBeyondAscii = 0xa0;

/** The smallest code point that needs this many bytes in UTF-8: a longer form of a smaller one is overlong. */
const smallestOfLength: Readonly<Record<number, number>> = { 2: 0x80, 3: 0x800, 4: 0x10000 };

const largestCodePoint = 0x10ffff;

/** What may stand between dots and make them a dot segment to a reader that decodes slashes or drops parameters. */
const hiddenSeparator = /;|%2f/i;

/**
 * Reads one segment of RFC 3986 `pchar`, `%` and `;`. Returns `null` where two readers may read it differently: bad
 * escapes, invalid UTF-8, escapes of what must not or need not be escaped, `%25` before two hex digits (decoded twice
 * it is another escape), and dot or empty segments that appear when parameters are dropped, slashes decoded or blanks
 * cut off.
 */
export function readPathSegment(raw: string): PathSegment | null {
  // `/;x/` is `//` to a reader that drops parameters.
  if (raw.startsWith(';')) return null;
  let text = '';
  let copied = 0;
  let encodedSlash = false;
  for (let at = raw.indexOf('%'); at !== -1; at = raw.indexOf('%', at)) {
    const length = utf8Length(byteOf(raw, at + 1));
    const codePoint = escapedCharacter(raw, at, length);
    if (codePoint === slashCode) {
      encodedSlash = true;
      at += escapeLength;
      continue;
    }
    if (!mayBeEscaped(codePoint) || (codePoint === percentCode && byteOf(raw, at + escapeLength) !== notCharacter)) {
      return null;
    }
    text += raw.slice(copied, at) + String.fromCodePoint(codePoint);
    at += length * escapeLength;
    copied = at;
  }
  text += raw.slice(copied);
  const parameters = text.includes(';');
  if (text.split(hiddenSeparator).some(isDots)) return null;
  return { text, encodedSlash, parameters };
}

const beyondDotsAndBlanks = /[^. ]/;

/** `/a/%20/b` is `/a/b` to Spring before 4.3, which cuts blanks off, and `..%20` is `..` to Windows. */
function isDots(text: string): boolean {
  return text === '.' || text === '..' || (text.includes(' ') && !beyondDotsAndBlanks.test(text));
}

function mayBeEscaped(codePoint: number): boolean {
  return escapable.has(codePoint) || codePoint >= firstPrintableBeyondAscii;
}

/** Decodes the UTF-8 character (RFC 3629) of so many bytes whose escape begins at `at`, or returns `notCharacter`. */
function escapedCharacter(text: string, at: number, length: number): number {
  const lead = byteOf(text, at + 1);
  if (length === 1) return lead;
  let codePoint = lead & (0x7f >> length);
  for (let i = 1; i < length; i++) {
    const position = at + i * escapeLength;
    const byte = text.charCodeAt(position) === percentCode ? byteOf(text, position + 1) : notCharacter;
    if (byte < 0x80 || byte > 0xbf) return notCharacter;
    codePoint = (codePoint << 6) | (byte & 0x3f);
  }
  const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff;
  const isOverlong = codePoint < (smallestOfLength[length] ?? Infinity);
  return isOverlong || isSurrogate || codePoint > largestCodePoint ? notCharacter : codePoint;
}

/** Bytes of a UTF-8 character by its first one, 1 for what is no byte, or 0 for a byte that begins none. */
function utf8Length(lead: number): number {
  if (lead < 0x80) return 1;
  if (lead < 0xc0) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf8 ? 4 : 0;
}

/** The byte that two hex digits at `at` spell, or `notCharacter`. */
function byteOf(text: string, at: number): number {
  const high = hexDigit(text.charCodeAt(at));
  const low = hexDigit(text.charCodeAt(at + 1));
  return high === notCharacter || low === notCharacter ? notCharacter : high * 16 + low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : notCharacter;
}
