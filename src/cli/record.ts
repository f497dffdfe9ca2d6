import type { StartFailure } from '../app/start-failure.js';
import type { Resolution, Resolved } from '../decision/reservation.js';
import { parseRecordId, type ReservationScope } from '../decision/reservation-scope.js';
import { accept, type Result } from '../decision/result.js';
import type { ReservationStore } from '../ports.js';
import { loadChosen } from './chosen-config.js';
import type { ConfigArguments } from './config-argument.js';
import type { Io } from './io.js';
import { fail } from './options.js';
import { recordAsData, recordInWords } from './record-view.js';
import { failStore, openSharedStore } from './shared-store.js';
import { userName } from './user-name.js';

export interface RecordOptions {
  readonly config?: string;
  readonly json?: true;
}

export interface ResolveOptions extends RecordOptions {
  readonly outcome: Resolution;
  readonly reason: string;
}

const noSharedStore = 'keeps reservations in the memory of the proxy: nobody else sees them, and its end forgets them';

/** Prints a record. */
export async function showRecord(id: string, options: RecordOptions & ConfigArguments, io: Io): Promise<void> {
  await withStore(options, io, (store) => show(store, scopeOf(id), id, options, io));
}

/** Settles a write in doubt. */
export async function resolveRecord(id: string, options: ResolveOptions & ConfigArguments, io: Io): Promise<void> {
  const { outcome, reason } = options;
  await withStore(options, io, (store) => resolve(store, scopeOf(id), { id, outcome, reason }, io));
}

/** The id was looked at as an argument. */
function scopeOf(id: string): ReservationScope {
  return { ...(parseRecordId(id) ?? { principal: '', operation: '' }), token: null };
}

/** Opens the store of the config for as long as it is used. */
async function withStore(named: ConfigArguments, io: Io, use: (store: ReservationStore) => Promise<void>): Promise<void> {
  const opened = await open(named, io);
  if (!opened.ok) {
    fail(opened.error, io);
    return;
  }
  try {
    await use(opened.value);
  } finally {
    await opened.value.close();
  }
}

async function open(named: ConfigArguments, io: Io): Promise<Result<ReservationStore, StartFailure>> {
  const loaded = await loadChosen(named, io);
  if (!loaded.ok) return loaded;
  const opened = await openSharedStore(loaded.value.config.store, loaded.value.name, noSharedStore);
  return opened.ok ? accept(opened.value.store) : opened;
}

async function show(store: ReservationStore, scope: ReservationScope, id: string, { json }: RecordOptions, io: Io): Promise<void> {
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
