import { timestamp } from '../../../lib/timestamp.js';
import { escapeControls } from '../../../lib/text.js';
import { inDoubtAfterLease, type RecordState } from '../../../decision/idempotency/record.js';
import type { ShownRecord, UnsettledList, UnsettledRecord } from '../../../ports/idempotency.js';

/** A record for programs. Never what the upstream answered, but for its status. */
interface RecordData {
  readonly record: string;
  readonly state: RecordState;
  readonly version: number;
  readonly created_at: string;
  readonly lease_ends_at: string;
  readonly expires_at: string;
  /** What the upstream answered; `null` where that is not known. */
  readonly status: number | null;
  readonly fence: number;
  /** The attempt that owns the record. */
  readonly owner: string;
  /** Name of the route; `null` where it is not known. */
  readonly route: string | null;
  /** Whether an attempt before this one is in doubt, too. */
  readonly taken_over: boolean;
  /** The store's time, which the others are told in. */
  readonly store_time: string;
}

const meanings: Readonly<Record<RecordState, string>> = {
  pending: 'in progress: its attempt is under way, or ended without a word; in doubt once the lease ends',
  completed: 'completed: a retry gets the kept answer',
  tombstone: 'completed: the answer is not kept, so that a retry gets 409',
  unknown:
    'in doubt: nobody knows whether the write was applied; a retry gets 409 until it is resolved, or is sent again where the upstream deduplicates',
};

/** Writes a record as JSON holds it. */
export function recordAsData(id: string, shown: ShownRecord): RecordData {
  const { nowMs } = shown;
  const record = inDoubtAfterLease(shown.record, nowMs);
  return {
    record: id,
    state: record.state,
    version: record.version,
    created_at: timestamp(record.createdAtMs),
    lease_ends_at: timestamp(record.leaseEndsAtMs),
    expires_at: timestamp(record.expiresAtMs),
    // An operator who resolves a record knows no status: it is 0 then.
    status: record.response === null || record.response.status === 0 ? null : record.response.status,
    fence: record.fence,
    owner: record.owner,
    route: record.route,
    taken_over: record.takenOver,
    store_time: timestamp(nowMs),
  };
}

/** Writes a record for people. */
export function recordInWords(id: string, shown: ShownRecord): string {
  const { nowMs, record } = shown;
  const data = recordAsData(id, shown);
  const lines: readonly (readonly [string, string])[] = [
    ['record', id],
    ['state', meanings[data.state]],
    ['route', data.route ?? 'not known'],
    ['created', `${data.created_at}, ${distance(record.createdAtMs - nowMs)}`],
    ['lease ends', `${data.lease_ends_at}, ${distance(record.leaseEndsAtMs - nowMs)}`],
    ['expires', `${data.expires_at}, ${distance(record.expiresAtMs - nowMs)}`],
    ['status', data.status === null ? 'not known' : String(data.status)],
    ['fence', String(data.fence)],
    ['owner', data.owner],
    ...(data.taken_over ? [['attempts', 'more than one: one before this is in doubt, too'] as const] : []),
  ];
  return lines.map(([name, value]) => `${name.padEnd(12)}${value}\n`).join('');
}

/** Unsettled records for programs. */
export function listAsData({ records, isWhole, keys, unreadable }: UnsettledList): object {
  return { records: records.map(({ id, shown }) => recordAsData(id, shown)), whole: isWhole, keys, unreadable };
}

/** Unsettled records for people, a line each, the oldest first. */
export function listInWords(records: readonly UnsettledRecord[]): string {
  return records
    .map(({ id, shown }) => {
      const { record, nowMs } = shown;
      const { state, route, taken_over: takenOver } = recordAsData(id, shown);
      const parts = [
        id,
        state === 'unknown' ? 'in doubt' : 'in progress',
        `created ${distance(record.createdAtMs - nowMs)}`,
        `expires ${distance(record.expiresAtMs - nowMs)}`,
        `route ${route ?? 'not known'}`,
        ...(takenOver ? ['more than one attempt'] : []),
      ];
      return `${escapeControls(parts.join('  '))}\n`;
    })
    .join('');
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

function distance(ms: number): string {
  const [unit, length] = units.find(([, size]) => Math.abs(ms) >= size) ?? ['s', 1_000];
  const text = `${String(Math.floor(Math.abs(ms) / length))} ${unit}`;
  return ms < 0 ? `${text} ago` : `in ${text}`;
}
