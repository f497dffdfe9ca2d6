import type { RecordState } from '../../decision/idempotency/record.js';
import { parseRecordId } from '../../decision/idempotency/scope.js';
import type { Clock, Timers } from '../../ports/system.js';
import type { ReservationStore } from '../../ports/idempotency.js';

/**
 * The writes of this process that are in doubt, until somebody resolves them: what the age in the metrics comes from.
 */
interface DoubtfulWrites {
  /** A write is in doubt from now on. */
  readonly add: (recordId: string) => void;
  /** Milliseconds since the oldest one came into doubt; `null` where there is none. */
  readonly oldestMs: () => number | null;
  /** The oldest ones, so many at most; `ageMs` since each came into doubt. */
  readonly oldest: (most: number) => readonly DoubtfulWrite[];
  readonly close: () => void;
}

export interface DoubtfulWrite {
  readonly recordId: string;
  readonly ageMs: number;
}

interface DoubtfulWritesDeps {
  readonly store: Pick<ReservationStore, 'show'>;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Milliseconds between two looks at the store. */
  readonly lookEveryMs?: number;
  readonly limit?: number;
}

/** A resolved record leaves the metrics within half a minute. */
const lookEveryMs = 30_000;

/** The oldest are kept: they are what the alarm is about. */
const limit = 1_000;

/**
 * The states of a write that is not settled. A record is still `pending` after its lease until somebody asks for it.
 */
const unsettled: ReadonlySet<RecordState> = new Set(['unknown', 'pending']);

export function createDoubtfulWrites(deps: DoubtfulWritesDeps): DoubtfulWrites {
  const { store, clock, timers } = deps;
  /** By record, in the order in which they came. */
  const sinceMs = new Map<string, number>();
  let closed = false;
  let callOff = plan();

  function plan(): () => void {
    return timers.after(deps.lookEveryMs ?? lookEveryMs, () => {
      void look().then(() => {
        if (!closed) callOff = plan();
      });
    });
  }

  /** One record at a time: this is in nobody's way. */
  async function look(): Promise<void> {
    for (const recordId of [...sinceMs.keys()]) {
      const found = parseRecordId(recordId);
      const shown = found === null ? null : await store.show({ ...found, token: null });
      // If the store does not answer for one, it would not answer for the others.
      if (closed || shown?.ok === false) return;
      const state = shown?.value?.record.state ?? null;
      if (state === null || !unsettled.has(state)) sinceMs.delete(recordId);
    }
  }

  return {
    add: (recordId) => {
      if (sinceMs.size < (deps.limit ?? limit) && !sinceMs.has(recordId)) sinceMs.set(recordId, clock.monotonic());
    },
    oldestMs: () => {
      const [first] = sinceMs.values();
      return first === undefined ? null : clock.monotonic() - first;
    },
    oldest: (most) =>
      [...sinceMs].slice(0, most).map(([recordId, atMs]) => ({ recordId, ageMs: clock.monotonic() - atMs })),
    close: () => {
      closed = true;
      callOff();
    },
  };
}
