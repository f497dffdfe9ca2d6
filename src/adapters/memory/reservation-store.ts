import {
  complete,
  current,
  mark,
  release,
  reserve,
  resolve,
  type Freed,
  type ReservationRecord,
  type RecordSlot,
  type Step,
} from '../../decision/idempotency/record.js';
import type { ReservationScope } from '../../decision/idempotency/scope.js';
import { accept, refuse } from '../../lib/result.js';
import type { Clock } from '../../ports/system.js';
import type { ReservationStore, StoreFailure } from '../../ports/idempotency.js';

/** Bounds of the store. What has not expired is never evicted: a full store refuses. */
export interface MemoryStoreLimits {
  /** Records, markers, keys with withdrawals and keys that were freed, together. */
  readonly maxEntries: number;
  /** Bytes of kept responses; what was reserved before is still completed beyond it. */
  readonly maxBytes: number;
}

export const memoryStoreLimits: MemoryStoreLimits = { maxEntries: 100_000, maxBytes: 64 * 1024 * 1024 };

/** How often what has expired is dropped, milliseconds. */
const sweepEveryMs = 5_000;

const full: StoreFailure = { kind: 'full', reason: 'the memory store is full', mayHaveRun: false };

/** Keeps reservations in this process: for development and tests, forgotten at exit. */
export function createMemoryStore(
  clock: Clock,
  limits: MemoryStoreLimits = memoryStoreLimits,
  everyMs = sweepEveryMs,
): ReservationStore {
  const records = new Map<string, ReservationRecord>();
  const markers = new Map<string, NonNullable<RecordSlot['marker']>>();
  const withdrawals = new Map<string, RecordSlot['withdrawals']>();
  const freed = new Map<string, Freed>();
  let bytes = 0;
  /** Nothing expires before: a full store need not look through everything for each request. */
  let soonestMs = Infinity;

  const timer = setInterval(sweep, everyMs);
  timer.unref();

  return {
    reserve: (scope, command) => {
      if (isFull() && clock.now() >= soonestMs) sweep();
      if (isFull() && isNew(scope)) return Promise.resolve(refuse(full));
      return Promise.resolve(
        accept({ reserved: step(scope, (slot, now) => reserve(slot, command, now)), confirmedReplicas: null }),
      );
    },
    complete: (scope, command) => change(scope, (slot, now) => complete(slot, command, now)),
    release: (scope, command) => change(scope, (slot, now) => release(slot, command, now)),
    mark: (scope, command) => change(scope, (slot, now) => mark(slot, command, now)),
    resolve: (scope, resolution) => change(scope, (slot, now) => resolve(slot, resolution, now)),
    show: (scope) => {
      const { record } = current(read(scope), clock.now());
      return Promise.resolve(accept(record === null ? null : { record, nowMs: clock.now() }));
    },
    state: () => ({ kind: 'memory', up: true, problem: null, connectedReplicas: null, servers: [], failovers: 0 }),
    problemOf: () => null,
    issuedBeforeFloorS: () => null,
    // Nothing takes its place: it ends with the process.
    onFailover: null,
    close: () => {
      clearInterval(timer);
      return Promise.resolve();
    },
  };

  function change<T>(
    scope: ReservationScope,
    run: (slot: RecordSlot, nowMs: number) => Step<T>,
  ): Promise<{ readonly ok: true; readonly value: T }> {
    return Promise.resolve(accept(step(scope, run)));
  }

  function step<T>(scope: ReservationScope, run: (slot: RecordSlot, nowMs: number) => Step<T>): T {
    const { slot, reply: value } = run(read(scope), clock.now());
    write(scope, slot);
    return value;
  }

  function read(scope: ReservationScope): RecordSlot {
    return {
      record: scope.operation === null ? null : (records.get(recordKey(scope)) ?? null),
      marker: scope.token === null ? null : (markers.get(markerKey(scope)) ?? null),
      withdrawals: scope.operation === null ? [] : (withdrawals.get(recordKey(scope)) ?? []),
      freed: scope.operation === null ? null : (freed.get(recordKey(scope)) ?? null),
    };
  }

  function write(scope: ReservationScope, slot: RecordSlot): void {
    if (scope.operation !== null) {
      writeRecord(recordKey(scope), slot.record);
      writeWithdrawals(recordKey(scope), slot.withdrawals);
      writeFreed(recordKey(scope), slot.freed);
    }
    if (scope.token !== null) writeMarker(markerKey(scope), slot.marker);
    const ends = [slot.record, slot.marker, slot.freed].map((entry) => entry?.expiresAtMs ?? Infinity);
    soonestMs = Math.min(soonestMs, ...ends, soonestOf(slot.withdrawals));
  }

  function writeMarker(key: string, marker: RecordSlot['marker']): void {
    if (marker === null) markers.delete(key);
    else markers.set(key, marker);
  }

  function writeWithdrawals(key: string, left: RecordSlot['withdrawals']): void {
    if (left.length === 0) withdrawals.delete(key);
    else withdrawals.set(key, left);
  }

  function writeFreed(key: string, left: Freed | null): void {
    if (left === null) freed.delete(key);
    else freed.set(key, left);
  }

  function writeRecord(key: string, record: ReservationRecord | null): void {
    bytes -= sizeOf(records.get(key) ?? null);
    bytes += sizeOf(record);
    if (record === null) records.delete(key);
    else records.set(key, record);
  }

  function isFull(): boolean {
    return records.size + markers.size + withdrawals.size + freed.size >= limits.maxEntries || bytes >= limits.maxBytes;
  }

  function isNew(scope: ReservationScope): boolean {
    const slot = current(read(scope), clock.now());
    return (
      (scope.operation !== null && slot.record === null && slot.freed === null) ||
      (scope.token !== null && slot.marker === null)
    );
  }

  function sweep(): void {
    const now = clock.now();
    for (const [key, record] of records) if (record.expiresAtMs <= now) writeRecord(key, null);
    for (const [key, marker] of markers) if (marker.expiresAtMs <= now) markers.delete(key);
    for (const [key, all] of withdrawals) {
      writeWithdrawals(
        key,
        all.filter(({ expiresAtMs }) => expiresAtMs > now),
      );
    }
    for (const [key, { expiresAtMs }] of freed) if (expiresAtMs <= now) freed.delete(key);
    soonestMs = Infinity;
    for (const entries of [records, markers, freed]) {
      for (const { expiresAtMs } of entries.values()) soonestMs = Math.min(soonestMs, expiresAtMs);
    }
    for (const all of withdrawals.values()) soonestMs = Math.min(soonestMs, soonestOf(all));
  }
}

function recordKey(scope: ReservationScope): string {
  return `${scope.principal}.${scope.operation ?? ''}`;
}

function markerKey(scope: ReservationScope): string {
  return `${scope.principal}.${scope.token ?? ''}`;
}

function soonestOf(withdrawals: RecordSlot['withdrawals']): number {
  return Math.min(...withdrawals.map(({ expiresAtMs }) => expiresAtMs));
}

function sizeOf(record: ReservationRecord | null): number {
  const response = record?.response ?? null;
  if (response === null) return 0;
  return response.body.byteLength + response.headers.reduce((sum, text) => sum + text.length, 0);
}
