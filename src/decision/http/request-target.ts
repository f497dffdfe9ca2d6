import { denial, type Denial } from '../denial.js';
import { readPathSegment } from './path-segment.js';
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
  let start = 1;
  let isPlain = true;
  for (let i = 1; i <= pathEnd; i++) {
    const kind = i === pathEnd ? slash : pathBytes[raw.charCodeAt(i)];
    if (kind === plain) continue;
    if (kind === needsReading) {
      isPlain = false;
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
  if (question === -1) return accept({ raw, path: raw, query: null, segments, encodedSlash, pathParameters });
  const query = raw.slice(question + 1);
  if (!queryText.test(query)) return malformed();
  return accept({ raw, path: raw.slice(0, question), query, segments, encodedSlash, pathParameters });
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
