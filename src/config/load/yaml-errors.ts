/** Says in words what is wrong with YAML that cannot be read, and where it begins to be. */
import type { CST, ErrorCode } from 'yaml';

/** The first cause; what follows from it is not told. */
interface YamlFault {
  readonly offset: number;
  /** Never a piece of the file: it may be of a secret. */
  readonly message: string;
  readonly allowed: string;
}

/** As the library tells it. */
interface YamlError {
  readonly code: ErrorCode;
  readonly message: string;
  /** From the first character to that after the last. */
  readonly pos: readonly [number, number];
}

type Explain = (error: YamlError, file: BrokenFile) => YamlFault | null;

interface BrokenFile {
  readonly text: string;
  readonly tokens: readonly CST.Token[];
  readonly errors: readonly YamlError[];
}

const sameIndentation = 'the same indentation for all keys of a map';
const betweenValues = 'a comma between two values, or between two keys with theirs';
const inBrackets = 'inside {…} and […], quotes around texts with { } [ ] or a comma in them';

/**
 * By the code of the library; its messages quote the file, and say what its parser wants rather than what the writer
 * did.
 */
const explanations: Readonly<Partial<Record<ErrorCode, Explain>>> = {
  TAB_AS_INDENT: fixed('a tab indents the line', 'spaces'),
  BAD_ALIAS: fixed('* and & begin an alias and an anchor', 'quotes around a text that begins so, such as "*"'),
  BAD_SCALAR_START: fixed('a text may not begin with this character', 'quotes around the text'),
  TAG_RESOLVE_FAILED: fixed('! begins a tag', 'the value without it; quotes around a text that begins so'),
  BAD_DQ_ESCAPE: fixed('there is no such escape in double quotes', '\\\\ for a backslash, or single quotes'),
  BAD_INDENT: (error, file) =>
    unclosedBracket(error, file) ??
    fault(error.pos[0], 'the line is indented otherwise than the keys before it', sameIndentation),
  MISSING_CHAR: (error, file) => unclosedQuote(file) ?? missingMark(error, file),
  BLOCK_AS_IMPLICIT_KEY: (error, file) =>
    tooFarIn(error, file) ??
    fault(
      error.pos[0],
      'a line has two keys',
      'quotes around a text with ": " in it, or the inner key on a line of its own',
    ),
  MULTILINE_IMPLICIT_KEY: fixed('a key has no colon', '`key: value`, with a space after the colon'),
  UNEXPECTED_TOKEN: (error, { text }) => unexpected(error.pos[0], text),
};

/** The first of the errors that were found, explained. */
export function explainYaml(file: BrokenFile): YamlFault | null {
  const [first] = file.errors.toSorted((a, b) => a.pos[0] - b.pos[0]);
  if (first === undefined) return null;
  const explained = missingComma(first, file) ?? explanations[first.code]?.(first, file);
  return explained ?? fault(first.pos[0], 'here it cannot be read', 'keys and values as in config.example.yaml');
}

function fixed(message: string, allowed: string): Explain {
  return ({ pos: [offset] }) => fault(offset, message, allowed);
}

function fault(offset: number, message: string, allowed: string): YamlFault {
  return { offset, message, allowed };
}

/** Without the comma two entries of a line look like one whose value is a block. */
function missingComma(first: YamlError, { errors, text }: BrokenFile): YamlFault | null {
  const block = errors.find(({ code, pos }) => code === 'BLOCK_IN_FLOW' && pos[0] <= first.pos[0]);
  if (block === undefined) return null;
  const second = errors.find(
    ({ code, pos }) => code === 'UNEXPECTED_TOKEN' && pos[0] > block.pos[0] && pos[0] < block.pos[1],
  );
  return fault(second?.pos[0] ?? lastLineOf(first, text), 'a comma is missing before this', betweenValues);
}

/** The reader notices only where the next key stands; the writer looks for the bracket. */
function unclosedBracket({ pos: [noticed] }: YamlError, { tokens }: BrokenFile): YamlFault | null {
  const open = [...walk(tokens)].findLast(
    (token) => token.type === 'flow-collection' && token.start.offset < noticed && !isClosed(token),
  );
  if (open?.type !== 'flow-collection') return null;
  const [mark, closing] = open.start.type === 'flow-map-start' ? ['{', '}'] : ['[', ']'];
  return fault(
    open.start.offset,
    `a ${mark} is not closed`,
    `${closing} at the end, and lines between that are indented further than the key`,
  );
}

function isClosed({ start, end }: CST.FlowCollection): boolean {
  return end.some(({ type }) => type === (start.type === 'flow-map-start' ? 'flow-map-end' : 'flow-seq-end'));
}

function unclosedQuote({ tokens }: BrokenFile): YamlFault | null {
  for (const token of walk(tokens)) {
    if (token.type !== 'double-quoted-scalar' && token.type !== 'single-quoted-scalar') continue;
    const mark = token.source.charAt(0);
    if (token.source.length > 1 && token.source.endsWith(mark)) continue;
    return fault(token.offset, 'a quote is not closed', `${mark} at the end of the text`);
  }
  return null;
}

function missingMark({ pos: [offset], message }: YamlError, { text }: BrokenFile): YamlFault {
  if (/[{[]/.test(text.charAt(offset))) return unexpected(offset, text);
  if (message.startsWith('Missing ,')) return fault(offset, 'a comma is missing before this', betweenValues);
  return fault(
    offset,
    'the line is neither an item of the list nor part of the one before',
    '- in front of an item; further in for a key of the item before',
  );
}

/** A text that goes on in a line further in, where a key was meant. */
function tooFarIn({ pos: [offset] }: YamlError, { errors, text }: BrokenFile): YamlFault | null {
  const sameText = errors.find(({ code, pos }) => code === 'MULTILINE_IMPLICIT_KEY' && pos[0] === offset);
  if (sameText === undefined) return null;
  return fault(
    lastLineOf(sameText, text),
    'the line is indented further than the key before it, whose value it would go on',
    sameIndentation,
  );
}

/** Where the text of the last line begins that an error is about. */
function lastLineOf({ pos: [, end] }: YamlError, text: string): number {
  const line = text.lastIndexOf('\n', end - 1) + 1;
  return line + (/^ */.exec(text.slice(line))?.[0].length ?? 0);
}

function unexpected(offset: number, text: string): YamlFault {
  const character = text.charAt(offset);
  if (character === '{' || character === '[') return fault(offset, `a ${character} stands within a text`, inBrackets);
  if (character === '}' || character === ']') return fault(offset, `a ${character} closes nothing`, inBrackets);
  if (character === ',') return fault(offset, 'a comma follows nothing', 'one comma between values');
  return fault(
    offset,
    'something follows the end of the value',
    'one value; quotes around the whole of a text that has quotes in it',
  );
}

/** Every token of a document, those within others after them. */
function* walk(tokens: readonly (CST.Token | null | undefined)[]): Generator<CST.Token> {
  for (const token of tokens) {
    if (token === null || token === undefined) continue;
    yield token;
    if (token.type === 'document') yield* walk([token.value]);
    else if ('items' in token) for (const { key, value } of token.items) yield* walk([key, value]);
  }
}
