/**
 * The life of a reservation as data. The memory store runs these functions; the Lua scripts beside the
 * Redis adapter say the same in Redis, and one suite holds both to the same answers.
 */

import { denial, type Denial } from '../denial.js';

/** Version of the stored layout. A record of another version is never overwritten. */
export const recordVersion = 1;

/** ABSENT is the lack of a record. */
export type RecordState = 'pending' | 'completed' | 'tombstone' | 'unknown';

/**
 * How long a release waits for the reserve that it overtook, milliseconds: longer than a network keeps what nobody
 * waits for.
 */
export const overtakingReleaseMs = 300_000;

/**
 * How far ahead of the clock the fence of a freed key may be, milliseconds, for it to be kept until the clock has
 * reached it.
 */
export const longestAheadMs = 31 * 86_400_000;

/** What the upstream answered, as far as it may be shown again. */
export interface StoredResponse {
  readonly status: number;
  /** Raw pairs: name, value, name, value. Empty in a tombstone. */
  readonly headers: readonly string[];
  /** Empty in a tombstone. */
  readonly body: Uint8Array;
  /** What came behind the body, raw pairs. Not there where nothing is kept of it: records of HTTP/1.1 have none. */
  readonly trailers?: readonly string[];
  /** Names the span of the request that it was the response to. Not there where that was not traced. */
  readonly traceparent?: string;
}

/** One record. Times are milliseconds of the store's clock. */
export interface ReservationRecord {
  readonly version: number;
  readonly state: RecordState;
  readonly fingerprint: string;
  /** Name of the route that the write came by, for operators; `null` where it is not known. It decides nothing. */
  readonly route: string | null;
  /** The attempt that owns the record: random, 128 bits. */
  readonly owner: string;
  /** Only grows; an upstream may refuse a lower one. */
  readonly fence: number;
  /** Whether an attempt before this one is in doubt: then this one's release leaves the write in doubt. */
  readonly takenOver: boolean;
  readonly createdAtMs: number;
  /** From then on a pending record is in doubt. */
  readonly leaseEndsAtMs: number;
  /** `null` until the status is known. */
  readonly response: StoredResponse | null;
  readonly expiresAtMs: number;
}

/**
 * A release that did not find its own reservation: the reserve it withdraws may be late, and must not take the key when
 * it arrives. Each attempt has its own, whoever holds the key meanwhile.
 */
interface OvertakingRelease {
  readonly attempt: string;
  readonly expiresAtMs: number;
}

/**
 * What is kept of a record when its key is freed. The next fence is higher, whatever the store's clock says then: an
 * upstream that has seen this one would refuse a lower one.
 */
export interface Freed {
  readonly attempt: string;
  readonly fence: number;
  readonly expiresAtMs: number;
}

/** What one scope holds: what one command sees. */
export interface RecordSlot {
  readonly record: ReservationRecord | null;
  /** Never beside a record. */
  readonly freed: Freed | null;
  /** The attempt that used the single-use token. */
  readonly marker: { readonly attempt: string; readonly expiresAtMs: number } | null;
  readonly withdrawals: readonly OvertakingRelease[];
}

export interface Reserve {
  /** Random 128-bit id of this attempt, base64url. */
  readonly attempt: string;
  /** `null` where the request has no key: then only the marker is taken. */
  readonly key: {
    readonly fingerprint: string;
    readonly route: string;
    /** Milliseconds until a pending record is in doubt. */
    readonly leaseMs: number;
    /** Milliseconds that a result is kept. */
    readonly retentionMs: number;
    /** Whether a record in doubt may be run again, because the upstream deduplicates. */
    readonly takesOver: boolean;
  } | null;
  /** Milliseconds that the token's marker stays; `null` where the token is not single-use. */
  readonly markerTtlMs: number | null;
}

export type Reserved =
  | { readonly kind: 'acquired'; readonly fence: number; readonly takenOver: boolean }
  | { readonly kind: 'in_progress'; readonly retryAfterMs: number }
  | { readonly kind: 'replayed'; readonly response: StoredResponse }
  | { readonly kind: 'tombstone'; readonly status: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'mismatch' }
  | { readonly kind: 'token_replayed' }
  /** A record of another version: 503, nothing written. */
  | { readonly kind: 'unsupported' };

