import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { listenFailure } from '../app/opening.js';
import type { StartFailure } from '../app/start-failure.js';
import { isLoopback } from '../config/schema-addresses.js';
import { accept, refuse, type Result } from '../decision/result.js';
import type { Dialect } from '../emulator/core.js';
import { startCoreEmulator, type CoreEmulatorOptions } from '../emulator/core-emulator.js';
import { DataFileError } from '../emulator/data-file.js';
import { durationArgument, portArgument, shareArgument } from './arguments.js';
import { readApiKeys, readSignerKey } from './core-secrets.js';
import type { Io } from './io.js';
import { fail } from './options.js';
import { ended } from './running.js';

interface Options {
  readonly host: string;
  readonly port: number;
  readonly data?: string;
  readonly dialect: Dialect;
  readonly rotateEvery: number;
  readonly accessTokenValidity: number;
  readonly codeLifetime: number;
  readonly apiKeysFile?: string;
  readonly signerKeyFile?: string;
  readonly faults: number;
}

/** The Core's own defaults: `access_token_dynamic_signing_key_update_interval`, `access_token_validity`, `passwordless_code_lifetime`. */
const defaults = { rotateEveryMs: 168 * 60 * 60 * 1000, accessTokenValidityMs: 60 * 60 * 1000, codeLifetimeMs: 15 * 60 * 1000 };

/** `sallyport core`: the Core emulator alone, until a signal. */
export function createCoreCommand(io: Io): Command {
  return new Command('core')
    .description('Run an emulator of the Core: it mints tokens for whoever reaches it, publishes the keys and keeps users. For development and tests.')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 takes a free one', portArgument, 3567)
    .option('--data <file>', 'keep users, keys, codes and sessions in this file, mode 0600; without it, in memory')
    .addOption(new Option('--dialect <name>', 'whose names it uses; it understands both').choices(['seed', 'supertokens']).default('seed'))
    .addOption(new Option('--rotate-every <duration>', 'time between two dynamic keys, such as 10s or 24h')
      .argParser(durationArgument('1s', '365d'))
      .default(defaults.rotateEveryMs, '168h'))
    .addOption(new Option('--access-token-validity <duration>', 'life of an access token; a replaced key stays published for twice as long')
      .argParser(durationArgument('1s', '365d'))
      .default(defaults.accessTokenValidityMs, '1h'))
    .addOption(new Option('--code-lifetime <duration>', 'how long a passwordless code can be consumed')
      .argParser(durationArgument('1s', '365d'))
      .default(defaults.codeLifetimeMs, '15m'))
    .option('--api-keys-file <file>', 'accept these API keys only, one a line; mode 0600')
    .option('--signer-key-file <file>', 'signer key of the hosted provider in base64, for its scrypt hashes; mode 0600')
    .addOption(new Option('--faults <share>', 'answer this share of the calls with 429 or 500, or cut the connection, such as 2%')
      .argParser(shareArgument)
      .default(0, '0%'))
    .addHelpText('after', '\nExit code: 0 ended by a signal, 2 a file cannot be used, 3 the port or the data file is in use.')
    .action((options: Options) => core(options, io));
}

async function core(options: Options, io: Io): Promise<void> {
  const secrets = await readSecrets(options, io);
  if (!secrets.ok) {
    fail({ kind: 'unreadable', messages: [secrets.error] }, io);
    return;
  }
  const { host, port } = options;
  const stopped = ended(io);
  try {
    const emulator = await startCoreEmulator({
      host, port,
      dataFile: options.data === undefined ? null : resolve(io.cwd, options.data),
      dialect: options.dialect,
      rotateEveryMs: options.rotateEvery,
      accessTokenValidityMs: options.accessTokenValidity,
      codeLifetimeMs: options.codeLifetime,
      faults: { share: options.faults },
      onLost: (error) => io.stderr(`the data file cannot be written (${codeOf(error) ?? 'unknown error'}): every call is answered with 500 from now on\n`),
      ...secrets.value,
    });
    io.stdout(`core  ${emulator.url}\n`);
    io.stderr(`an emulator, for development and tests: no substitute for a Core${options.data === undefined ? '; it forgets everything when it ends' : ''}\n`);
    if (secrets.value.apiKeys.length === 0 && !isLoopback(host)) {
      io.stderr('whoever reaches this address can mint any token; --api-keys-file asks for a key\n');
    }
    await stopped;
    await emulator.close();
  } catch (error) {
    fail(startFailure(options, error), io);
  }
}

type Secrets = Required<Pick<CoreEmulatorOptions, 'apiKeys' | 'signerKey'>>;

async function readSecrets({ apiKeysFile, signerKeyFile }: Options, io: Io): Promise<Result<Secrets, string>> {
  const apiKeys = apiKeysFile === undefined ? accept([]) : await readApiKeys(resolve(io.cwd, apiKeysFile));
  if (!apiKeys.ok) return refuse(`${apiKeysFile ?? ''} ${apiKeys.error}`);
  const signerKey = signerKeyFile === undefined ? accept(null) : await readSignerKey(resolve(io.cwd, signerKeyFile));
  return signerKey.ok ? accept({ apiKeys: apiKeys.value, signerKey: signerKey.value }) : refuse(`${signerKeyFile ?? ''} ${signerKey.error}`);
}

function startFailure({ host, port, data }: Options, error: unknown): StartFailure {
  if (error instanceof DataFileError) return { kind: error.kind === 'in_use' ? 'unavailable' : 'unreadable', messages: [error.message] };
  if (data !== undefined && isOfFile(error)) return { kind: 'unreadable', messages: [`${data} cannot be the data file (${codeOf(error) ?? '?'})`] };
  const failure = listenFailure('the Core emulator', { host, port }, error);
  return { ...failure, messages: [...failure.messages, 'choose another place with --host and --port'] };
}

/** `EACCES` is said of files and of low ports. */
function isOfFile(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall !== 'listen' && error.syscall !== 'getaddrinfo';
}

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null;
}
