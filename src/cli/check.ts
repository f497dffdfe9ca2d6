import { Command } from 'commander';
import { readConfig } from '../app/config-source.js';
import { countProblems, escapeControls, formatProblem, type Note, type Problem } from '../config/problems.js';
import type { Io } from './io.js';
import { jsonOption, sourceOf } from './options.js';

interface Options {
  readonly strict?: true;
  readonly json?: true;
}

/** More are counted: what matters is said in the last line. */
const maxNotes = 20;

/** `sallyport check FILE`: every problem of a config at once, on standard output. */
export function createCheckCommand(io: Io): Command {
  return new Command('check')
    .description('Say everything that is wrong with a config, each with its line:\nFILE:LINE:COLUMN: error|warning: what; allowed: what would be right')
    .argument('<file>', 'the config')
    .option('--strict', 'count warnings as errors')
    .addOption(jsonOption())
    .addHelpText('after', '\nNotes and the last line, which counts, go to standard error.\n'
      + 'Exit code: 0 no error, 1 an error (with --strict: or a warning), 2 the file cannot be read.')
    .action((file: string, options: Options) => check(file, options, io));
}

async function check(file: string, options: Options, io: Io): Promise<void> {
  const read = await readConfig(sourceOf(file, io), io.env);
  if (!read.ok) {
    io.stderr(`${read.error}\n`);
    io.exit(2);
    return;
  }
  const { config, problems, notes, excerptOf } = read.value;
  const accepted = config !== null && !(options.strict === true && problems.length > 0);
  if (options.json === true) {
    io.stdout(`${JSON.stringify({ file, ok: accepted, sha256: config?.sha256 ?? null, problems, notes })}\n`);
  } else {
    for (const problem of problems) io.stdout(`${[formatProblem(problem), ...excerptOf(problem)].join('\n')}\n`);
    for (const line of noteLines(file, notes)) io.stderr(`${escapeControls(line)}\n`);
    io.stderr(`${escapeControls(`${file}: ${conclusion(problems, accepted)}`)}\n`);
  }
  io.exit(accepted ? 0 : 1);
}

function noteLines(file: string, notes: readonly Note[]): readonly string[] {
  const shown = notes.slice(0, maxNotes).map(({ line, column, message }) => `${file}:${String(line)}:${String(column)}: note: ${message}`);
  return notes.length <= maxNotes ? shown : [...shown, `${file}: ${String(notes.length - maxNotes)} more notes; --json lists them`];
}

function conclusion(problems: readonly Problem[], accepted: boolean): string {
  const counts = countProblems(problems);
  if (accepted) return counts === '' ? 'ok' : `ok, ${counts}`;
  return problems.some(({ severity }) => severity === 'error') ? counts : `${counts}, which --strict does not accept`;
}
