import { readCoreUrl } from '../core-url.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { findCurlOption, knownNames, longName, supportedOptions, type CurlOption } from './curl-options.js';
import { nearestName } from '../../lib/did-you-mean.js';

/** Where the Core is and what every call of it carries, as a curl config file says it. */
export interface CurlConfig {
  /** Without the path of a call and without a slash at its end; a base path stays. */
  readonly url: string;
  /** In the order of the file, each name once. The values are secret. */
  readonly headers: readonly CurlHeader[];
  /** As it stands: relative to the folder that the command runs in. `null` trusts the system's authorities. */
  readonly caFile: string | null;
  readonly connectTimeoutMs: number | null;
  /** For a whole call. */
  readonly timeoutMs: number | null;
}

/** Why a file cannot be used. Nothing of it is quoted but names of options and headers. */
type CurlConfigProblem = LineProblem;

/** What the lines so far said. */
interface Draft {
  url: string | null;
  readonly headers: CurlHeader[];
  caFile: string | null;
  connectTimeoutMs: number | null;
  timeoutMs: number | null;
  httpsOnlyLine: number | null;
}

/** An hour: nobody waits longer for one call. */
const maxSeconds = 3_600;

/**
 * Parses a curl config file, the one that `curl -K` reads. What curl would obey and a call here would not is refused,
 * so that the same file never means two calls.
 */
export function parseCurlConfig(text: string): Result<CurlConfig, CurlConfigProblem> {
  if (text.startsWith('\ufeff')) {
    return refuse({ line: 1, message: 'begins with a byte order mark, which curl takes for part of an option' });
  }
  const lines = readCurlLines(text);
  if (!lines.ok) return lines;
  const draft: Draft = {
    url: null,
    headers: [],
    caFile: null,
    connectTimeoutMs: null,
    timeoutMs: null,
    httpsOnlyLine: null,
  };
  for (const line of lines.value) {
    const problem = readOption(line, draft);
    if (problem !== null) return refuse({ line: line.line, message: problem });
  }
  const { url, headers, caFile, connectTimeoutMs, timeoutMs, httpsOnlyLine } = draft;
  if (url === null) return refuse({ line: 1, message: 'the file has no `url`: where the Core is' });
  if (httpsOnlyLine !== null && url.startsWith('http:')) {
    return refuse({ line: httpsOnlyLine, message: '`proto` allows https only, and the URL is http' });
  }
  return accept({ url, headers, caFile, connectTimeoutMs, timeoutMs });
}

/** Writes a problem as one line. */
export function formatCurlProblem(file: string, { line, message }: CurlConfigProblem): string {
  return `${file}:${String(line)}: ${message}`;
}

/** The value of a header in any case; `null` where there is none. */
export function findHeader(config: CurlConfig, name: string): string | null {
  return config.headers.find((header) => header.name.toLowerCase() === name.toLowerCase())?.value ?? null;
}

/** Reads one line into the draft; says what is wrong with it. */
function readOption({ line, option: written, value }: CurlLine, draft: Draft): string | null {
  const isLong = !written.startsWith('-') || written.startsWith('--');
  if (!isLong) return readShort(written.slice(1), value, line, draft);
  const name = written.replace(/^--/, '');
  const option = findCurlOption(name);
  return option === null ? unknown(name) : apply(option, value, line, draft);
}

/** One-letter options may stand together, and the value of the last one may touch it: `-sSH'name:value'`. */
function readShort(letters: string, value: string | null, line: number, draft: Draft): string | null {
  for (const [index, letter] of letters.split('').entries()) {
    const name = longName(letter);
    const option = name === null ? null : findCurlOption(name);
    if (option === null) return unknown(letter);
    const rest = letters.slice(index + 1);
    if (option.kind === 'ignored' && rest !== '') continue;
    if (rest !== '' && value !== null) {
      return `has more behind the value of \`${option.name}\`; put the value in double quotes`;
    }
    return apply(option, rest === '' ? value : rest, line, draft);
  }
  return 'is a dash without an option';
}

/** The name may be a secret that lost its option, so it is not shown; the name that was probably meant is. */
function unknown(name: string): string {
  const meant = nearestName(name, knownNames);
  return `is no option that is known here${meant === null ? '' : `; did you mean \`${meant}\``}; allowed: ${supportedOptions}`;
}

function apply(option: CurlOption, value: string | null, line: number, draft: Draft): string | null {
  if (option.kind === 'refused') return `\`${option.name}\` is not supported: ${option.why}`;
  if (option.kind === 'ignored') return value === null ? null : `\`${option.name}\` takes no value`;
  if (value === null || value === '') return `\`${option.name}\` has no value`;
  switch (option.kind) {
    case 'ignored-value':
      return null;
    case 'fixed':
      return option.values.includes(value)
        ? null
        : `\`${option.name}\` may be ${option.values.join(' or ')} only: ${option.why}`;
    case 'url':
      return applyUrl(value, draft);
    case 'header':
      return applyHeader(readCurlHeader(value), draft);
    case 'user-agent':
      return applyHeader(readCurlHeader(`User-Agent: ${value}`), draft);
    case 'cacert':
      return applyCaFile(value, draft);
    case 'seconds':
      return applySeconds(option.name, value, draft);
    case 'proto':
      return applyProtocols(value, line, draft);
  }
}

