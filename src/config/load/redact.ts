/** Finds what of a config's text nobody is shown: values that may be secrets, wherever they were written. */
import { CST, Lexer } from 'yaml';

/** From the first character to that after the last. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** What stands in the place of something concealed. */
export const mask = '***';

/** What is a secret wherever it stands; the group is concealed. */
const secretShapes: readonly RegExp[] = [
  // The user and password of a URL.
  /:\/\/([^/?#\s"']+)@/dg,
  // A JWT, all of it or its beginning.
  /\b(eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,2})/dg,
  /-----BEGIN [A-Z ]+-----(.+)/dgs,
];

/** What a secret looks like in a text that is none as a whole; the group is concealed. */
const secretForms: readonly RegExp[] = [
  ...secretShapes,
  // A name that says so and its value, as in a query; behind a blank also with a colon, as in a line without its own
  // key.
  /(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|credential)s?=([^\s"'&]+)/dgi,
  /\s(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[-_]?key|credential)s?["']?\s*:\s*(\S+)/dgi,
  /\b(?:bearer|basic)\s+([^\s"',}\]]+)/dgi,
];

/** A key without a blank behind its colon, which YAML takes for a text. */
const keyInText = /^["']?[A-Za-z_-]+["']?:(\S[^]*)$/d;

/** A text without what has the form of a secret. */
export function withoutSecrets(text: string): string {
  const ranges = secretsIn(text).toSorted((a, b) => b.start - a.start);
  return ranges.reduce((rest, { start, end }) => `${rest.slice(0, start)}${mask}${rest.slice(end)}`, text);
}

function secretsIn(text: string, forms = secretForms): readonly Range[] {
  return forms.flatMap((form) => [...text.matchAll(form)].flatMap(({ indices }) => rangeOf(indices?.[1])));
}

/**
 * Ranges of a config's text that no excerpt shows: the values of keys for which `mayShow` is false. A misspelt
 * `api_key` holds a secret just as well as the right one. Lines after the first of a text are concealed whosever they
 * are: where a quote or a colon is missing, they may be anything.
 */
export function concealedIn(text: string, mayShow: (key: string, value: string) => boolean): readonly Range[] {
  const ranges: Range[] = [];
  for (const { kind, source, start, owner } of ownedLexemes(text)) {
    const end = start + source.length;
    const conceal = (from: number): void => {
      if (from < source.length) ranges.push({ start: start + from, end });
    };
    if (kind === 'key') {
      // Lines without a colon, which were meant for keys and their values: what follows the first word is a value.
      const lastLine = source.lastIndexOf('\n') + 1;
      if (lastLine > 0) ranges.push({ start: start + (/[\s:]/.exec(source)?.index ?? 0), end: start + lastLine });
    }
    if (kind === 'comment' || kind === 'text') {
      // One by one: more than a call takes arguments may be in one text.
      for (const range of secretsIn(source)) ranges.push({ start: start + range.start, end: start + range.end });
    }
    if (kind !== 'text') continue;
    const [inText] = isFirstInLine(text, start) ? rangeOf(keyInText.exec(source)?.indices?.[1]) : [];
    if (!mayShow(owner, source)) conceal(0);
    else if (inText !== undefined) conceal(inText.start);
    else if (source.includes('\n')) conceal(source.indexOf('\n') + 1);
  }
  return ranges;
}

/** Whether nothing but blanks stands before it: looked at from there back, since a line may be a megabyte long. */
function isFirstInLine(text: string, start: number): boolean {
  let at = start - 1;
  while (at >= 0 && text[at] !== '\n' && /\s/.test(text.charAt(at))) at -= 1;
  return at < 0 || text[at] === '\n';
}

/** A key and its value, as they are left in a comment. */
const pair = /([\w-]+)\s*:\s+(\S+)/dg;

const onePlaceholder = /^(["']?)\$\{(?:env|file):[^}]+\}\1$/;

/**
 * Ranges of a config's text where a secret itself stands, to the eye: values of keys for which `mayShow` is false, but
 * for placeholders, in comments too; and what has the form of a secret. A comment may have words such as "token: who".
 */
export function secretsWritten(text: string, mayShow: (key: string, value: string) => boolean): readonly Range[] {
  const isHeld = (key: string, value: string): boolean =>
    !mayShow(key, value) && !onePlaceholder.test(value) && !/^(?:null|~)$/.test(value);
  return ownedLexemes(text).flatMap(({ kind, source, start, owner }) => {
    const moved = ({ start: from, end: to }: Range): Range => ({ start: start + from, end: start + to });
    if (kind === 'comment') {
      const pairs = [...source.matchAll(pair)].filter(([, key = '', value = '']) => isHeld(key, value));
      return [...pairs.flatMap(({ indices }) => rangeOf(indices?.[2])), ...secretsIn(source, secretShapes)].map(moved);
    }
    if (kind !== 'text') return [];
    return isHeld(owner, source) ? [moved({ start: 0, end: source.length })] : secretsIn(source).map(moved);
  });
}

/** Each lexeme with the key whose value it is, or is in; of a key that is itself. */
function ownedLexemes(text: string): readonly (Lexeme & { readonly owner: string })[] {
  const owners: string[] = [];
  let owner = '';
  return lexemes(text).map((lexeme) => {
    if (lexeme.kind === 'open') owners.push(owner);
    if (lexeme.kind === 'close') owner = owners.pop() ?? owner;
    if (lexeme.kind === 'key') owner = keyName(lexeme.source);
    return { ...lexeme, owner };
  });
}

interface Lexeme {
  readonly kind: 'open' | 'close' | 'key' | 'text' | 'comment';
  readonly source: string;
  readonly start: number;
}

/** Marks of the lexer that stand for nothing in the text; the last one announces a text. */
const marks: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001f']);

const kinds: Readonly<Partial<Record<string, Lexeme['kind']>>> = {
  'double-quoted-scalar': 'text',
  'single-quoted-scalar': 'text',
  comment: 'comment',
  'flow-map-start': 'open',
  'flow-seq-start': 'open',
  'flow-map-end': 'close',
  'flow-seq-end': 'close',
};

/** Texts, keys, comments and brackets, as YAML's own lexer splits the file: it reads broken files too. */
function lexemes(text: string): readonly Lexeme[] {
  const found: Lexeme[] = [];
  let start = 0;
  let isScalar = false;
  /** Whether a text that comes next is a key, since `?` says so. */
  let isExplicit = false;
  /** Whether a colon that comes next makes a key of the last text: it stands in the same line. */
  let mayBeKey = false;
  for (const source of new Lexer().lex(text)) {
    if (marks.has(source)) {
      isScalar = source === '\u001f';
      continue;
    }
    const type = isScalar ? 'text' : (CST.tokenType(source) ?? '');
    const kind = isScalar ? 'text' : kinds[type];
    const last = found.at(-1);
    if (kind === 'text') found.push({ kind: isExplicit ? 'key' : 'text', source, start });
    else if (kind !== undefined) found.push({ kind, source, start });
    else if (type === 'map-value-ind' && mayBeKey && last?.kind === 'text') {
      found.splice(-1, 1, { ...last, kind: 'key' });
    }
    if (type !== 'space') mayBeKey = kind === 'text';
    isExplicit = type === 'explicit-key-ind' || (isExplicit && type === 'space');
    isScalar = false;
    start += source.length;
  }
  return found;
}

/** A text that ran on over several lines until a colon came: its last line is what was meant for a key. */
function keyName(source: string): string {
  const line = source.slice(source.lastIndexOf('\n') + 1).trim();
  return line.replace(/^(["'])(.*)\1$/, '$2');
}

function rangeOf(indices: readonly [number, number] | undefined): readonly Range[] {
  return indices === undefined ? [] : [{ start: indices[0], end: indices[1] }];
}
