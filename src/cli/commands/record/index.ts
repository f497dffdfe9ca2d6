import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseRecordId } from '../../../decision/idempotency/scope.js';
import { numberArgument } from '../../arguments.js';
import { configNote, takesConfig } from '../../config/argument.js';
import { defineCommand, requireOptions } from '../../definition.js';
import type { Io } from '../../io.js';
import { jsonOption } from '../../options.js';
import type { ListOptions, RecordOptions, ResolveOptions } from './run.js';

const maxReasonLength = 500;
/** All of them are held until they are printed. */
const maxListed = 100_000;
const page = 'docs/idempotency.md#a-write-in-doubt';

/** `sallyport record show|resolve ID`: reads or resolves a reservation in doubt. */
export function createRecordCommand(io: Io): Command {
  const command = defineCommand({
    name: 'record',
    about: 'List, read or resolve reservations: writes that are in progress, done, or in doubt.',
    examples: [
      ['writes of which nobody knows whether they were applied', 'sallyport record list --in-doubt'],
      ['one record', 'sallyport record show ID'],
      [
        'the write was applied: the key stays taken',
        'sallyport record resolve ID --outcome committed --reason "order 17 is there"',
      ],
    ],
    notes: [configNote],
    exitCodes: {
      0: 'done',
      1: 'there is no such record or it is not in doubt',
      2: 'usage, or a store that no other process sees',
      3: 'the store is out of reach',
    },
    page,
  });
  // Before the action, too: `record --config FILE show ID`.
  return command
    .option('--config <file>', 'the config')
    .addOption(jsonOption())
    .addCommand(listCommand(io).summary('list what is not settled'))
    .addCommand(showCommand(io).summary('show one record'))
    .addCommand(resolveCommand(io).summary('settle a write in doubt'))
    .helpCommand('help [command]', 'say more about one of them');
}

function listCommand(io: Io): Command {
  const command = defineCommand({
    name: 'list',
    about:
      'List records that are not settled, the oldest first: id, whether it is in doubt or in progress, when it was made, when it and its key go, ' +
      'and the route. Nothing of what was sent or answered.',
    examples: [
      ['what waits for somebody to find out', 'sallyport record list --in-doubt'],
      ['the ids alone', "sallyport record list --in-doubt --json | jq -r '.records[].record'"],
    ],
    notes: [
      configNote,
      'There is no index of them: every record of the store is looked at, some hundreds at a time. The user of Redis needs the right +scan.',
    ],
    exitCodes: {
      0: 'listed, though there may be none',
      2: 'usage, or a store that no other process sees',
      3: 'the store is out of reach',
    },
    page,
  });
  return takesConfig(command)
    .option('--in-doubt', 'without those that may still be under way')
    .addOption(
      new Option('--limit <number>', 'end the search when so many were found, whichever these are')
        .argParser(numberArgument(1, maxListed))
        .default(1_000),
    )
    .addOption(jsonOption())
    .action(async (file: string | undefined, _options: object, asked: Command) => {
      const { listRecords } = await import('./run.js');
      await listRecords({ ...asked.optsWithGlobals<ListOptions>(), file }, io);
    });
}

function showCommand(io: Io): Command {
  const command = defineCommand({
    name: 'show',
    about: 'Show one record: its state, its times and who owns it. Never what the upstream answered.',
    examples: [
      ['for people', 'sallyport record show ID'],
      ['for programs', 'sallyport record show ID --json'],
    ],
    notes: [configNote],
    exitCodes: {
      0: 'shown',
      1: 'there is no such record',
      2: 'usage, or a store that no other process sees',
      3: 'the store is out of reach',
    },
    page,
  });
  return takesConfig(command.argument('<id>', 'id of the record', idArgument))
    .addOption(jsonOption())
    .action(async (id: string, file: string | undefined, _options: object, asked: Command) => {
      const { showRecord } = await import('./run.js');
      await showRecord(id, { ...asked.optsWithGlobals<RecordOptions>(), file }, io);
    });
}

function resolveCommand(io: Io): Command {
  const command = defineCommand({
    name: 'resolve',
    about:
      'Settle a write in doubt: "committed" keeps the key taken, "not-applied" frees it for a retry. Prints a line of JSON to keep: who, when, ' +
      'which record, what and why.',
    examples: [
      ['the write was applied', 'sallyport record resolve ID --outcome committed --reason "order 17 is there"'],
      ['it was not', 'sallyport record resolve ID --outcome not-applied --reason "no such order"'],
    ],
    notes: [configNote],
    exitCodes: {
      0: 'resolved',
      1: 'there is no such record or it is not in doubt',
      2: 'usage, or a store that no other process sees',
      3: 'the store is out of reach',
    },
    page,
  });
  const taking = takesConfig(command.argument('<id>', 'id of the record', idArgument))
    .addOption(
      new Option('--outcome <outcome>', 'what the upstream says of the write').choices(['committed', 'not-applied']),
    )
    .option('--reason <text>', 'how that was found out, and by whom', reasonArgument)
    .action(async (id: string, file: string | undefined, _options: object, asked: Command) => {
      const { resolveRecord } = await import('./run.js');
      await resolveRecord(id, { ...asked.optsWithGlobals<ResolveOptions>(), file }, io);
    });
  return requireOptions(taking, 'outcome', 'reason');
}

function idArgument(value: string): string {
  if (parseRecordId(value) !== null) return value;
  throw new InvalidArgumentError('Allowed: two parts of 43 characters each, as in the member `record` of an answer.');
}

function reasonArgument(value: string): string {
  if (value.trim() !== '' && value.length <= maxReasonLength) return value;
  throw new InvalidArgumentError(`Allowed: a text of 1 to ${String(maxReasonLength)} characters.`);
}
