/** Slots of the store and commands to them, as the tests of each command use them. */
import {
  recordVersion,
  overtakingReleaseMs,
  type Complete,
  type Mark,
  type RecordState,
  type ReservationRecord,
  type Reserve,
  type RecordSlot,
  type StoredResponse,
} from '../../../src/decision/idempotency/record.js';

export const now = 1_800_000_000_000;
export const response: StoredResponse = { status: 201, headers: ['ETag', '"1"'], body: Buffer.from('made') };
export const noResponse: StoredResponse = { status: 0, headers: [], body: new Uint8Array() };
export const states: readonly RecordState[] = ['pending', 'completed', 'tombstone', 'unknown'];

export function recordOf(change: Partial<ReservationRecord> = {}): ReservationRecord {
  return {
    version: recordVersion,
    state: 'pending',
    fingerprint: 'f',
    route: 'create-order',
    owner: 'mine',
    fence: now - 500,
    takenOver: false,
    createdAtMs: now - 500,
    leaseEndsAtMs: now + 1_000,
    response: null,
    expiresAtMs: now + 60_000,
    ...change,
  };
}

export function slotOf(change: Partial<ReservationRecord> | null, marker: string | null = null): RecordSlot {
  return {
    record: change === null ? null : recordOf(change),
    marker: marker === null ? null : { attempt: marker, expiresAtMs: now + 10_000 },
    withdrawals: [],
    freed: null,
  };
}

/** A free key that some attempts have withdrawn from. */
export function withdrawnBy(...attempts: readonly string[]): RecordSlot {
  return { ...slotOf(null), withdrawals: attempts.map((attempt) => ({ attempt, expiresAtMs: now + 1 })) };
}

export function reserveBy(
  attempt: string,
  key: Partial<NonNullable<Reserve['key']>> | null = {},
  markerTtlMs: number | null = null,
): Reserve {
  const asked = {
    fingerprint: 'f',
    route: 'create-order',
    leaseMs: 5_000,
    retentionMs: 60_000,
    takesOver: false,
    ...key,
  };
  return { attempt, key: key === null ? null : asked, markerTtlMs };
}

export function completeBy(attempt: string, fence: number, change: Partial<Complete> = {}): Complete {
  return { attempt, fence, fingerprint: 'f', state: 'completed', response, retentionMs: 90_000, ...change };
}

/** A free key whose last holder had this fence. */
export function freedBy(attempt: string, fence: number): RecordSlot {
  return { ...slotOf(null), freed: { attempt, fence, expiresAtMs: Math.max(now, fence) + overtakingReleaseMs } };
}

export function markBy(attempt: string, fence: number): Mark {
  return { attempt, fence, fingerprint: 'f', route: 'create-order', retentionMs: 90_000 };
}

export const acquiredNow = { kind: 'acquired', fence: now, takenOver: false };
