/** JSON (RFC 8259) as the contract wants it in tokens: one reading only. Written down by the grammar. */

export type Json = null | boolean | number | string | readonly Json[] | ReadonlyMap<string, Json>;

/** What is left of a text, from `at`. */
interface Reader {
  readonly text: string;
  at: number;
  depth: number;
  readonly maxDepth: number;
}

class Refused extends Error {}

/**
 * The object that the bytes hold: UTF-8, no name twice in one object, no lone surrogate, nothing deeper than 16
 * unless it is told otherwise. `null` is none.
 */
export function readObject(bytes: Uint8Array, maxDepth = 16): ReadonlyMap<string, Json> | null {
  try {
    const reader: Reader = {
      text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes),
      at: 0,
      depth: 0,
      maxDepth,
    };
    const value = readValue(reader);
    if (reader.at !== reader.text.length) return null;
    return value instanceof Map ? value : null;
  } catch {
    return null;
  }
}

function readValue(reader: Reader): Json {
  skipSpace(reader);
  const value = readBare(reader);
  skipSpace(reader);
  return value;
}

function readBare(reader: Reader): Json {
  switch (reader.text[reader.at]) {
    case '{':
      return nested(reader, readMembers);
    case '[':
      return nested(reader, readItems);
    case '"':
      return readString(reader);
    default:
      return readWord(reader);
  }
}

function nested<T>(reader: Reader, read: (reader: Reader) => T): T {
  reader.depth += 1;
  if (reader.depth > reader.maxDepth) throw new Refused();
  reader.at += 1;
  const value = read(reader);
  reader.depth -= 1;
  return value;
}

function readMembers(reader: Reader): ReadonlyMap<string, Json> {
  const members = new Map<string, Json>();
  skipSpace(reader);
  if (taken(reader, '}')) return members;
  for (;;) {
    skipSpace(reader);
    const name = readString(reader);
    skipSpace(reader);
    if (!taken(reader, ':') || members.has(name)) throw new Refused();
    members.set(name, readValue(reader));
    if (taken(reader, '}')) return members;
    if (!taken(reader, ',')) throw new Refused();
  }
}

function readItems(reader: Reader): readonly Json[] {
  const items: Json[] = [];
  skipSpace(reader);
  if (taken(reader, ']')) return items;
  for (;;) {
    items.push(readValue(reader));
    if (taken(reader, ']')) return items;
    if (!taken(reader, ',')) throw new Refused();
  }
}

const escapes: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

function readString(reader: Reader): string {
  if (!taken(reader, '"')) throw new Refused();
  let text = '';
  for (;;) {
    const character = reader.text[reader.at];
    reader.at += 1;
    if (character === undefined || character < ' ') throw new Refused();
    if (character === '"') break;
    text += character === '\\' ? readEscape(reader) : character;
  }
  if (/\p{Surrogate}/u.test(text)) throw new Refused();
  return text;
}

function readEscape(reader: Reader): string {
  const letter = reader.text[reader.at] ?? '';
  reader.at += 1;
  if (letter !== 'u') {
    const plain = escapes.get(letter);
    if (plain === undefined) throw new Refused();
    return plain;
  }
  const digits = reader.text.slice(reader.at, reader.at + 4);
  if (!/^[0-9a-fA-F]{4}$/.test(digits)) throw new Refused();
  reader.at += 4;
  return String.fromCharCode(Number.parseInt(digits, 16));
}

function readWord(reader: Reader): Json {
  const word = /^(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)/.exec(
    reader.text.slice(reader.at),
  )?.[0];
  if (word === undefined) throw new Refused();
  reader.at += word.length;
  if (word === 'null') return null;
  if (word === 'true' || word === 'false') return word === 'true';
  const number = Number(word);
  if (!Number.isFinite(number)) throw new Refused();
  return number;
}

function skipSpace(reader: Reader): void {
  while (' \t\r\n'.includes(reader.text[reader.at] ?? 'x')) reader.at += 1;
}

function taken(reader: Reader, character: string): boolean {
  if (reader.text[reader.at] !== character) return false;
  reader.at += 1;
  return true;
}
