import { Option, type Command } from 'commander';
import { durationArgument, portArgument, shareArgument } from '../../cli/arguments.js';
import type { CoreOptions } from './run.js';
import { defineCommand } from '../../cli/definition.js';
import type { Io } from '../../cli/io.js';

/**
 * The Core's own defaults: `access_token_dynamic_signing_key_update_interval`, `access_token_validity`,
 * `passwordless_code_lifetime`.
 */
const defaults = {
  rotateEveryMs: 168 * 60 * 60 * 1000,
  accessTokenValidityMs: 60 * 60 * 1000,
  codeLifetimeMs: 15 * 60 * 1000,
};

/** `sallyport core`: the Core emulator alone, until a signal. */
export function createCoreCommand(io: Io): Command {
  const command = defineCommand({
    name: 'core',
    about:
      'Run an emulator of the Core: it mints tokens for whoever reaches it, publishes the keys and keeps users. For development and tests.',
    examples: [
      ['at the port of a Core', 'sallyport core'],
      ['one that keeps its users and asks for a key', 'sallyport core --data core.json --api-keys-file core.keys'],
      ['one that fails now and then, with new keys every ten seconds', 'sallyport core --faults 2% --rotate-every 10s'],
    ],
    exitCodes: {
      0: 'ended by a signal',
      2: 'usage, or a file cannot be used',
      3: 'the port or the data file is in use',
    },
    page: 'docs/core-emulator.md',
  });
  return command
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 takes a free one', portArgument, 3567)
    .option('--data <file>', 'keep users, keys, codes and sessions in this file, mode 0600; without it, in memory')
    .addOption(
      new Option('--dialect <name>', 'whose names and rules it keeps; it understands the names of both')
        .choices(['seed', 'supertokens'])
        .default('seed'),
    )
    .addOption(
      new Option('--rotate-every <duration>', 'time between two dynamic keys, such as 10s or 24h')
        .argParser(durationArgument('1s', '365d'))
        .default(defaults.rotateEveryMs, '168h'),
    )
    .addOption(
      new Option(
        '--access-token-validity <duration>',
        'life of an access token; a replaced key stays published for twice as long',
      )
        .argParser(durationArgument('1s', '365d'))
        .default(defaults.accessTokenValidityMs, '1h'),
    )
    .addOption(
      new Option('--code-lifetime <duration>', 'how long a passwordless code can be consumed')
        .argParser(durationArgument('1s', '365d'))
        .default(defaults.codeLifetimeMs, '15m'),
    )
    .option('--api-keys-file <file>', 'accept these API keys only, one a line; mode 0600')
    .option(
      '--allow-keyless',
      'listen on an address that is not loopback without API keys: whoever reaches it can mint any token',
    )
    .option('--signer-key-file <file>', 'signer key of the hosted provider in base64, for its scrypt hashes; mode 0600')
    .addOption(
      new Option(
        '--faults <share>',
        'answer this share of the calls with 429 or 500, or cut the connection, such as 2%',
      )
        .argParser(shareArgument)
        .default(0, '0%'),
    )
    .action(async (options: CoreOptions) => {
      const { core } = await import('./run.js');
      await core(options, io);
    });
}
