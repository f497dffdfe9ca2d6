import type { Complete, Completed, Marked, Owned, Released } from '../../decision/reservation.js';
import type { ReservationScope } from '../../decision/reservation-scope.js';
import type { Result } from '../../decision/result.js';
import type { Clock, Log, ReservationMetrics, ReservationStore, StoreFailure } from '../../ports.js';

/** Something to write about a reservation once its request is over. */
export type SettleCommand =
  | { readonly kind: 'complete'; readonly command: Complete }
  | { readonly kind: 'release'; readonly attempt: string }
  | { readonly kind: 'mark'; readonly command: Owned };

export interface Settlements {
  /** Writes it, once. A failure is tried again in the background, until `untilMs` (monotonic). Never rejects. */
  readonly settle: (scope: ReservationScope, command: SettleCommand, untilMs: number, recordId: string | null) => Promise<boolean>;
  /** How many are still to be written. */
  readonly open: () => number;
  /** Tries what is left once more and gives up on it then. */
  readonly close: () => Promise<void>;
}

/** Pause before the first and the longest pause between later attempts, milliseconds. */
const firstPauseMs = 100;
const longestPauseMs = 2_000;
/** Settlements that wait at once; beyond it the oldest is given up: its record ends in doubt, which is safe. */
const maxWaiting = 1_000;

interface Waiting {
  readonly scope: ReservationScope;
  readonly command: SettleCommand;
  readonly untilMs: number;
  readonly recordId: string | null;
  pauseMs: number;
  timer: NodeJS.Timeout | null;
}

export interface SettlementDeps {
  readonly store: ReservationStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: ReservationMetrics;
}

export function createSettlements({ store, clock, log, metrics }: SettlementDeps): Settlements {
  const waiting = new Set<Waiting>();

  return {
    settle: async (scope, command, untilMs, recordId) => {
      if (await attempt(scope, command, recordId)) return true;
      wait({ scope, command, untilMs, recordId, pauseMs: firstPauseMs, timer: null });
      return false;
    },
    open: () => waiting.size,
    close: async () => {
      const left = [...waiting];
      waiting.clear();
      await Promise.all(left.map(async (entry) => {
        if (entry.timer !== null) clearTimeout(entry.timer);
        if (!await attempt(entry.scope, entry.command, entry.recordId)) giveUp(entry);
      }));
    },
  };

  function wait(entry: Waiting): void {
    const [oldest] = waiting;
    if (waiting.size >= maxWaiting && oldest !== undefined) {
      if (oldest.timer !== null) clearTimeout(oldest.timer);
      waiting.delete(oldest);
      giveUp(oldest);
    }
    waiting.add(entry);
    entry.timer = setTimeout(() => void again(entry), entry.pauseMs);
    entry.timer.unref();
  }

  async function again(entry: Waiting): Promise<void> {
    if (!waiting.has(entry)) return;
    if (await attempt(entry.scope, entry.command, entry.recordId)) {
      waiting.delete(entry);
      return;
    }
    if (!waiting.has(entry)) return;
    waiting.delete(entry);
    entry.pauseMs = Math.min(longestPauseMs, entry.pauseMs * 2);
    if (clock.monotonic() + entry.pauseMs < entry.untilMs) wait(entry);
    else giveUp(entry);
  }

  function giveUp({ command, recordId }: Waiting): void {
    log.error('a reservation could not be settled: it ends in doubt, and its key answers 409', {
      record: recordId, settle: command.kind,
      what_to_do: 'find out from the receiver whether the write was applied, then run: sallyport record --config FILE resolve ID',
    });
  }

  /** Whether the store answered. */
  async function attempt(scope: ReservationScope, command: SettleCommand, recordId: string | null): Promise<boolean> {
    const startedMs = clock.monotonic();
    const answer = await send(scope, command);
    metrics.storeCall(command.kind, clock.monotonic() - startedMs);
    if (!answer.ok) return false;
    tell(answer.value, recordId);
    return true;
  }

  function send(scope: ReservationScope, command: SettleCommand): Promise<Result<Completed | Released | Marked, StoreFailure>> {
    switch (command.kind) {
      case 'complete':
        return store.complete(scope, command.command);
      case 'release':
        return store.release(scope, { attempt: command.attempt });
      case 'mark':
        return store.mark(scope, command.command);
    }
  }

  function tell(answer: Completed | Released | Marked, recordId: string | null): void {
    switch (answer) {
      case 'completed':
      case 'released':
        metrics.reservation(answer);
        return;
      case 'unknown':
        metrics.unknownOutcome();
        log.warn('whether a write was applied is not known; its key answers 409 until it is resolved', {
          record: recordId, what_to_do: 'ask the receiver, then run: sallyport record --config FILE resolve ID',
        });
        return;
      case 'repaired':
        metrics.reservation('repaired');
        log.error('the store had lost a reservation; its result was written anew', {
          record: recordId, what_to_do: 'check the store\'s persistence and replication: a write may run twice while it forgets',
        });
        return;
      case 'fenced':
        metrics.reservation('fenced');
        log.error('a write ran twice: another attempt owns its reservation', {
          record: recordId, what_to_do: 'compare the receiver\'s records of this operation; check why the store lost or outlived the first reservation',
        });
        return;
      case 'kept':
      case 'unsupported':
        log.warn('a reservation was not settled: it is not this attempt\'s any more', { record: recordId, answer });
    }
  }
}
