/** docs/contract.md 3.1, step by step and one byte at a time. Shares nothing with the code that it judges. */

export type ReadTarget =
  | { readonly status: number }
  | {
      readonly status: null;
      readonly segments: readonly string[];
      readonly hasEncodedSlash: boolean;
      readonly hasParameters: boolean;
    };

const unreserved = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~';
/** RFC 3986 `pchar` without escapes, and without `;`. */
const plain = `${unreserved}!$&'()*+,=:@`;
const hex = '0123456789abcdefABCDEF';

/** Stands for an encoded slash, which is no part of any text. */
const keptSlash = '%2F';

/** Reads a request target; `status` is what it is refused with. */
export function readTargetSlowly(target: string, maxBytes: number): ReadTarget {
  if (target.length > maxBytes) return { status: 414 };
  const bad: ReadTarget = { status: 400 };
  if (target[0] !== '/') return bad;
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? '' : target.slice(mark + 1);
  for (const character of query) if (character <= ' ' || character > '~' || character === '#') return bad;
  const parts = path.slice(1).split('/');
  const segments: string[] = [];
  let hasEncodedSlash = false;
  let hasParameters = false;
  for (const [index, part] of parts.entries()) {
    if (part === '' && index < parts.length - 1) return bad;
    const segment = readSegment(part);
    if (segment === null) return bad;
    hasEncodedSlash ||= segment.hasEncodedSlash;
    hasParameters ||= segment.hasParameters;
    segments.push(segment.text);
  }
  return { status: null, segments, hasEncodedSlash, hasParameters };
}

interface Segment {
  readonly text: string;
  readonly hasEncodedSlash: boolean;
  readonly hasParameters: boolean;
}

function readSegment(part: string): Segment | null {
  const pieces: string[] = [];
  let bytes: number[] = [];
  const endPiece = (): boolean => {
    const text = decodeUtf8(bytes);
    if (text !== null) pieces.push(text);
    bytes = [];
    return text !== null;
  };
  let hasParameters = false;
  for (let at = 0; at < part.length; at++) {
    const character = part[at] ?? '';
    if (character === '%') {
      const digits = part.slice(at + 1, at + 3);
      if (digits.length < 2 || Array.from(digits).some((digit) => !hex.includes(digit))) return null;
      at += 2;
      const byte = Number.parseInt(digits, 16);
      if (byte === 0x2f) {
        if (!endPiece()) return null;
        continue;
      }
      const after = part.slice(at + 1, at + 3);
      if (byte === 0x25 && after.length === 2 && Array.from(after).every((digit) => hex.includes(digit))) return null;
      if (
        byte < 0x20 ||
        byte === 0x7f ||
        unreserved.includes(String.fromCharCode(byte)) ||
        [0x5c, 0x3b, 0x3f, 0x23].includes(byte)
      ) {
        return null;
      }
      bytes.push(byte);
    } else if (character === ';') {
      hasParameters = true;
      bytes.push(0x3b);
    } else if (plain.includes(character)) {
      bytes.push(character.charCodeAt(0));
    } else {
      return null;
    }
  }
  if (!endPiece()) return null;
  // What is left of a segment once its parameters are dropped, or what stands between them, is a dot segment to some
  // reader, or to one that cuts blanks off.
  if (part.startsWith(';')) return null;
  const between = pieces.flatMap((piece) => piece.split(';'));
  if (between.some((text) => text === '.' || text === '..' || /^(?=.* )[. ]+$/.test(text))) return null;
  return { text: pieces.join(keptSlash), hasEncodedSlash: pieces.length > 1, hasParameters };
}

/** `null` for what is no UTF-8, and for controls, C1 ones too. */
function decodeUtf8(bytes: readonly number[]): string | null {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes));
    return Array.from(text).some((character) => /\p{Cc}/u.test(character)) ? null : text;
  } catch {
    return null;
  }
}
