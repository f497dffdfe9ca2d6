import { userInfo } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { Argument, Command, InvalidArgumentError, Option } from 'commander';
import { localFiles } from '../adapters/files.js';
import { loadConfig } from '../app/config-source.js';
import { startFailure, type StartFailure } from '../app/start-failure.js';
import { openStore, readStoreFiles } from '../app/store.js';
import type { RedisStoreSettings } from '../config/compiled.js';
import { escapeControls } from '../config/problems.js';
import type { Resolution, Resolved } from '../decision/reservation.js';
import { parseRecordId, type ReservationScope } from '../decision/reservation-scope.js';
import { accept, refuse, type Result } from '../decision/result.js';
import type { Log, ReservationStore, StoreFailure } from '../ports.js';
import type { Io } from './io.js';
import { configOption, fail, jsonOption, sourceOf } from './options.js';
import { recordAsData, recordInWords } from './record-view.js';

interface Options {
  readonly config: string;
  readonly outcome?: Resolution;
  readonly reason?: string;
  readonly json?: true;
}

/** How long the store may take to be there, and to answer, milliseconds: an operator waits longer than a caller. */
const reachWithinMs = 3_000;
const answerWithinMs = 5_000;
const lookEveryMs = 20;

const maxReasonLength = 500;

/** Everything it has to say is said by what this command prints. */
const silent: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

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

/** Opens the store of a config. It may be unfit: reading and resolving make nothing worse. */
async function open(configFile: string, io: Io): Promise<Result<ReservationStore, StartFailure>> {
  const loaded = await loadConfig(sourceOf(configFile, io), io.env);
  if (!loaded.ok) return loaded;
  const settings = loaded.value.store;
  if (settings === null) return refuse(startFailure('unreadable', `${configFile} configures no store`));
  if (settings.kind === 'memory') {
    const what = 'keeps reservations in the memory of the proxy: nobody else sees them, and its end forgets them';
    return refuse(startFailure('unreadable', `${configFile} ${what}`));
  }
  const files = await readStoreFiles(settings, localFiles);
  if (!files.ok) return files;
  const lenient: RedisStoreSettings = { ...settings, replicas: 0, durability: 'none', settleTimeoutMs: answerWithinMs };
  const { store } = openStore(lenient, files.value.ca, { log: silent, maxTokenLifetimeMs: () => 0 });
  const deadline = performance.now() + reachWithinMs;
  while (!store.state().up && performance.now() < deadline) await delay(lookEveryMs);
  if (store.state().up) return accept(store);
  await store.close();
  return refuse(startFailure('unavailable', `the store is out of reach: ${store.state().problem ?? 'no answer'}`));
}

async function show(store: ReservationStore, scope: ReservationScope, id: string, { json }: Options, io: Io): Promise<void> {
  const shown = await store.show(scope);
  if (!shown.ok) {
    failStore(shown.error, io);
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
    failStore(resolved.error, io);
    return;
  }
  io.stderr(`${resultWords[resolved.value]}\n`);
  io.exit(resolved.value === 'resolved' ? 0 : 1);
}

function failStore({ reason, mayHaveRun }: StoreFailure, io: Io): void {
  const doubt = mayHaveRun ? '; it may have taken effect: look with show' : '';
  fail(startFailure('unavailable', escapeControls(`the store gave no answer: ${reason}${doubt}`)), io);
}

/** In a container the user may have a number and no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${String(process.getuid?.() ?? 'unknown')}`;
  }
}
