import { Option, type Command } from 'commander';
import { durationArgument } from '../../arguments.js';
import { configNote, takesConfig } from '../../config/argument.js';
import { defineCommand } from '../../definition.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';
import type { FailoverArguments } from './failover.js';

const page = 'docs/storage.md#how-to-fail-over-without-loss';

/** `sallyport store failover`: replaces the primary of the store without losing writes. */
export function createStoreCommand(io: Io): Command {
  const command = defineCommand({
    name: 'store',
    about: 'Operate the Redis that keeps reservations.',
    examples: [
      ['what a planned fail-over would do', 'sallyport store failover'],
      ['do it', 'sallyport store failover --yes'],
    ],
    notes: [configNote],
    exitCodes: {
      0: 'done',
      1: 'refused, or not done',
      2: 'usage, or a store without Sentinel',
      3: 'the store is out of reach',
    },
    page,
  });
  return command
    .option('--config <file>', 'the config')
    .addOption(jsonOption())
    .addCommand(failoverCommand(io).summary('replace the primary without losing writes'))
    .helpCommand('help [command]', 'say more about one of them');
}

function failoverCommand(io: Io): Command {
  const command = defineCommand({
    name: 'failover',
    about:
      'Replace the primary that Sentinels watch, without losing writes: hold them (CLIENT PAUSE), wait for the replicas, SENTINEL FAILOVER, make the old ' +
      'primary a replica of the new one, and let go. Without --yes it only looks whether that can be done, and says what it would do.',
    examples: [
      ['what it would do', 'sallyport store failover'],
      ['do it', 'sallyport store failover --yes'],
      ['for programs', 'sallyport store failover --yes --json'],
    ],
    notes: [
      configNote,
      'For store.redis.sentinel alone. The user of Redis needs the rights +client|pause +client|unpause +replicaof +multi +discard, and +config|rewrite where ' +
        'servers have a file of settings.',
      'Reserved writes wait meanwhile, and get 503 after their time. A signal lets go of them at once where no fail-over was begun; after that the first ' +
        'one is noted, for Sentinels cannot be stopped, and the second lets go. Should this end unasked, the hold ends by itself within 10 seconds.',
    ],
    exitCodes: {
      0: 'done with nothing wrong, or it can be done',
      1: 'refused, not done, or something looks wrong',
      2: 'usage, or a store without Sentinel',
      3: 'the Sentinels or the primary are out of reach',
    },
    page,
  });
  return takesConfig(command)
    .option('--yes', 'do it')
    .addOption(
      new Option('--timeout <duration>', 'how long to hold writes at most: 15s to 5m')
        .argParser(durationArgument('15s', '5m'))
        .default(30_000, '30s'),
    )
    .addOption(jsonOption())
    .action(async (file: string | undefined, _options: object, asked: Command) => {
      const { failOverStore } = await import('./failover.js');
      await failOverStore({ ...asked.optsWithGlobals<FailoverArguments>(), file }, io);
    });
}