function applyUrl(value: string, draft: Draft): string | null {
  if (draft.url !== null) return 'is a second `url`: curl would make two calls';
  const url = readCoreUrl(value);
  if (!url.ok) return `\`url\` ${url.error}`;
  draft.url = url.value;
  return null;
}

function applyHeader(header: Result<CurlHeader | null, string>, draft: Draft): string | null {
  if (!header.ok) return header.error;
  if (header.value === null) return null;
  const name = header.value.name.toLowerCase();
  if (draft.headers.some((known) => known.name.toLowerCase() === name)) {
    return `sets the header ${header.value.name} a second time`;
  }
  draft.headers.push(header.value);
  return null;
}

function applyCaFile(value: string, draft: Draft): string | null {
  // The last one counts for curl. Two are a mistake that would decide whom to trust.
  if (draft.caFile !== null) return 'is a second `cacert`';
  draft.caFile = value;
  return null;
}

/** As curl: seconds with or without a fraction, and 0 is curl's default, which has no meaning here. */
function applySeconds(name: string, value: string, draft: Draft): string | null {
  const ms = /^\d{1,5}(\.\d{1,6})?$/.test(value) ? Math.round(Number(value) * 1_000) : 0;
  if (ms < 1 || ms > maxSeconds * 1_000) {
    return `\`${name}\` is no number of seconds above 0 and up to ${String(maxSeconds)}`;
  }
  if (name === 'connect-timeout') draft.connectTimeoutMs = ms;
  else draft.timeoutMs = ms;
  return null;
}

/** Only what a call of the Core can use: both, or https alone. */
function applyProtocols(value: string, line: number, draft: Draft): string | null {
  if (value === '=https') draft.httpsOnlyLine = line;
  else if (value !== '=http,https' && value !== '=https,http') return '`proto` may be =https or =http,https only';
  return null;
}

/** A header of every call. */
interface CurlHeader {
  readonly name: string;
  /** Secret: it is never shown. */
  readonly value: string;
}

/** RFC 9110 §5.6.2 `token`, of a length that a name may have. */
const fieldName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;
const fieldValue = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const maxValueLength = 8_192;

/** They belong to the connection or to the body, which are made here. */
const ours = new Set([
  'host',
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authorization',
  'te',
  'trailer',
  'upgrade',
  'expect',
  'accept-encoding',
  'range',
]);

/** Curl leaves them out where the file gives them no value. */
const removable = new Set(['accept', 'expect', 'user-agent', 'content-type']);

/** Bodies are JSON in UTF-8, which is what curl has to be told. */
const jsonType = /^application\/json(?:\s*;\s*charset="?utf-8"?)?$/i;

/**
 * Reads what follows `header`: `NAME: VALUE`. `null` is one that says what holds here anyway. Refuses, without showing
 * the value, what curl would read in another way: `@FILE`, `NAME:` and `NAME;`.
 */
function readCurlHeader(text: string): Result<CurlHeader | null, string> {
  if (text.startsWith('@')) return refuse('`header` names another file; every header has to stand in this one');
  const colon = text.indexOf(':');
  const name = colon < 0 ? text.replace(/;$/, '') : text.slice(0, colon);
  if (!fieldName.test(name)) return refuse('`header` is not NAME: VALUE');
  // Without a colon what stands there may be the value.
  if (colon < 0) {
    return refuse(
      text.endsWith(';') ? '`header` sends an empty value' : '`header` is not NAME: VALUE; curl would not send it',
    );
  }
  const value = text.slice(colon + 1).replace(/^[\t ]+|[\t ]+$/g, '');
  const lowerName = name.toLowerCase();
  if (value === '') {
    return removable.has(lowerName) ? accept(null) : refuse(`the header ${name} has no value; curl would not send it`);
  }
  if (ours.has(lowerName)) return refuse(`the header ${name} belongs to the connection and cannot be set`);
  if (value.length > maxValueLength || !fieldValue.test(value)) {
    return refuse(
      `the value of the header ${name} is longer than ${String(maxValueLength)} characters or holds other ones than visible ASCII and spaces`,
    );
  }
  if (lowerName !== 'content-type') return accept({ name, value });
  return jsonType.test(value) ? accept(null) : refuse('the header Content-Type may be application/json only');
}

/** One line that is no comment. */
interface CurlLine {
  /** From 1. */
  readonly line: number;
  /** As it stands, with its dashes. It may be anything, a misplaced secret too. */
  readonly option: string;
  /** What follows, without its quotes; `null` where there is nothing. */
  readonly value: string | null;
}

/** What is wrong with a line, without a word of it. */
interface LineProblem {
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
function readCurlLines(text: string): Result<readonly CurlLine[], LineProblem> {
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
