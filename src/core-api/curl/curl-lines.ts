/** The lines of a curl config file, as the curl command takes them apart. */
import { accept, refuse, type Result } from '../../lib/result.js';

/** One line that is no comment. */
export interface CurlLine {
  /** From 1. */
  readonly line: number;
  /** As it stands, with its dashes. It may be anything, a misplaced secret too. */
  readonly option: string;
  /** What follows, without its quotes; `null` where there is nothing. */
  readonly value: string | null;
}

/** What is wrong with a line, without a word of it. */
export interface LineProblem {
  readonly line: number;
  readonly message: string;
}

/** What C calls a space. */
const space = /[ \t\v\f\r]/;

/** In front of these and nothing else the backslash stands for another character. */
const escapes: Readonly<Record<string, string>> = { t: '\t', n: '\n', r: '\r', v: '\v' };

/**
 * Takes the lines apart (curl's manual, `--config`): a comment begins with `#` (curl skips lines that begin with `/` or
 * `*` too); an option ends at a space, or without dashes at `=` or `:`; a value ends at a space or stands in double
 * quotes, with backslash escapes. Refuses what curl silently drops: more words behind an unquoted value, a quote that
 * does not end.
 */
export function readCurlLines(text: string): Result<readonly CurlLine[], LineProblem> {
  const lines: CurlLine[] = [];
  for (const [index, content] of text.split('\n').entries()) {
    const line = index + 1;
    // Curl reads a line up to its first NUL.
    if (content.includes('\0')) return refuse({ line, message: 'holds a NUL character' });
    const read = readLine(content);
    if (!read.ok) return refuse({ line, message: read.error });
    if (read.value !== null) lines.push({ line, ...read.value });
  }
  return accept(lines);
}

function readLine(content: string): Result<Omit<CurlLine, 'line'> | null, string> {
  const start = skip(content, 0, isSpace);
  if (start === content.length || '#/*'.includes(content.charAt(start))) return accept(null);
  // Behind a dashed option `=` and `:` are part of what they touch.
  const isSeparator = content.charAt(start) === '-' ? isSpace : isSpaceOrSign;
  const end = skip(content, start, (character) => !isSeparator(character));
  const option = content.slice(start, end);
  const valueStart = skip(content, end, isSeparator);
  const value =
    content.charAt(valueStart) === '"' ? readQuoted(content, valueStart + 1) : readPlain(content, valueStart);
  return value.ok ? accept({ option, value: value.value }) : value;
}

function readPlain(content: string, start: number): Result<string | null, string> {
  const end = skip(content, start, (character) => !isSpace(character));
  if (!isRestEmpty(content, end)) {
    return refuse('has a value with spaces that is not in double quotes: curl would use its first word only');
  }
  return accept(end === start ? null : content.slice(start, end));
}

function readQuoted(content: string, start: number): Result<string, string> {
  let value = '';
  for (let position = start; position < content.length; position += 1) {
    const character = content.charAt(position);
    if (character === '"') {
      return isRestEmpty(content, position + 1)
        ? accept(value)
        : refuse('goes on behind the closing quote: curl would drop the rest');
    }
    if (character !== '\\') {
      value += character;
      continue;
    }
    position += 1;
    const escaped = content.charAt(position);
    value += escapes[escaped] ?? escaped;
  }
  return refuse('has no closing quote');
}

/** Whether nothing but a comment follows. */
function isRestEmpty(content: string, position: number): boolean {
  const next = skip(content, position, isSpace);
  return next === content.length || content.charAt(next) === '#';
}

function skip(content: string, start: number, passes: (character: string) => boolean): number {
  let position = start;
  while (position < content.length && passes(content.charAt(position))) position += 1;
  return position;
}

function isSpace(character: string): boolean {
  return space.test(character);
}

function isSpaceOrSign(character: string): boolean {
  return character === '=' || character === ':' || space.test(character);
}
