import { Command, InvalidArgumentError, Option } from 'commander';
import { extraIdentifiers, type ExtraIdentifier, type HashRules } from '../user-import/password-hash.js';
import { durationArgument } from './arguments.js';
import { jsonOption } from './options.js';

export const formats = ['jsonl', 'csv', 'firebase'] as const;

export type Format = (typeof formats)[number];

export interface ImportOptions {
  readonly curlConfig?: string;
  readonly from?: Format;
  readonly hashConfig?: string;
  readonly hashesFrom?: string;
  readonly acceptHash?: readonly ExtraIdentifier[];
  readonly stripHashPrefix?: true;
  readonly dialect: 'seed' | 'supertokens';
  readonly cdiVersion: string;
  readonly dryRun?: true;
  readonly resume?: true;
  readonly overwrite?: true;
  readonly concurrency: number;
  readonly rate?: number;
  readonly giveUpAfter: number;
  readonly allowHttp?: true;
  readonly allowPublicCore?: true;
  readonly json?: true;
}

/** Calls under way at once: more than that only queue up in the Core. */
const defaultConcurrency = 16;
const maxConcurrency = 256;
const maxRate = 100_000;
const defaultGiveUpMs = 2 * 60_000;

/** The command line of `import`. */
export function importCommand(): Command {
  return new Command('import')
    .description('Import existing users into the Core: JSON Lines, CSV with a header, or the JSON of firebase auth:export.')
    .argument('<file>', 'the users; read twice, never held')
    .option('--curl-config <file>', 'where the Core is and its API key, as curl -K reads it; mode 0600')
    .addOption(new Option('--from <format>', 'format of the file; without it .csv is csv and everything else jsonl').choices(formats))
    .option('--hash-config <file>', 'firebase: the hash parameters of the account; mode 0600')
    .option('--hashes-from <file>', 'take hashes that rejected rows came back without from the file they were in')
    .addOption(new Option('--accept-hash <ids>', `take these hashes too, between commas: ${extraIdentifiers.join(', ')}`).argParser(identifiersArgument))
    .option('--strip-hash-prefix', "take away a provider's identifier in front of a hash, such as {bcrypt}")
    .addOption(new Option('--dialect <dialect>', 'names that the Core knows; supertokens is also asked whether a user is there')
      .choices(['seed', 'supertokens']).default('seed'))
    .addOption(new Option('--cdi-version <version>', 'version of the driver interface').argParser(versionArgument).default('2.16'))
    .option('--dry-run', 'check everything and call nothing')
    .option('--resume', 'go on where the journal beside the file ends; without one, begin')
    .option('--overwrite', 'go on where a user was in the Core before, and make it what the file says')
    .addOption(new Option('--concurrency <number>', 'users under way at once').argParser(numberArgument(1, maxConcurrency)).default(defaultConcurrency))
    .addOption(new Option('--rate <number>', 'calls a second at most').argParser(numberArgument(1, maxRate)))
    .addOption(new Option('--give-up-after <duration>', 'stop when calls have failed for so long').argParser(durationArgument('1s', '24h'))
      .default(defaultGiveUpMs, '2m'))
    .option('--allow-http', 'let the API key travel to another machine in the clear')
    .option('--allow-public-core', 'let the Core be on a public address')
    .addOption(jsonOption())
    .addHelpText('after', '\nA journal stands beside the file until you remove it, as does the list of rows that are not in.\n'
      + 'Exit code: 0 every row is in, 1 some are not, 2 usage, or a file that may not be read as it is, 3 the run could not go on: --resume.');
}

/** Which hashes are taken. */
export function hashRulesOf({ dialect, acceptHash, stripHashPrefix }: ImportOptions): HashRules {
  return { accepted: new Set(dialect === 'supertokens' ? extraIdentifiers : (acceptHash ?? [])), stripPrefix: stripHashPrefix === true };
}

export function formatOf(file: string, from: Format | undefined): Format {
  return from ?? (/\.csv$/i.test(file) ? 'csv' : 'jsonl');
}

/** Says which options do not go together; `null` where they do. */
export function optionProblem(file: string, options: ImportOptions): string | null {
  const format = formatOf(file, options.from);
  if (options.curlConfig === undefined && options.dryRun !== true) return 'import needs --curl-config FILE: where the Core is and its API key; or --dry-run';
  // The original of returned rows may be an export.
  if (options.hashConfig === undefined && format === 'firebase') {
    return 'a Firebase export needs --hash-config FILE: the hash parameters that its console shows';
  }
  if (options.hashConfig !== undefined && format !== 'firebase' && options.hashesFrom === undefined) return '--hash-config goes with --from firebase only';
  if (options.hashesFrom !== undefined && format !== 'csv') return '--hashes-from goes with a CSV of rejected rows only';
  return null;
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

function numberArgument(least: number, most: number): (value: string) => number {
  return (value) => {
    if (/^\d{1,6}$/.test(value) && Number(value) >= least && Number(value) <= most) return Number(value);
    throw new InvalidArgumentError(`Allowed: a whole number from ${String(least)} to ${String(most)}.`);
  };
}
