import { readFile, realpath, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import { secretsWritten } from '../../../config/load/redact.js';
import { mayShowValue } from '../../../config/load/report.js';
import { codeOf, writeFailure } from '../../../lib/errors.js';
import { replaceFile, pathIn } from '../../../lib/files.js';
import { accept, refuse, type Result } from '../../../lib/result.js';
import { defaultConfig } from '../../config/argument.js';
import { inputArgument, namedConfig, type ChosenConfig } from '../../config/choose.js';
import type { Io } from '../../io.js';
import { fail, failUsage } from '../../options.js';
import { isPage, pageWith, type GivenFile, type GivenFiles } from './page.js';

export interface PlaygroundOptions {
  readonly out: string;
  readonly config?: string;
  readonly tests?: string;
}

/** Writes the page. */
export async function playground({ out, ...named }: PlaygroundOptions, io: Io): Promise<void> {
  if (named.tests === inputArgument) {
    failUsage('playground', '--tests has to be a file', io);
    return;
  }
  const files = await readFiles(named, io);
  if (!files.ok) {
    fail(files.error, io);
    return;
  }
  const page = await pageWith(files.value);
  if (out === inputArgument) {
    io.stdout(page);
    io.exit(0);
    return;
  }
  const written = await write(pathIn(io, out), page);
  if (!written.ok) {
    fail(startFailure('unreadable', `${out}: ${written.error}`), io);
    return;
  }
  io.stderr(`wrote ${out}: open it in a browser\n`);
  io.exit(0);
}

/** The files as they are: the page is where what is wrong in them is found. */
async function readFiles(
  { config, tests }: Omit<PlaygroundOptions, 'out'>,
  io: Io,
): Promise<Result<GivenFiles, StartFailure>> {
  const given = config === undefined ? accept(null) : await readNamed(namedConfig(config, io));
  if (!given.ok) return given;
  const secrets = given.value === null ? [] : secretsWritten(given.value.text, mayShowValue);
  if (given.value !== null && secrets.length > 0) {
    const { name, text } = given.value;
    return refuse(startFailure('invalid', ...secrets.map(({ start }) => heldAt(name, text, start))));
  }
  const cases = tests === undefined ? accept(null) : await readNamed(namedConfig(tests, io));
  return cases.ok ? accept({ config: given.value, tests: cases.value }) : cases;
}

async function readNamed({ source, name, path }: ChosenConfig): Promise<Result<GivenFile, StartFailure>> {
  const text = await source.read();
  return text.ok
    ? accept({ name: path === null ? defaultConfig : basename(path), text: text.value })
    : refuse(startFailure('unreadable', `${name}: ${text.error}`));
}

function heldAt(name: string, text: string, start: number): string {
  const line = text.slice(0, start).split('\n').length;
  return `${name}:${line}: what stands here may be a secret, and whoever has the page would have it; allowed: \${file:PATH}, \${env:NAME}, or the path of a file`;
}

/** Whether nothing is there yet, or an older page. */
async function isReplaceable(path: string): Promise<boolean> {
  const found = await stat(path).catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  });
  if (found === null) return true;
  return found.isFile() && isPage(await readFile(path, 'utf8'));
}

/** A page takes the place of an older one when it is whole. What is no such page is left as it is. */
async function write(path: string, page: string): Promise<Result<null, string>> {
  try {
    const target = await realpath(path).catch(() => path);
    if (!(await isReplaceable(target))) return refuse('there is a file that is no playground; allowed: another name');
    await replaceFile(target, page);
    return accept(null);
  } catch (error) {
    return refuse(writeFailure(error));
  }
}
