import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { loadConfig } from '../app/config-source.js';
import type { StartFailure } from '../app/start-failure.js';
import type { Resolution, Resolved } from '../decision/reservation.js';
import { parseRecordId, type ReservationScope } from '../decision/reservation-scope.js';
import { accept, type Result } from '../decision/result.js';
import type { ReservationStore } from '../ports.js';
import type { Io } from './io.js';
import { configOption, fail, jsonOption, sourceOf } from './options.js';
import { recordAsData, recordInWords } from './record-view.js';
import { failStore, openSharedStore } from './shared-store.js';
import { userName } from './user-name.js';

interface Options {
  readonly config: string;
  readonly outcome?: Resolution;
  readonly reason?: string;
  readonly json?: true;
}

const noSharedStore = 'keeps reservations in the memory of the proxy: nobody else sees them, and its end forgets them';

const maxReasonLength = 500;

/** `sallyport record --config FILE show|resolve ID`: reads or resolves a reservation in doubt. */
export function createRecordCommand(io: Io): Command {
  return new Command('record')
    .description('Read or resolve a reservation by its id, which callers, logs and the receiving service name.')
    .addOption(configOption())
    .addArgument(new Argument('<action>', 'what to do').choices(['show', 'resolve']))
    .argument('<id>', 'id of the record', idArgument)
    .addOption(new Option('--outcome <outcome>', 'resolve: what the receiving service says of the write').choices(['committed', 'not-applied']))
    .option('--reason <text>', 'resolve: how that was found out, and by whom', reasonArgument)
    .addOption(jsonOption())
    .addHelpText('after', '\n`resolve` needs --outcome and --reason. `committed` keeps the key taken, `not-applied` frees it for a retry.\n'
      + 'It prints a line of JSON to keep: who, when, which record, what and why.\n'
      + 'Exit code: 0 done, 1 there is no such record or it is not in doubt, 2 usage, or a store that no other process sees, 3 the store is out of reach.')
    .action((action: 'show' | 'resolve', id: string, options: Options) => record(action, id, options, io));
}

function idArgument(value: string): string {
  if (parseRecordId(value) !== null) return value;
  throw new InvalidArgumentError('Allowed: two parts of 43 characters each, as in the member `record` of an answer.');
}

function reasonArgument(value: string): string {
  if (value.trim() !== '' && value.length <= maxReasonLength) return value;
  throw new InvalidArgumentError(`Allowed: a text of 1 to ${String(maxReasonLength)} characters.`);
}

async function record(action: 'show' | 'resolve', id: string, options: Options, io: Io): Promise<void> {
  const { outcome, reason } = options;
  if (action === 'resolve' && (outcome === undefined || reason === undefined)) {
    io.stderr('resolve needs --outcome and --reason: what became of the write, and how you know\n');
    io.exit(2);
    return;
  }
  const opened = await open(options.config, io);
  if (!opened.ok) {
    fail(opened.error, io);
    return;
  }
  const store = opened.value;
  const scope = { ...(parseRecordId(id) ?? { principal: '', operation: '' }), token: null };
  try {
    if (action === 'show') await show(store, scope, id, options, io);
    else if (outcome !== undefined && reason !== undefined) await resolve(store, scope, { id, outcome, reason }, io);
  } finally {
    await store.close();
  }
}

/** Opens the store of a config. */
async function open(configFile: string, io: Io): Promise<Result<ReservationStore, StartFailure>> {
  const loaded = await loadConfig(sourceOf(configFile, io), io.env);
  if (!loaded.ok) return loaded;
  const opened = await openSharedStore(loaded.value.store, configFile, noSharedStore);
  return opened.ok ? accept(opened.value.store) : opened;
}

async function show(store: ReservationStore, scope: ReservationScope, id: string, { json }: Options, io: Io): Promise<void> {
  const shown = await store.show(scope);
  if (!shown.ok) {
    failStore(shown.error, 'show', io);
    return;
  }
  if (shown.value === null) {
    io.stderr(`there is no record ${id}: it was freed, or its time is over\n`);
    io.exit(1);
    return;
  }
  io.stdout(json === true ? `${JSON.stringify(recordAsData(id, shown.value))}\n` : recordInWords(id, shown.value));
  io.exit(0);
}

interface Resolving {
  readonly id: string;
  readonly outcome: Resolution;
  readonly reason: string;
}

const resultWords: Readonly<Record<Resolved, string>> = {
  resolved: 'resolved',
  absent: 'there is no such record: it was freed, or its time is over',
  not_in_doubt: 'it is not in doubt, so that there is nothing to resolve',
  unsupported: 'it was written by another version of Sallyport, which has to resolve it',
};

async function resolve(store: ReservationStore, scope: ReservationScope, { id, outcome, reason }: Resolving, io: Io): Promise<void> {
  const before = await store.show(scope);
  const resolved = before.ok ? await store.resolve(scope, outcome) : before;
  const found = before.ok && before.value !== null ? recordAsData(id, before.value) : { record: id };
  const result = resolved.ok ? resolved.value : resolved.error.mayHaveRun ? 'unanswered' : 'not_asked';
  io.stdout(`${JSON.stringify({ audit: 'record resolve', time: new Date().toISOString(), user: userName(), outcome, reason, result, before: found })}\n`);
  if (!resolved.ok) {
    failStore(resolved.error, 'show', io);
    return;
  }
  io.stderr(`${resultWords[resolved.value]}\n`);
  io.exit(resolved.value === 'resolved' ? 0 : 1);
}