export interface Complete {
  readonly attempt: string;
  readonly fence: number;
  /** Needed where the record was lost and has to be written anew. */
  readonly fingerprint: string;
  readonly state: 'completed' | 'tombstone';
  readonly response: StoredResponse;
  readonly retentionMs: number;
}

/** `fenced`: somebody else owns the record, so the write ran twice. `repaired`: the record had been lost. */
export type Completed = 'completed' | 'repaired' | 'fenced' | 'unsupported';

interface Owned {
  readonly attempt: string;
  readonly fence: number;
}

export interface Mark extends Owned {
  /** Needed where the record was lost and has to be written anew, as is what follows. */
  readonly fingerprint: string;
  readonly route: string;
  readonly retentionMs: number;
}

/** By attempt alone: who got no reply to a reserve knows no fence. */
export interface Release {
  readonly attempt: string;
}

/** `kept`: it is another attempt's, no longer pending, or in doubt by an attempt before. */
export type Released = 'released' | 'kept' | 'unsupported';
/**
 * `repaired`: the record had been lost, and is there again, in doubt. `fenced`: somebody else owns the record, so the
 * write may have run twice. `kept`: it is settled, or an operator has freed the key since.
 */
export type Marked = 'unknown' | 'repaired' | 'fenced' | 'kept' | 'unsupported';

/** What an operator knows of a write in doubt. */
export type Resolution = 'committed' | 'not-applied';
export type Resolved = 'resolved' | 'absent' | 'not_in_doubt' | 'unsupported';

/** A command's effect: the slot afterwards and the reply. */
export interface Step<T> {
  readonly slot: RecordSlot;
  readonly reply: T;
}

/** Drops what has expired. Every command starts with it. */
export function current(slot: RecordSlot, nowMs: number): RecordSlot {
  return {
    record: slot.record !== null && slot.record.expiresAtMs > nowMs ? slot.record : null,
    freed: slot.freed !== null && slot.freed.expiresAtMs > nowMs ? slot.freed : null,
    marker: slot.marker !== null && slot.marker.expiresAtMs > nowMs ? slot.marker : null,
    withdrawals: slot.withdrawals.filter(({ expiresAtMs }) => expiresAtMs > nowMs),
  };
}

/** Takes the record and the token's marker together, before the side effect. */
export function reserve(before: RecordSlot, command: Reserve, nowMs: number): Step<Reserved> {
  const slot = current(before, nowMs);
  if (command.markerTtlMs !== null && slot.marker !== null && slot.marker.attempt !== command.attempt) {
    return { slot, reply: { kind: 'token_replayed' } };
  }
  if (command.key !== null && slot.record !== null && slot.record.version !== recordVersion) {
    return { slot, reply: { kind: 'unsupported' } };
  }
  // Nobody waits for this reply any more.
  if (command.key !== null && slot.withdrawals.some(({ attempt }) => attempt === command.attempt)) {
    return { slot, reply: { kind: 'unsupported' } };
  }
  const marker =
    command.markerTtlMs === null
      ? slot.marker
      : (slot.marker ?? { attempt: command.attempt, expiresAtMs: nowMs + command.markerTtlMs });
  if (command.key === null) {
    return { slot: { ...slot, marker }, reply: { kind: 'acquired', fence: nowMs, takenOver: false } };
  }
  if (slot.record !== null) {
    const step = reserveRecord(slot.record, { ...command.key, attempt: command.attempt }, nowMs);
    return { slot: { ...slot, record: step.record, marker }, reply: step.reply };
  }
  const step = acquire({ ...command.key, attempt: command.attempt }, nowMs, slot.freed?.fence ?? 0, false);
  return { slot: { ...slot, record: step.record, freed: null, marker }, reply: step.reply };
}

