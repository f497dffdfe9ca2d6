import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseRecordId } from '../../decision/reservation-scope.js';
import { configNote, takesConfig } from '../config-argument.js';
import { defineCommand, requireOptions } from '../definition.js';
import type { Io } from '../io.js';
import { jsonOption } from '../options.js';
import type { RecordOptions, ResolveOptions } from '../record.js';

const maxReasonLength = 500;
const page = 'docs/idempotency.md#a-write-in-doubt';

/** `sallyport record show|resolve ID`: reads or resolves a reservation in doubt. */
export function createRecordCommand(io: Io): Command {
  const command = defineCommand({
    name: 'record',
    about: 'Read or resolve a reservation by its id, which callers, logs and the receiving service name.',
    examples: [
      ['one record', 'sallyport record show ID'],
      ['the write was applied: the key stays taken', 'sallyport record resolve ID --outcome committed --reason "order 17 is there"'],
    ],
    notes: [configNote],
    exitCodes: {
      0: 'done', 1: 'there is no such record or it is not in doubt', 2: 'usage, or a store that no other process sees', 3: 'the store is out of reach',
    },
    page,
  });
  // Before the action, too: `record --config FILE show ID`.
  return command.option('--config <file>', 'the config').addOption(jsonOption())
    .addCommand(showCommand(io).summary('show one record'))
    .addCommand(resolveCommand(io).summary('settle a write in doubt'))
    .helpCommand('help [command]', 'say more about one of them');
}

function showCommand(io: Io): Command {
  const command = defineCommand({
    name: 'show',
    about: 'Show one record: its state, its times and who owns it. Never what the receiving service answered.',
    examples: [['for people', 'sallyport record show ID'], ['for programs', 'sallyport record show ID --json']],
    notes: [configNote],
    exitCodes: { 0: 'shown', 1: 'there is no such record', 2: 'usage, or a store that no other process sees', 3: 'the store is out of reach' },
    page,
  });
  return takesConfig(command.argument('<id>', 'id of the record', idArgument))
    .addOption(jsonOption())
    .action(async (id: string, file: string | undefined, _options: object, asked: Command) => {
      const { showRecord } = await import('../record.js');
      await showRecord(id, { ...asked.optsWithGlobals<RecordOptions>(), file }, io);
    });
}

function resolveCommand(io: Io): Command {
  const command = defineCommand({
    name: 'resolve',
    about: 'Settle a write in doubt: "committed" keeps the key taken, "not-applied" frees it for a retry. Prints a line of JSON to keep: who, when, '
      + 'which record, what and why.',
    examples: [
      ['the write was applied', 'sallyport record resolve ID --outcome committed --reason "order 17 is there"'],
      ['it was not', 'sallyport record resolve ID --outcome not-applied --reason "no such order"'],
    ],
    notes: [configNote],
    exitCodes: {
      0: 'resolved', 1: 'there is no such record or it is not in doubt', 2: 'usage, or a store that no other process sees', 3: 'the store is out of reach',
    },
    page,
  });
  const taking = takesConfig(command.argument('<id>', 'id of the record', idArgument))
    .addOption(new Option('--outcome <outcome>', 'what the receiving service says of the write').choices(['committed', 'not-applied']))
    .option('--reason <text>', 'how that was found out, and by whom', reasonArgument)
    .action(async (id: string, file: string | undefined, _options: object, asked: Command) => {
      const { resolveRecord } = await import('../record.js');
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
