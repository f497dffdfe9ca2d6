/** Reads YAML 1.2 into a tree with places: the core schema, one document, no anchors, aliases, tags or directives. */
import {
  Composer,
  isAlias,
  isCollection,
  isMap,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  Parser,
  type CST,
  type ParsedNode,
} from 'yaml';
import { substitute, type PlaceholderSources } from './placeholders.js';
import { isSecretVariable, nameOf, type Report } from './report.js';
import { explainYaml } from './yaml-errors.js';
import type { Path, Position, SourceEntry, SourceNode } from './source-tree.js';

/** Bytes: a config of thousands of routes is smaller, and a wrong path may lead to something endless. */
export const maxConfigBytes = 1_048_576;

/**
 * Collections in collections: a config has six. The library's own recursion takes the process down at some thousands.
 */
const maxDepth = 32;

interface Reading {
  readonly report: Report;
  readonly sources: PlaceholderSources;
  readonly positionOf: (offset: number) => Position;
}

/** Reads a config's text; `null` where it is no YAML, or empty, which the report then says. */
export function readYaml(text: string, sources: PlaceholderSources, report: Report): SourceNode | null {
  const first: Position = { line: 1, column: 1 };
  if (Buffer.byteLength(text) > maxConfigBytes) {
    report.errorAt(first, 'the file is too large', 'at most 1MiB');
    return null;
  }
  const counter = new LineCounter();
  const positionOf = (offset: number): Position => {
    const { line, col } = counter.linePos(offset);
    return line === 0 ? first : { line, column: col };
  };
  const tokens = parseTokens(text, counter, positionOf, report);
  if (tokens === null) return null;
  const documents = [
    // A tag is refused below in any case: what the library makes of its own (`!!binary`) depends on where it runs.
    ...new Composer({
      version: '1.2',
      schema: 'core',
      resolveKnownTags: false,
      uniqueKeys: false,
      logLevel: 'silent',
    }).compose(tokens, true, text.length),
  ];
  const [document, second] = documents;
  if (document === undefined) return null;
  const fault = explainYaml({ text, tokens, errors: document.errors });
  if (fault !== null) {
    report.errorAt(positionOf(fault.offset), `the YAML is malformed: ${fault.message}`, fault.allowed);
    return null;
  }
  if (second !== undefined) {
    report.errorAt(positionOf(second.range[0]), 'the file has a second document', 'one document');
    return null;
  }
  const root: ParsedNode | null = document.contents;
  if (root === null || (isScalar(root) && root.value === null)) {
    report.errorAt(first, 'the file is empty', 'a config');
    return null;
  }
  return readNode(root, [], { report, sources, positionOf }, first);
}

/** Splits the text into documents without composing them, and gives up on deep nesting. */
function parseTokens(
  text: string,
  counter: LineCounter,
  positionOf: (offset: number) => Position,
  report: Report,
): readonly CST.Token[] | null {
  const parser = new Parser(counter.addNewLine);
  counter.addNewLine(0);
  const tokens: CST.Token[] = [];
  for (const lexeme of new Lexer().lex(text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > maxDepth) {
      report.errorAt(positionOf(parser.offset), 'the file is nested too deeply', `at most ${maxDepth} levels`);
      return null;
    }
  }
  for (const token of parser.end()) tokens.push(token);
  const directive = tokens.find((token) => token.type === 'directive');
  if (directive !== undefined) {
    // `%YAML 1.1` would turn `no` into false and `<<` into a merge.
    report.errorAt(positionOf(directive.offset), 'the file has a directive', 'YAML 1.2 without directives');
    return null;
  }
  return tokens;
}

function readNode(node: unknown, path: Path, reading: Reading, fallback: Position): SourceNode {
  const position = positionIn(node, reading, fallback);
  refuseExtras(node, path, position, reading.report);
  if (isMap(node)) return { kind: 'map', position, entries: readEntries(node.items, path, reading, position) };
  if (isSeq(node)) {
    const items = node.items.map((item, index) => readNode(item, [...path, index], reading, position));
    return { kind: 'list', position, items };
  }
  return readScalar(node, path, position, reading);
}

/**
 * Says so of the key `__proto__`, and whether it is that. In a map of free names the schema's library passes over it:
 * what is asked for there would be asked for by nobody.
 */
export function refusePrototype(key: string, path: Path, position: Position, report: Report): boolean {
  if (key !== '__proto__') return false;
  report.errorAt(position, `${nameOf(path)} has the key ${JSON.stringify(key)}, which is never read`, 'another key');
  return true;
}

function readEntries(
  items: readonly unknown[],
  path: Path,
  reading: Reading,
  fallback: Position,
): ReadonlyMap<string, SourceEntry> {
  const { report } = reading;
  const entries = new Map<string, SourceEntry>();
  for (const item of items) {
    if (!isPair(item)) continue;
    const position = positionIn(item.key, reading, fallback);
    refuseExtras(item.key, path, position, report);
    const key = isScalar(item.key) ? item.key.value : null;
    if (typeof key !== 'string') {
      report.errorAt(
        position,
        `a key in ${nameOf(path)} is no text`,
        isCollection(item.key)
          ? 'quotes around a text that begins with { or ['
          : 'keys in quotes where they read as numbers or the like',
      );
      continue;
    }
    if (refusePrototype(key, path, position, report)) continue;
    const node = readNode(item.value, [...path, key], reading, position);
    const first = entries.get(key);
    if (first === undefined) entries.set(key, { position, node });
    else {
      const message = `the key ${JSON.stringify(key)} in ${nameOf(path)} is given twice: first in line ${first.position.line}`;
      report.errorAt(position, message, 'each key once');
    }
  }
  return entries;
}

function readScalar(node: unknown, path: Path, position: Position, { report, sources }: Reading): SourceNode {
  const value = isScalar(node) ? node.value : null;
  const scalar = { kind: 'scalar', position, written: null, coercible: false, faulty: isAlias(node) } as const;
  if (typeof value !== 'string') {
    const read = typeof value === 'number' || typeof value === 'boolean' ? value : null;
    return { ...scalar, value: read, isEmpty: read === null && !isWritten(node) };
  }
  const key = path.findLast((step) => typeof step === 'string') ?? '';
  const replaced = substitute(value, sources, (variable) => isSecretVariable(key, variable));
  if (!replaced.ok) {
    for (const { message, allowed } of replaced.error) report.errorAt(position, `${nameOf(path)}: ${message}`, allowed);
    return { ...scalar, value: null, written: value, faulty: true };
  }
  const { text, substituted, whole } = replaced.value;
  return { ...scalar, value: text, written: substituted ? value : null, coercible: whole };
}

function isWritten(node: unknown): boolean {
  return isAlias(node) || (isScalar(node) && (node.source ?? '') !== '');
}

/** Anchors, aliases and tags change what a text means from afar; a config is read where it stands. */
function refuseExtras(node: unknown, path: Path, position: Position, report: Report): void {
  if (isAlias(node)) {
    report.errorAt(position, `${nameOf(path)} has an alias`, 'the value itself');
    return;
  }
  if (!isScalar(node) && !isCollection(node)) return;
  if (node.anchor !== undefined) report.errorAt(position, `${nameOf(path)} has an anchor`, 'the value without it');
  if (node.tag !== undefined) report.errorAt(position, `${nameOf(path)} has a tag`, 'the value without it');
}

function positionIn(node: unknown, { positionOf }: Reading, fallback: Position): Position {
  if (!isScalar(node) && !isCollection(node) && !isAlias(node)) return fallback;
  return node.range === null || node.range === undefined ? fallback : positionOf(node.range[0]);
}
