/**
 * Where in a YAML text somebody writes: under which keys, and what stands beside it. A parser says nothing of a text
 * that is half written; indentation and brackets do.
 */

/** An item of a list, whichever. */
export const anyItem = '[]';

export interface Place {
  /** Keys from the outside in; `anyItem` for an item of a list. */
  readonly path: readonly string[];
  /** Whether a colon stands before it: then it is a value, and no key. */
  readonly isValue: boolean;
  /** Where the word that is being written begins. */
  readonly from: number;
  /** Column at which the keys of this map begin; `null` between brackets. */
  readonly indent: number | null;
  /** Keys that the map has already. */
  readonly siblings: ReadonlySet<string>;
}

/** A key or an item that holds what is indented further. */
interface Level {
  readonly indent: number;
  readonly step: string;
}

/** A map or a list between brackets. */
interface Flow {
  readonly isMap: boolean;
  /** The key whose value is being written; `null` before the colon. */
  key: string | null;
  readonly keys: Set<string>;
}

const quoted = /^"(?:[^"\\]|\\.)*"|^'(?:[^']|'')*'/;
const keyPattern = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#&*!|>'"%@`{}[\],][^#{}[\],]*?)\s*:(?=\s|$)\s*/;
const blockScalar = /^[|>][-+0-9]*\s*(?:#.*)?$/;

/** `null` in a comment, a block of text, or between quotation marks that are open. */
export function placeAt(text: string, at: number): Place | null {
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  const reader = createReader();
  for (const line of text.slice(0, lineStart).split('\n').slice(0, -1)) reader.readLine(line);
  const place = reader.placeIn(text.slice(lineStart, at));
  if (place === null) return null;
  const { path, isValue, from, indent, siblings } = place;
  const below = indent === null ? [] : keysBelow(text.slice(at).split('\n').slice(1), indent);
  return { path, isValue, indent, from: lineStart + from, siblings: new Set([...siblings, ...below]) };
}

interface Reader {
  readonly readLine: (line: string) => void;
  /** Takes the line up to where the cursor is. */
  readonly placeIn: (line: string) => Place | null;
}

function createReader(): Reader {
  let levels: Level[] = [];
  /** Keys of the maps that are open, by their column. */
  const keys = new Map<number, Set<string>>();
  const flows: Flow[] = [];
  let textIndent: number | null = null;

  function leave(indent: number, isItem: boolean): void {
    levels = levels.filter(
      (level) => level.indent < indent || (level.indent === indent && isItem && level.step !== anyItem),
    );
    for (const column of keys.keys()) if (column > indent) keys.delete(column);
  }

  /** Goes past the dashes and the key that a line begins with. Returns where the rest begins, and the keys' column. */
  function enter(line: string): { readonly rest: number; readonly column: number; readonly hasKey: boolean } {
    let column = line.length - line.trimStart().length;
    let isItem = /^-(?:\s|$)/.test(line.slice(column));
    leave(column, isItem);
    while (isItem) {
      levels.push({ indent: column, step: anyItem });
      const dash = /^-\s*/.exec(line.slice(column))?.[0].length ?? 1;
      column += dash;
      for (const known of keys.keys()) if (known >= column) keys.delete(known);
      isItem = /^-(?:\s|$)/.test(line.slice(column));
    }
    const [whole = '', name = ''] = keyPattern.exec(line.slice(column)) ?? [];
    if (whole === '') return { rest: column, column, hasKey: false };
    const known = keys.get(column) ?? new Set();
    known.add(plain(name));
    keys.set(column, known);
    levels.push({ indent: column, step: plain(name) });
    return { rest: column + whole.length, column, hasKey: true };
  }

  /** Reads brackets. Returns where the last word begins; `null` in a comment or an open quotation. */
  function readFlow(text: string): number | null {
    let wordStart = text.length - text.trimStart().length;
    for (let at = 0; at < text.length;) {
      const char = text.charAt(at);
      const flow = flows.at(-1);
      if (char === '#' && (at === 0 || /\s/.test(text.charAt(at - 1)))) return null;
      const quotation = char === '"' || char === "'" ? (quoted.exec(text.slice(at))?.[0] ?? null) : '';
      if (quotation === null) return null;
      if (quotation !== '') {
        at += quotation.length;
        continue;
      }
      at += 1;
      if (char === '{' || char === '[') flows.push({ isMap: char === '{', key: null, keys: new Set() });
      else if (char === '}' || char === ']') flows.pop();
      else if (char === ',' && flow !== undefined) flow.key = null;
      else if (char === ':' && flow?.isMap === true && flow.key === null && /\s|^$/.test(text.charAt(at))) {
        flow.key = plain(text.slice(wordStart, at - 1).trim());
        flow.keys.add(flow.key);
      } else continue;
      wordStart = at + (/^\s*/.exec(text.slice(at))?.[0].length ?? 0);
    }
    return wordStart;
  }

  function readLine(line: string): void {
    const indent = line.length - line.trimStart().length;
    if (line.trim() === '' || (flows.length === 0 && line.trimStart().startsWith('#'))) return;
    if (textIndent !== null && indent > textIndent) return;
    textIndent = null;
    if (flows.length > 0) {
      readFlow(line);
      return;
    }
    const { rest } = enter(line);
    const value = line.slice(rest);
    if (blockScalar.test(value)) textIndent = indent;
    else if (/^[{[]/.test(value)) readFlow(value);
  }

  function placeIn(line: string): Place | null {
    const indent = line.length - line.trimStart().length;
    if (textIndent !== null && indent > textIndent) return null;
    if (flows.length > 0) return flowPlace(readFlow(line));
    if (/^\s*#/.test(line)) return null;
    const { rest, column, hasKey } = enter(line);
    const value = line.slice(rest);
    if (/^[{[]/.test(value)) {
      const word = readFlow(value);
      if (flows.length > 0) return flowPlace(word === null ? null : rest + word);
    }
    if (/\s#/.test(value) || /^["']/.test(value)) return null;
    const path = levels.map(({ step }) => step);
    const siblings = hasKey ? [] : (keys.get(column) ?? []);
    return { path, isValue: hasKey, from: rest, indent: column, siblings: new Set(siblings) };
  }

  function flowPlace(from: number | null): Place | null {
    const inner = flows.at(-1);
    if (from === null || inner === undefined) return null;
    const steps = flows.flatMap(({ isMap, key }) => (isMap ? (key === null ? [] : [key]) : [anyItem]));
    return {
      path: [...levels.map(({ step }) => step), ...steps],
      isValue: inner.key !== null,
      from,
      indent: null,
      siblings: inner.keys,
    };
  }

  return { readLine, placeIn };
}

/** Keys of the same map in the lines that follow. */
function keysBelow(lines: readonly string[], indent: number): readonly string[] {
  const found: string[] = [];
  for (const line of lines) {
    const column = line.length - line.trimStart().length;
    if (line.trim() === '' || line.trimStart().startsWith('#') || column > indent) continue;
    const name = keyPattern.exec(line.slice(column))?.[1];
    if (column < indent || name === undefined) break;
    found.push(plain(name));
  }
  return found;
}

function plain(name: string): string {
  return name.replace(/^(["'])(.*)\1$/, '$2');
}
