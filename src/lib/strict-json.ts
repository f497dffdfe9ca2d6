import { accept, refuse, type Result } from './result.js';

export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject;

/** A JSON object without a prototype, so that `__proto__` and `constructor` are members like any other. */
export interface JsonObject {
  readonly [name: string]: JsonValue;
}

/** Why bytes are no strict JSON object. */
export type JsonProblem =
  /** Not UTF-8. */
  | 'encoding'
  | 'too_deep'
  /** Not JSON (RFC 8259); a byte order mark is none either. */
  | 'syntax'
  | 'not_an_object'
  | 'duplicate_member'
  /** A string with a lone surrogate, which no UTF-8 can carry on, or a number beyond the range of a double. */
  | 'not_representable';

/** The same for people, behind the name of what was read. */
export const jsonProblemWords: Readonly<Record<JsonProblem, string>> = {
  encoding: 'not UTF-8',
  too_deep: 'nested too deeply',
  syntax: 'no JSON',
  not_an_object: 'no object',
  duplicate_member: 'a member is given twice',
  not_representable: 'a text or a number that JSON cannot carry on',
};

interface JsonLimits {
  /** Objects and arrays inside one another; 1 is the object itself. */
  readonly maxDepth: number;
}

/** Tokens and key sets need 3; deeper nesting only serves to exhaust a parser's stack. */
export const defaultMaxDepth = 16;

/** Keeps the byte order mark, so that `JSON.parse` refuses it instead of one reader seeing it and another not. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const loneSurrogate = /\p{Surrogate}/u;

/** Parses one JSON object, held to what `parseStrictValue` says. */
export function parseStrictJson(bytes: Uint8Array, limits: JsonLimits): Result<JsonObject, JsonProblem> {
  const read = parseStrictValue(bytes, limits);
  if (!read.ok) return read;
  return isJsonObject(read.value) ? accept(read.value) : refuse('not_an_object');
}

/**
 * Parses one JSON value, refusing whatever two parsers could read differently: invalid UTF-8, a byte order mark,
 * duplicate member names (RFC 8259 §4, RFC 7515 §4) however they are escaped, lone surrogates, deep nesting.
 *
 * Duplicates are found by counting. Outside its strings a JSON text has one colon for each member, and `JSON.parse`
 * keeps one member for each distinct name; so the counts differ exactly when a name came twice in some object.
 */
export function parseStrictValue(bytes: Uint8Array, limits: JsonLimits): Result<JsonValue, JsonProblem> {
  const text = decode(bytes);
  if (text === null) return refuse('encoding');
  const members = countMembers(text, limits.maxDepth);
  if (members === null) return refuse('too_deep');
  const parsed = parse(text);
  if (parsed === undefined) return refuse('syntax');
  // What UTF-8 carried is representable: only an escape writes a lone surrogate (RFC 8259 §7).
  const tally: Tally = { members: 0, representable: true, hasEscapes: text.includes('\\u') };
  const value = parsed as JsonValue;
  detach(value, tally);
  if (tally.members !== members) return refuse('duplicate_member');
  return tally.representable ? accept(value) : refuse('not_representable');
}

/** Tells an object from the other JSON values. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !isJsonArray(value);
}

/** Tells an array from the other JSON values. */
export function isJsonArray(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function decode(bytes: Uint8Array): string | null {
  try {
    return utf8.decode(bytes);
  } catch {
    return null;
  }
}

/** The colons outside strings, or `null` where objects and arrays nest too deep. Means nothing for what is not JSON. */
function countMembers(text: string, maxDepth: number): number | null {
  let members = 0;
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at);
        break;
      case 0x3a: // :
        members += 1;
        break;
      case 0x5b: // [
      case 0x7b: // {
        depth += 1;
        if (depth > maxDepth) return null;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth -= 1;
        break;
    }
  }
  return members;
}

/** Position of the quote that ends the string begun at `start`, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at;
    if (code === 0x5c) at += 1; // a backslash takes the next character with it
  }
  return text.length;
}

/** `undefined`, which no JSON text yields, where the text is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface Tally {
  members: number;
  representable: boolean;
  readonly hasEscapes: boolean;
}

/**
 * Takes the prototype of every object that `JSON.parse` built; in place, for a copy costs four times as much. Recursion
 * is bounded: the depth was checked.
 */
function detach(value: JsonValue, tally: Tally): void {
  if (typeof value === 'string') {
    if (tally.hasEscapes && loneSurrogate.test(value)) tally.representable = false;
  } else if (typeof value === 'number') {
    if (!Number.isFinite(value)) tally.representable = false;
  } else if (isJsonArray(value)) {
    for (const item of value) detach(item, tally);
  } else if (isJsonObject(value)) {
    for (const name of Object.keys(value)) {
      tally.members += 1;
      if (tally.hasEscapes && loneSurrogate.test(name)) tally.representable = false;
      detach(value[name] ?? null, tally);
    }
    Object.setPrototypeOf(value, null);
  }
}