function reserveRecord(
  record: ReservationRecord,
  command: NonNullable<Reserve['key']> & { readonly attempt: string },
  nowMs: number,
): { readonly record: ReservationRecord; readonly reply: Reserved } {
  // Before the state is looked at: a different request learns nothing of how the first one went.
  if (record.fingerprint !== command.fingerprint) return { record, reply: { kind: 'mismatch' } };
  // The client library sent the command again after a reconnect: the same attempt, not a second one.
  if (record.state === 'pending' && record.owner === command.attempt) {
    return { record, reply: { kind: 'acquired', fence: record.fence, takenOver: record.takenOver } };
  }
  // A lease that is over is not written down: its owner may know yet that nothing was sent, and release it.
  switch (inDoubtAfterLease(record, nowMs).state) {
    case 'pending':
      return { record, reply: { kind: 'in_progress', retryAfterMs: record.leaseEndsAtMs - nowMs } };
    case 'unknown':
      return command.takesOver ? acquire(command, nowMs, record.fence, true) : { record, reply: { kind: 'unknown' } };
    case 'completed':
      return { record, reply: { kind: 'replayed', response: record.response ?? noResponse } };
    case 'tombstone':
      return { record, reply: { kind: 'tombstone', status: (record.response ?? noResponse).status } };
  }
}

/** Stands in for a response that a damaged record lacks: no body, and a status nobody sends. */
const noResponse: StoredResponse = { status: 0, headers: [], body: new Uint8Array() };

function acquire(
  command: NonNullable<Reserve['key']> & { readonly attempt: string },
  nowMs: number,
  lastFence: number,
  takenOver: boolean,
): { readonly record: ReservationRecord; readonly reply: Reserved } {
  const fence = Math.max(lastFence + 1, nowMs);
  const record: ReservationRecord = {
    version: recordVersion,
    state: 'pending',
    fingerprint: command.fingerprint,
    route: command.route,
    owner: command.attempt,
    fence,
    takenOver,
    createdAtMs: nowMs,
    leaseEndsAtMs: nowMs + command.leaseMs,
    response: null,
    expiresAtMs: nowMs + command.leaseMs + command.retentionMs,
  };
  return { record, reply: { kind: 'acquired', fence, takenOver } };
}

/** A pending record whose lease is over may have run: nobody knows. */
export function inDoubtAfterLease(record: ReservationRecord, nowMs: number): ReservationRecord {
  return record.state === 'pending' && nowMs >= record.leaseEndsAtMs ? { ...record, state: 'unknown' } : record;
}

/** Keeps what the upstream answered. The only way to a result, and only for the attempt that owns the record. */
export function complete(before: RecordSlot, command: Complete, nowMs: number): Step<Completed> {
  const slot = current(before, nowMs);
  const { record } = slot;
  if (record === null) {
    const repaired: ReservationRecord = {
      version: recordVersion,
      state: command.state,
      fingerprint: command.fingerprint,
      route: null,
      owner: command.attempt,
      fence: command.fence,
      takenOver: false,
      createdAtMs: nowMs,
      leaseEndsAtMs: nowMs,
      response: command.response,
      expiresAtMs: nowMs + command.retentionMs,
    };
    return { slot: { ...slot, record: repaired, freed: null }, reply: 'repaired' };
  }
  if (record.version !== recordVersion) return { slot, reply: 'unsupported' };
  if (!owns(record, command)) return { slot, reply: 'fenced' };
  if (record.state === 'completed' || record.state === 'tombstone') return { slot, reply: 'completed' };
  const completed: ReservationRecord = {
    ...record,
    state: command.state,
    response: command.response,
    expiresAtMs: nowMs + command.retentionMs,
  };
  return { slot: { ...slot, record: completed }, reply: 'completed' };
}

/**
 * Frees the key: only with proof that nothing was dispatched, or a status that means *not applied*. That holds after
 * the lease, too. Where its own reservation is not there, the reserve that it follows may still be on its way: it is
 * kept from taking the key. What it took over is in doubt again, for the attempt before may have run.
 */
export function release(before: RecordSlot, command: Release, nowMs: number): Step<Released> {
  const slot = current(before, nowMs);
  const { record, freed } = slot;
  if (record !== null && record.version !== recordVersion) return { slot, reply: 'unsupported' };
  if (record?.owner === command.attempt && record.state === 'pending') {
    if (record.takenOver) return { slot: { ...slot, record: { ...record, state: 'unknown' } }, reply: 'kept' };
    return { slot: { ...slot, record: null, freed: freedOf(record, nowMs) }, reply: 'released' };
  }
  const expiresAtMs = nowMs + overtakingReleaseMs;
  const others = slot.withdrawals.filter(({ attempt }) => attempt !== command.attempt);
  return {
    slot: {
      ...slot,
      // The store has both under one key, which lasts as long as the longer of the two.
      freed: freed === null ? null : { ...freed, expiresAtMs: Math.max(freed.expiresAtMs, expiresAtMs) },
      withdrawals: [...others, { attempt: command.attempt, expiresAtMs }],
    },
    reply: record === null ? 'released' : 'kept',
  };
}

