import { Command } from 'commander';
import { readConfig } from '../app/config-source.js';
import { formatProblem } from '../config/problems.js';
import type { Io } from './io.js';
import { jsonOption, sourceOf } from './options.js';

interface Options {
  readonly strict?: true;
  readonly json?: true;
}

/** `sallyport check FILE`: every problem of a config at once, on standard output. */
export function createCheckCommand(io: Io): Command {
  return new Command('check')
    .description('Say everything that is wrong with a config, one line per problem:\nFILE:LINE:COLUMN: error|warning: what; allowed: what would be right')
    .argument('<file>', 'the config')
    .option('--strict', 'count warnings as errors')
    .addOption(jsonOption())
    .addHelpText('after', '\nExit code: 0 no error, 1 an error (with --strict: or a warning), 2 the file cannot be read.')
    .action((file: string, options: Options) => check(file, options, io));
}

async function check(file: string, options: Options, io: Io): Promise<void> {
  const read = await readConfig(sourceOf(file, io), io.env);
  if (!read.ok) {
    io.stderr(`${read.error}\n`);
    io.exit(2);
    return;
  }
  const { config, problems } = read.value;
  const accepted = config !== null && !(options.strict === true && problems.length > 0);
  if (options.json === true) {
    io.stdout(`${JSON.stringify({ file, ok: accepted, sha256: config?.sha256 ?? null, problems })}\n`);
  } else {
    for (const problem of problems) io.stdout(`${formatProblem(problem)}\n`);
    if (accepted) io.stderr(`${file}: ok\n`);
  }
  io.exit(accepted ? 0 : 1);
}
