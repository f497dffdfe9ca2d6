import { InvalidArgumentError, Option, type Command } from 'commander';
import { extraIdentifiers, type ExtraIdentifier } from '../row/password-hash.js';
import { durationArgument, numberArgument } from '../../cli/arguments.js';
import { defineCommand } from '../../cli/definition.js';
import { formats, type ImportOptions } from './options.js';
import type { Io } from '../../cli/io.js';
import { jsonOption } from '../../cli/options.js';

/** Calls under way at once: more than that only queue up in the Core. */
const defaultConcurrency = 16;
const maxConcurrency = 256;
const maxRate = 100_000;
const defaultGiveUpMs = 2 * 60_000;

/** `sallyport import FILE`: moves existing users into the Core. */
export function createImportCommand(io: Io): Command {
  const command = defineCommand({
    name: 'import',
    about: 'Import existing users into the Core: JSON Lines, CSV with a header, or the JSON of firebase auth:export.',
    examples: [
      ['check a file and call nothing', 'sallyport import users.csv --dry-run'],
      ['import it', 'sallyport import users.csv --curl-config core.curl'],
      ['go on where it stopped', 'sallyport import users.csv --curl-config core.curl --resume'],
    ],
    notes: ['A journal stands beside the file until you remove it, as does the list of rows that are not in.'],
    exitCodes: {
      0: 'every row is in',
      1: 'some are not',
      2: 'usage, or a file that may not be read as it is',
      3: 'the run could not go on: --resume',
    },
    page: 'docs/import.md',
  });
  return command
    .argument('<file>', 'the users; read twice, never held')
    .option('--curl-config <file>', 'where the Core is and its API key, as curl -K reads it; mode 0600')
    .addOption(
      new Option('--from <format>', 'format of the file; without it .csv is csv and everything else jsonl').choices(
        formats,
      ),
    )
    .option('--hash-config <file>', 'firebase: the hash parameters of the account; mode 0600')
    .option('--hashes-from <file>', 'take hashes that rejected rows came back without from the file they were in')
    .addOption(
      new Option(
        '--accept-hash <ids>',
        `take these hashes too, between commas: ${extraIdentifiers.join(', ')}`,
      ).argParser(identifiersArgument),
    )
    .option('--strip-hash-prefix', "take away a provider's identifier in front of a hash, such as {bcrypt}")
    .addOption(
      new Option('--dialect <dialect>', 'names that the Core knows; supertokens is also asked whether a user is there')
        .choices(['seed', 'supertokens'])
        .default('seed'),
    )
    .addOption(
      new Option(
        '--cdi-version <version>',
        'version of the driver interface for every call; without it 2.16, and for third-party users one that ' +
          'carries isVerified, where the Core has it',
      ).argParser(versionArgument),
    )
    .option('--dry-run', 'check everything and call nothing')
    .option('--resume', 'go on where the journal beside the file ends; without one, begin')
    .option('--overwrite', 'go on where a user was in the Core before, and make it what the file says')
    .addOption(
      new Option('--concurrency <number>', 'users under way at once')
        .argParser(numberArgument(1, maxConcurrency))
        .default(defaultConcurrency),
    )
    .addOption(new Option('--rate <number>', 'calls a second at most').argParser(numberArgument(1, maxRate)))
    .addOption(
      new Option('--give-up-after <duration>', 'stop when calls have failed for so long')
        .argParser(durationArgument('1s', '24h'))
        .default(defaultGiveUpMs, '2m'),
    )
    .option('--allow-http', 'let the API key travel to another machine in the clear')
    .option('--allow-public-core', 'let the Core be on a public address')
    .addOption(jsonOption())
    .action(async (file: string, options: ImportOptions) => {
      const { importFile } = await import('./run.js');
      io.exit(await importFile(file, options, io));
    });
}

function identifiersArgument(value: string, before: readonly ExtraIdentifier[] = []): readonly ExtraIdentifier[] {
  const names = value.split(',').map((name) => name.trim().replace(/^\$|\$$/g, ''));
  const known = extraIdentifiers.filter((name) => names.includes(name));
  if (names.every((name) => known.some((one) => one === name))) return [...before, ...known];
  throw new InvalidArgumentError(`Allowed: ${extraIdentifiers.join(', ')}, between commas.`);
}

function versionArgument(value: string): string {
  if (/^\d{1,3}\.\d{1,3}$/.test(value)) return value;
  throw new InvalidArgumentError('Allowed: a version such as 2.16.');
}
