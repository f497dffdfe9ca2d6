const tabCode = 0x09;
const spaceCode = 0x20;

/**
 * JSON escapes the controls below U+0020 only. DEL, the C1 controls, U+2028, U+2029 and the marks that reorder text
 * break or disguise lines in terminals and log viewers (CWE-117).
 */
const unsafe = /[\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const everyUnsafe = new RegExp(unsafe, 'g');

/** Escapes those in a line of JSON. Outside strings it has only ASCII, so an escape is right wherever one stands. */
export function oneLine(json: string): string {
  return unsafe.test(json) ? json.replace(everyUnsafe, escape) : json;
}

function escape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

const visibleAscii = /^[\x21-\x7e]+$/;

/**
 * Tells whether a value is a string of 1 to `maxLength` visible ASCII characters (RFC 5234 `VCHAR`): what may go to a
 * header and a log line without being able to forge either.
 */
export function isVisibleAscii(value: unknown, maxLength: number): value is string {
  return typeof value === 'string' && value.length <= maxLength && visibleAscii.test(value);
}

/** A comma is no part of it, so two headers that something joined into one are refused. */
const b64Token = /^[A-Za-z0-9._~+/-]+=*$/;

/** Tells whether a text can be a bearer token: RFC 6750 §2.1 `b64token`, RFC 9110 §11.2 `token68`. */
export function isB64Token(text: string): boolean {
  return b64Token.test(text);
}

/**
 * Removes spaces and tabs at both ends: RFC 9110 §5.6.3 `OWS`, while `trim` takes the no-break space too. A loop,
 * because a pattern for it takes time in the square of a long run of blanks.
 */
export function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  // There is no character, and so no blank, beyond either end.
  while (isBlank(text.charCodeAt(start))) start++;
  while (isBlank(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === spaceCode || code === tabCode;
}

/**
 * A name as readers have it that match without case, Go's encoding/json among them: to them the Kelvin sign is a k, and
 * a long s an s.
 */
export function withoutCase(name: string): string {
  return name.toUpperCase().toLowerCase();
}

/** Shows control, format and separator characters as escapes: a problem is one line, and prints as what it is. */
export function escapeControls(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xff ? `\\u{${code.toString(16)}}` : `\\x${code.toString(16).padStart(2, '0')}`;
  });
}

/** Makes a text longer until it is not used: a sample says nothing where it stands for something else. */
export function unusedText(text: string, isUsed: (text: string) => boolean): string {
  let unused = text;
  while (isUsed(unused)) unused += 'x';
  return unused;
}
