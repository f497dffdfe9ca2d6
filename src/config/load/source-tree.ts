/** A config file as a tree of values that know where they stand. */

/** A place in a text: both from 1, the column in UTF-16 units. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Names and list indexes that lead to a value. */
export type Path = readonly (string | number)[];

/** One value of the file. */
export type SourceNode = SourceMap | SourceList | SourceScalar;

export interface SourceMap {
  readonly kind: 'map';
  readonly position: Position;
  readonly entries: ReadonlyMap<string, SourceEntry>;
}

export interface SourceEntry {
  /** Where the key stands. */
  readonly position: Position;
  readonly node: SourceNode;
}

interface SourceList {
  readonly kind: 'list';
  readonly position: Position;
  readonly items: readonly SourceNode[];
}

export interface SourceScalar {
  readonly kind: 'scalar';
  readonly position: Position;
  readonly value: string | number | boolean | null;
  /** As written in the file, where placeholders stand in it: what may be shown instead of the value. */
  readonly written: string | null;
  /** Whether the whole scalar is one placeholder: its text is then read as what the key asks for. */
  readonly coercible: boolean;
  /** Whether the value could not be read, which was said: nothing more is said of it. */
  readonly faulty: boolean;
  /** Whether nothing stands there, so that nobody wrote the null that it counts as. */
  readonly isEmpty?: boolean;
}

/** What a path leads to, or as far as it goes. */
interface Location {
  /** The value, or `null` where the path ends before it. */
  readonly node: SourceNode | null;
  /** The key or the item's start: where a reader looks first. */
  readonly keyPosition: Position;
  readonly position: Position;
}

const start: Position = { line: 1, column: 1 };

/** Finds a value, or the innermost one that ought to hold it. */
export function locate(root: SourceNode | null, path: Path): Location {
  if (root === null) return { node: null, keyPosition: start, position: start };
  let node = root;
  let keyPosition = root.position;
  for (const step of path) {
    const entry: SourceEntry | null = childOf(node, step);
    if (entry === null) return { node: null, keyPosition, position: keyPosition };
    node = entry.node;
    keyPosition = entry.position;
  }
  return { node, keyPosition, position: node.position };
}

/** The plain value that the schema reads. */
export function valueOf(node: SourceNode): unknown {
  if (node.kind === 'scalar') return node.value;
  if (node.kind === 'list') return node.items.map(valueOf);
  // Without a prototype, so that no name in a file means more than another.
  const value = Object.create(null) as Record<string, unknown>;
  for (const [key, entry] of node.entries) value[key] = valueOf(entry.node);
  return value;
}

/** The tree with one value replaced, or left out. */
export function replaceAt(node: SourceNode, path: Path, replacement: SourceNode | null): SourceNode {
  const [step, ...rest] = path;
  if (step === undefined) return replacement ?? node;
  const child = childOf(node, step);
  if (child === null) return node;
  const isLeftOut = rest.length === 0 && replacement === null;
  if (node.kind === 'map' && typeof step === 'string') {
    const entries = new Map(node.entries);
    if (isLeftOut) entries.delete(step);
    else entries.set(step, { ...child, node: replaceAt(child.node, rest, replacement) });
    return { ...node, entries };
  }
  if (node.kind === 'list' && typeof step === 'number' && !isLeftOut) {
    return { ...node, items: node.items.with(step, replaceAt(child.node, rest, replacement)) };
  }
  return node;
}

/** Whether a value, or one that holds it, could not be read. */
export function isFaulty(root: SourceNode, path: Path): boolean {
  let node: SourceNode | undefined = root;
  for (const step of path) {
    if (node?.kind === 'scalar') break;
    node = node === undefined ? undefined : childOf(node, step)?.node;
  }
  return node?.kind === 'scalar' && node.faulty;
}

/** How a path is written in a problem: `routes[2].path`. */
export function pathText(path: Path): string {
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    const name = /^[\w-]+$/.test(step) ? step : JSON.stringify(step);
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

function childOf(node: SourceNode, step: string | number): SourceEntry | null {
  if (node.kind === 'map' && typeof step === 'string') return node.entries.get(step) ?? null;
  if (node.kind === 'list' && typeof step === 'number') {
    const item = node.items[step];
    return item === undefined ? null : { position: item.position, node: item };
  }
  return null;
}

/** Tells whether a value of a file is a map. */
export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
