import { startFailure, type StartFailure } from '../../../app/start-failure.js';
import type { OpenStore } from '../../../app/store/store.js';
import type { Resolution, Resolved } from '../../../decision/idempotency/record.js';
import { parseRecordId, type ReservationScope } from '../../../decision/idempotency/scope.js';
import type { ReservationStore, StorePart, UnsettledRecords } from '../../../ports/idempotency.js';
import { loadChosen } from '../../config/load.js';
import type { ConfigArguments } from '../../config/argument.js';
import type { Io } from '../../io.js';
import { fail } from '../../options.js';
import { listAsData, listInWords, recordAsData, recordInWords } from './format.js';
import { failStore, openSharedStore } from '../../shared-store.js';
import { userName } from '../../process-io.js';

export interface RecordOptions {
  readonly config?: string;
  readonly json?: true;
}

export interface ListOptions extends RecordOptions {
  readonly inDoubt?: true;
  readonly limit: number;
}

export interface ResolveOptions extends RecordOptions {
  readonly outcome: Resolution;
  readonly reason: string;
}

const noSharedStore = 'keeps reservations in the memory of the proxy: nobody else sees them, and its end forgets them';

/** Prints the records that nobody has settled. */
export async function listRecords(options: ListOptions & ConfigArguments, io: Io): Promise<void> {
  await withStore('all', options, io, ({ unsettled }) => list(unsettled, options, io));
}

/** Prints a record. */
export async function showRecord(id: string, options: RecordOptions & ConfigArguments, io: Io): Promise<void> {
  const scope = scopeOf(id);
  await withStore(scope, options, io, ({ store }) => show(store, scope, id, options, io));
}

/** Settles a write in doubt. */
export async function resolveRecord(id: string, options: ResolveOptions & ConfigArguments, io: Io): Promise<void> {
  const { outcome, reason } = options;
  const scope = scopeOf(id);
  await withStore(scope, options, io, ({ store }) => resolve(store, scope, { id, outcome, reason }, io));
}

/** The id was looked at as an argument. */
function scopeOf(id: string): ReservationScope {
  return { ...(parseRecordId(id) ?? { principal: '', operation: '' }), token: null };
}

/** Opens the store of the config for as long as this part of it is used. */
async function withStore(
  part: StorePart,
  named: ConfigArguments,
  io: Io,
  use: (opened: OpenStore) => Promise<void>,
): Promise<void> {
  const loaded = await loadChosen(named, io);
  const opened = loaded.ok
    ? await openSharedStore(loaded.value.config.store, loaded.value.name, noSharedStore, part)
    : loaded;
  if (!opened.ok) {
    fail(opened.error, io);
    return;
  }
  try {
    await use(opened.value);
  } finally {
    await opened.value.store.close();
  }
}

async function list(unsettled: UnsettledRecords | null, { inDoubt, limit, json }: ListOptions, io: Io): Promise<void> {
  const progress = showScan(io);
  const listed = await unsettled?.list({ inDoubtOnly: inDoubt === true, most: limit, onProgress: progress.update });
  progress.clear();
  if (listed?.ok !== true) {
    fail(listFailure(listed?.error.reason ?? noSharedStore), io);
    return;
  }
  const { records, isWhole, keys, unreadable } = listed.value;
  io.stdout(json === true ? `${JSON.stringify(listAsData(listed.value))}\n` : listInWords(records));
  const what = inDoubt === true ? 'in doubt' : 'unsettled';
  if (!isWhole) io.stderr(`there are more: the search ended at --limit ${String(limit)}\n`);
  else if (json !== true) {
    io.stderr(`${records.length === 0 ? 'none' : String(records.length)} ${what}, of ${String(keys)} records\n`);
  }
  if (unreadable > 0) {
    io.stderr(`warning: ${String(unreadable)} records could not be read: docs/storage.md, when something is wrong\n`);
  }
  io.exit(0);
}

function listFailure(reason: string): StartFailure {
  const missing = /NOPERM/.test(reason)
    ? { hints: ['its user needs the right +scan for this command: docs/storage.md'] }
    : {};
  return { ...startFailure('unavailable', `the store could not be looked through: ${reason}`), ...missing };
}

/** What a search through millions of keys shows a terminal; it takes a while. */
function showScan(io: Io): {
  readonly update: (progress: { readonly keys: number; readonly found: number }) => void;
  readonly clear: () => void;
} {
  const isTerminal = (io.columns?.('stderr') ?? null) !== null;
  return {
    update: ({ keys, found }) => {
      if (isTerminal) io.stderr(`\r\x1b[K${String(keys)} records looked at, ${String(found)} found`);
    },
    clear: () => {
      if (isTerminal) io.stderr('\r\x1b[K');
    },
  };
}

async function show(
  store: ReservationStore,
  scope: ReservationScope,
  id: string,
  { json }: RecordOptions,
  io: Io,
): Promise<void> {
  const shown = await store.show(scope);
  if (!shown.ok) {
    failStore(shown.error, null, io);
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

async function resolve(
  store: ReservationStore,
  scope: ReservationScope,
  { id, outcome, reason }: Resolving,
  io: Io,
): Promise<void> {
  const before = await store.show(scope);
  const resolved = before.ok ? await store.resolve(scope, outcome) : before;
  const found = before.ok && before.value !== null ? recordAsData(id, before.value) : { record: id };
  const mayHaveRun = before.ok && !resolved.ok && resolved.error.mayHaveRun;
  const result = resolved.ok ? resolved.value : mayHaveRun ? 'unanswered' : 'not_asked';
  io.stdout(
    `${JSON.stringify({ audit: 'record resolve', time: new Date().toISOString(), user: userName(), outcome, reason, result, before: found })}\n`,
  );
  if (!resolved.ok) {
    failStore(resolved.error, before.ok ? 'show' : null, io);
    return;
  }
  io.stderr(`${resultWords[resolved.value]}\n`);
  io.exit(resolved.value === 'resolved' ? 0 : 1);
}
