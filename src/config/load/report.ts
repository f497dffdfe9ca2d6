import { escapeControls } from '../../lib/text.js';
import { withoutSecrets } from './redact.js';
import { locate, type Path, pathText, type Position, type SourceNode } from './source-tree.js';

/** Collects the problems of one config. */
export interface Report {
  /** Says what is wrong at a value; where the value is missing, at what should hold it. */
  readonly error: (path: Path, message: string, allowed: string) => void;
  /** Says what is doubtful. */
  readonly warning: (path: Path, message: string, allowed: string) => void;
  /** Says what is right as it is written, and worth a look. */
  readonly note: (path: Path, message: string) => void;
  /** Says what is wrong at a key rather than at its value. */
  readonly keyError: (path: Path, message: string, allowed: string) => void;
  readonly errorAt: (position: Position, message: string, allowed: string) => void;
  /** A value as a problem may show it: quoted and short, and never what a placeholder stands for. */
  readonly show: (path: Path) => string;
  /** Whether a value may be shown: no placeholder stands in it. */
  readonly mayShow: (path: Path) => boolean;
  /** Whether something was said to be wrong at a value. */
  readonly hasError: (path: Path) => boolean;
  /** The line of a value, for problems that concern two places. */
  readonly lineOf: (path: Path) => number;
  readonly problems: () => readonly Problem[];
  readonly notes: () => readonly Note[];
}

/** Longer values are cut: a problem is read at a glance. */
const maxShownLength = 80;

/** More than this is one mistake many times over; the last problem says how many were left out. */
const maxProblems = 1_000;

/** Starts a report on a file; `root` may be set later, once it has been read. */
export function createReport(file: string, root: () => SourceNode | null): Report {
  const problems: Problem[] = [];
  const notes: Note[] = [];
  const wrong = new Set<string>();
  let omitted = 0;
  const add = (severity: Problem['severity'], { line, column }: Position, message: string, allowed: string): void => {
    if (severity === 'error') wrong.add(`${line}:${column}`);
    if (problems.length < maxProblems) problems.push({ severity, file, line, column, message, allowed });
    else omitted += 1;
  };
  return {
    error: (path, message, allowed) => add('error', locate(root(), path).position, message, allowed),
    warning: (path, message, allowed) => add('warning', locate(root(), path).position, message, allowed),
    note: (path, message) => notes.push({ ...locate(root(), path).position, message }),
    keyError: (path, message, allowed) => add('error', locate(root(), path).keyPosition, message, allowed),
    errorAt: (position, message, allowed) => add('error', position, message, allowed),
    show: (path) => {
      const { node } = locate(root(), path);
      return node !== null && isHidden(path, node) ? 'something else' : showNode(node);
    },
    mayShow: (path) => {
      const { node } = locate(root(), path);
      return node?.kind !== 'scalar' || node.written === null;
    },
    hasError: (path) => {
      const { line, column } = locate(root(), path).position;
      return wrong.has(`${line}:${column}`);
    },
    lineOf: (path) => locate(root(), path).position.line,
    problems: () => {
      const sorted = problems.toSorted(byPlace);
      const last = sorted.at(-1);
      if (omitted === 0 || last === undefined) return sorted;
      return [
        ...sorted,
        {
          ...last,
          severity: 'error',
          message: `${omitted} more problems are not listed`,
          allowed: 'a config without those that are',
        },
      ];
    },
    notes: () => notes.toSorted(byPlace),
  };
}

function byPlace(a: Position, b: Position): number {
  return a.line - b.line || a.column - b.column;
}

/** Keys whose values are secrets. */
export const secretKeys: ReadonlySet<string> = new Set(['api_key']);

/** Keys in whose place the secret itself may stand, by mistake: only what looks like a path is shown there. */
export const secretFileKeys: ReadonlySet<string> = new Set([
  'password_file',
  'key_file',
  'token_file',
  'nonce_key_file',
  'client_secret_file',
  'secret_file',
  'private_key_file',
  'curl_config',
  'headers_file',
]);

/**
 * Whether a variable that somebody means at a key would hold a secret: then no problem proposes the environment for it.
 * A key of a path may take its path from there, whatever the variable's name.
 */
export function isSecretVariable(key: string, variable: string): boolean {
  return (
    secretKeys.has(key) ||
    (!key.endsWith('_file') && /pass(?:word|wd|phrase)?|secret|token|api_?key|credential/i.test(variable))
  );
}

/** Whether what is written at a key is no secret. */
export function mayShowValue(key: string, value: string): boolean {
  if (secretKeys.has(key)) return false;
  return !secretFileKeys.has(key) || /^["']?(?:[./]|\$\{)/.test(value);
}

function isHidden(path: Path, node: SourceNode): boolean {
  const key = path.findLast((step) => typeof step === 'string') ?? '';
  return node.kind === 'scalar' ? node.value !== null && !mayShowValue(key, String(node.value)) : secretKeys.has(key);
}

/** The name of a value in a problem: its path, or the file for the whole. */
export function nameOf(path: Path): string {
  return path.length === 0 ? 'the config' : pathText(path);
}

function showNode(node: SourceNode | null): string {
  if (node === null) return 'missing';
  if (node.kind === 'map') return node.entries.size === 0 ? 'an empty map' : 'a map';
  if (node.kind === 'list') return node.items.length === 0 ? 'an empty list' : 'a list';
  if (node.written !== null) return `what ${shorten(node.written)} stands for`;
  return node.value === null
    ? 'empty'
    : shorten(typeof node.value === 'string' ? JSON.stringify(withoutSecrets(node.value)) : String(node.value));
}

function shorten(text: string): string {
  const characters = Array.from(text);
  return characters.length <= maxShownLength ? text : `${characters.slice(0, maxShownLength).join('')}…`;
}

/** What is wrong with a config, and where. */

/** One thing that is wrong (the config is refused) or doubtful (it is not). */
export interface Problem {
  readonly severity: 'error' | 'warning';
  /** The config's name, as the caller of the inspection gave it. */
  readonly file: string;
  /** From 1; where a thing is missing, the place of what should hold it. */
  readonly line: number;
  /** From 1, in UTF-16 units. */
  readonly column: number;
  /** What is wrong, with what was found; never a value that came from a placeholder. */
  readonly message: string;
  /** What would be right. */
  readonly allowed: string;
}

/** Something that is right as it is written, and that whoever reviews the config wants to see. */
export type Note = Pick<Problem, 'line' | 'column' | 'message'>;

/** Writes a problem as one line: `FILE:LINE:COLUMN: error|warning: what; allowed: …`. */
export function formatProblem(problem: Problem): string {
  const { file, line, column, severity, message, allowed } = problem;
  return escapeControls(`${file}:${line}:${column}: ${severity}: ${message}; allowed: ${allowed}`);
}

/** How many errors and warnings there are, in words; empty where there is none. */
export function countProblems(problems: readonly Problem[]): string {
  const errors = problems.filter(({ severity }) => severity === 'error').length;
  return [...counted(errors, 'error'), ...counted(problems.length - errors, 'warning')].join(', ');
}

function counted(count: number, what: string): readonly string[] {
  return count === 0 ? [] : [`${count} ${what}${count === 1 ? '' : 's'}`];
}
