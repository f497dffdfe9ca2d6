import { resolve } from 'node:path';
import { Command, Option } from 'commander';
import { listenFailure } from '../app/opening.js';
import { isLoopback } from '../config/schema-addresses.js';
import { startCoreEmulator } from '../emulator/core-emulator.js';
import { durationArgument, portArgument } from './arguments.js';
import { readApiKeys } from './core-api-keys.js';
import type { Io } from './io.js';
import { fail } from './options.js';
import { ended } from './running.js';

interface Options {
  readonly host: string;
  readonly port: number;
  readonly rotateEvery: number;
  readonly apiKeysFile?: string;
}

/** The Core's own default, `access_token_dynamic_signing_key_update_interval`. */
const weekMs = 168 * 60 * 60 * 1000;

/** `sallyport core`: the Core emulator alone, until a signal. */
export function createCoreCommand(io: Io): Command {
  return new Command('core')
    .description('Run an emulator of the Core: it mints tokens for whoever reaches it and publishes the keys. For development.')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 takes a free one', portArgument, 3567)
    .addOption(new Option('--rotate-every <duration>', 'time between two dynamic keys, such as 10s or 24h')
      .argParser(durationArgument('1s', '365d'))
      .default(weekMs, '168h'))
    .option('--api-keys-file <file>', 'accept these API keys only, one a line; mode 0600')
    .addHelpText('after', '\nExit code: 0 ended by a signal, 2 the file of keys cannot be used, 3 the port is in use.')
    .action((options: Options) => core(options, io));
}

async function core({ host, port, rotateEvery, apiKeysFile }: Options, io: Io): Promise<void> {
  const keys = apiKeysFile === undefined ? null : await readApiKeys(resolve(io.cwd, apiKeysFile));
  if (keys?.ok === false) {
    fail({ kind: 'unreadable', messages: [`${apiKeysFile ?? ''} ${keys.error}`] }, io);
    return;
  }
  const apiKeys = keys?.value ?? [];
  const stopped = ended(io);
  try {
    const emulator = await startCoreEmulator({ host, port, rotateEveryMs: rotateEvery, apiKeys });
    io.stdout(`core  ${emulator.url}\n`);
    if (apiKeys.length === 0 && !isLoopback(host)) io.stderr('whoever reaches this address can mint any token; --api-keys-file asks for a key\n');
    await stopped;
    await emulator.close();
  } catch (error) {
    const failure = listenFailure('the Core emulator', { host, port }, error);
    fail({ ...failure, messages: [...failure.messages, 'choose another place with --host and --port'] }, io);
  }
}