/**
 * Kept until the clock has passed the fence and for some minutes more: no step back of the clock within them makes a
 * fence fall.
 */
function freedOf({ owner, fence }: ReservationRecord, nowMs: number): Freed {
  return {
    attempt: owner,
    fence,
    expiresAtMs: nowMs + Math.min(longestAheadMs, Math.max(0, fence - nowMs)) + overtakingReleaseMs,
  };
}

/**
 * Says that the write may have happened: nobody runs it again until an operator or the upstream knows. A record that
 * the store has lost is written anew, unless its key was freed since: with the mark's fence, or with the later one of a
 * mark that was written anew.
 */
export function mark(before: RecordSlot, command: Mark, nowMs: number): Step<Marked> {
  const slot = current(before, nowMs);
  const { record, freed } = slot;
  if (record === null) {
    if (freed?.attempt === command.attempt && freed.fence >= command.fence) return { slot, reply: 'kept' };
    const repaired: ReservationRecord = {
      version: recordVersion,
      state: 'unknown',
      fingerprint: command.fingerprint,
      route: command.route,
      owner: command.attempt,
      fence: Math.max(command.fence, freed?.fence ?? 0),
      takenOver: false,
      createdAtMs: nowMs,
      leaseEndsAtMs: nowMs,
      response: null,
      expiresAtMs: nowMs + command.retentionMs,
    };
    return { slot: { ...slot, record: repaired, freed: null }, reply: 'repaired' };
  }
  if (record.version !== recordVersion) return { slot, reply: 'unsupported' };
  if (!owns(record, command)) return { slot, reply: 'fenced' };
  if (record.state !== 'pending' && record.state !== 'unknown') return { slot, reply: 'kept' };
  return { slot: { ...slot, record: { ...record, state: 'unknown' } }, reply: 'unknown' };
}

/** An operator settles a record in doubt: `committed` keeps the key taken, `not-applied` frees it. */
export function resolve(before: RecordSlot, resolution: Resolution, nowMs: number): Step<Resolved> {
  const slot = current(before, nowMs);
  const found = slot.record;
  if (found === null) return { slot, reply: 'absent' };
  if (found.version !== recordVersion) return { slot, reply: 'unsupported' };
  const record = inDoubtAfterLease(found, nowMs);
  if (record.state !== 'unknown') return { slot, reply: 'not_in_doubt' };
  if (resolution === 'not-applied') {
    return { slot: { ...slot, record: null, freed: freedOf(record, nowMs) }, reply: 'resolved' };
  }
  return { slot: { ...slot, record: { ...record, state: 'tombstone', response: noResponse } }, reply: 'resolved' };
}

/**
 * A record that is no longer pending is its owner's whatever the fence: a mark that was written anew has that of an
 * attempt which was released in between.
 */
function owns(record: ReservationRecord, command: Owned): boolean {
  return record.owner === command.attempt && (record.state !== 'pending' || record.fence === command.fence);
}

/** The longest that a caller is told to wait for a write in progress, seconds: most end long before their lease. */
const longestRetryAfterS = 5;

/** Why a request that found its key or token taken does not go on. */
export function refusalOf(
  reserved: Exclude<Reserved, { kind: 'acquired' | 'replayed' }>,
  recordId: string | null,
): Denial {
  const record = recordId === null ? {} : { record: recordId };
  switch (reserved.kind) {
    case 'in_progress': {
      const retryAfterS = Math.min(longestRetryAfterS, Math.max(1, Math.ceil(reserved.retryAfterMs / 1000)));
      return { reason: 'idempotency_in_progress', retryAfterS, ...record };
    }
    case 'unknown':
      return { reason: 'idempotency_outcome_unknown', ...record };
    case 'tombstone':
      return { reason: 'idempotency_not_replayable', ...record };
    case 'mismatch':
      return denial('idempotency_key_reused');
    case 'token_replayed':
      return denial('token_replayed');
    case 'unsupported':
      return denial('store_unavailable');
  }
}
