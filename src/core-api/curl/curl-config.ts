import { readCoreUrl } from '../core-url.js';
import { accept, refuse, type Result } from '../../lib/result.js';
import { readCurlHeader, type CurlHeader } from './curl-header.js';
import { readCurlLines, type CurlLine, type LineProblem } from './curl-lines.js';
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
export type CurlConfigProblem = LineProblem;

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
