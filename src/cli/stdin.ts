import type { Readable } from 'node:stream';
import { defaultMaxDepth, parseStrictJson, type JsonObject, type JsonProblem } from '../lib/strict-json.js';
import { accept, refuse, type Result } from '../lib/result.js';
import { startFailure, type StartFailure } from '../app/start-failure.js';
import type { Io } from './io.js';

const problems: Readonly<Record<JsonProblem, string>> = {
  encoding: 'it is not UTF-8',
  too_deep: 'it is nested too deeply',
  syntax: 'it is not JSON',
  not_an_object: 'it is not a JSON object',
  duplicate_member: 'a member stands in it twice',
  not_representable: 'it holds a number or a text that cannot be passed on',
};

/** Says what is waited for, where somebody sits at a terminal and would see nothing happen. */
export function announceInput(what: string, io: Io): void {
  if (io.isInputTerminal?.() === true) io.stderr(`reading ${what} from standard input; Ctrl-D ends it\n`);
}

/** Reads one JSON object to the end of the input, in words refusing what is none or larger than `maxBytes`. */
export async function readJsonInput(input: Readable, maxBytes: number): Promise<Result<JsonObject, string>> {
  const bytes = await readInput(input, maxBytes);
  if (bytes === null) return refuse(`it is ${tooLarge(maxBytes)}`);
  const parsed = parseStrictJson(bytes, { maxDepth: defaultMaxDepth });
  return parsed.ok ? parsed : refuse(problems[parsed.error]);
}

/** Reads a UTF-8 text to the end of the input; refuses in words that follow its name. */
export async function readTextInput(input: Readable, maxBytes: number): Promise<Result<string, string>> {
  const bytes = await readInput(input, maxBytes);
  if (bytes === null) return refuse(`is ${tooLarge(maxBytes)}`);
  try {
    return accept(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return refuse('is not UTF-8 text');
  }
}

/** What a header can hold at most (`listen.max_header_bytes`), which is more than a token that is accepted. */
const maxTokenInputBytes = 1024 * 1024;

/** Reads a token from standard input, with or without the scheme before it. */
export async function readToken(io: Io): Promise<Result<string, StartFailure>> {
  announceInput('a token', io);
  const text = await readTextInput(io.stdin, maxTokenInputBytes);
  if (!text.ok) return refuse(startFailure('unreadable', `standard input: ${text.error}; allowed: a token`));
  const token = text.value.trim().replace(/^(?:bearer|dpop) +/i, '');
  if (token === '') return refuse(startFailure('unreadable', 'standard input: empty; allowed: a token'));
  return accept(token);
}

/** `null` where there is more than that. */
async function readInput(input: Readable, maxBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input as AsyncIterable<Buffer | string>) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > maxBytes) return null;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function tooLarge(maxBytes: number): string {
  return `larger than ${String(maxBytes)} bytes`;
}
