import type { Completed, Marked, Released } from '../../decision/idempotency/record.js';
import type { Log } from '../../ports/system.js';
import type { ReservationMetrics } from '../../ports/idempotency.js';
import type { Settling } from './settlement-queue.js';

/** What became of the settlements that were offered to the store once more after a fail-over: how many of them. */
export interface ReofferResult {
  offered: number;
  /** The store had lost them. */
  repaired: number;
  /** Another attempt had their keys. */
  ranTwice: number;
  /** The store did not take them in time; of those that were left before: they are given up. */
  left: number;
}

/** Tells operators what became of reservations; where somebody has to act, what to do. */
export interface SettlementReport {
  readonly replied: (settling: Settling, reply: Completed | Released | Marked) => void;
  /** The store did not take it in time. */
  readonly givenUp: (settling: Settling) => void;
  /** After a fail-over: the store had lost it, and has it again. */
  readonly foundLost: () => void;
  /**
   * After a fail-over: the store had lost it, and another attempt owns it. `count` of this fail-over, this one
   * included.
   */
  readonly foundFenced: (settling: Settling, count: number) => void;
  /** All that was offered to the store once more after a fail-over. */
  readonly offeredAgain: (sum: Readonly<ReofferResult>) => void;
  /** All that was offered once more at the end of a shutdown; tells only where something was lost, or not taken. */
  readonly offeredLast: (sum: Readonly<ReofferResult>) => void;
}

/** Writes that ran twice and are named one by one after a fail-over; the rest is in the sum. */
const mostNamed = 100;

const checkStore = 'check the persistence and replication of the store: while it forgets, a write may run twice';
const findOut =
  'find out from the upstream whether the write was applied, then run: sallyport record --config FILE resolve ID';

/** Where the upstream deduplicates nobody has to act: to resolve a record would keep its key from the retry. */
const runsOnce = 'and the upstream runs it once; nothing has to be done';
const sentAgain = `a retry is sent again, ${runsOnce}`;
const sentAgainLater = `a retry is sent again once its lease is over, ${runsOnce}`;

export function createSettlementReport({
  log,
  metrics,
}: {
  readonly log: Log;
  readonly metrics: ReservationMetrics;
}): SettlementReport {
  return {
    replied,
    givenUp,
    foundLost: () => {
      metrics.reservation('repaired');
    },
    foundFenced: (settling, count) => {
      metrics.reservation('fenced');
      if (count <= mostNamed) tellFenced(settling);
    },
    offeredAgain: ({ offered, repaired, ranTwice, left }) => {
      metrics.offeredAgain(offered);
      const fields = { offered, repaired, ran_twice: ranTwice, not_taken: left };
      const lost = { ...fields, what_to_do: checkStore };
      if (repaired + ranTwice > 0) {
        log.error('after a fail-over what was settled last was offered to the store once more: it had lost some', lost);
      } else if (left > 0) {
        log.error(
          'after a fail-over what was settled last was offered to the store once more: it did not take all',
          lost,
        );
      } else {
        log.info(
          'after a fail-over what was settled last was offered to the store once more: it had lost nothing',
          fields,
        );
      }
    },
    offeredLast: ({ offered, repaired, ranTwice, left }) => {
      if (repaired + ranTwice === 0) {
        if (left > 0) {
          log.warn(
            'what was settled last was offered to the store once more during the shutdown, and it did not take all: it is lost where the store has lost it',
            { offered, not_taken: left, what_to_do: checkStore },
          );
        }
        return;
      }
      metrics.offeredAgain(offered);
      log.error(
        'the store had a fail-over during the shutdown, and had lost some of what was settled last: it was offered once more',
        { offered, repaired, ran_twice: ranTwice, not_taken: left, what_to_do: checkStore },
      );
    },
  };

  function replied(settling: Settling, reply: Completed | Released | Marked): void {
    const { recordId: record, write } = settling;
    switch (reply) {
      case 'completed':
        metrics.reservation(write.kind === 'complete' ? write.command.state : 'completed');
        return;
      case 'released':
        metrics.reservation('released');
        return;
      case 'unknown':
        if (settling.deduplicates) {
          log.warn(`whether a write was applied is not known: ${sentAgain}`, { record });
          return;
        }
        metrics.unknownOutcome(record);
        log.warn('whether a write was applied is not known: its key answers 409 until that is resolved', {
          record,
          what_to_do: findOut,
        });
        return;
      case 'repaired':
        metrics.reservation('repaired');
        tellRepaired(settling);
        return;
      case 'fenced':
        metrics.reservation('fenced');
        if (write.kind === 'mark' && !settling.deduplicates) metrics.unknownOutcome(record);
        tellFenced(settling);
        return;
      case 'kept':
      case 'unsupported':
        log.warn('a reservation was not settled: it is not this attempt’s any more', {
          record,
          settle: write.kind,
          answer: reply,
        });
    }
  }

  function tellRepaired({ recordId: record, write, deduplicates }: Settling): void {
    if (write.kind !== 'mark') {
      log.error('the store had lost a reservation; its result was written anew', { record, what_to_do: checkStore });
      return;
    }
    if (deduplicates) {
      log.error(
        `the store had lost the reservation of a write that may have been applied; it is there again: ${sentAgain}`,
        { record, what_to_do: checkStore },
      );
      return;
    }
    metrics.unknownOutcome(record);
    log.error(
      'the store had lost the reservation of a write that may have been applied; it is in doubt, and its key answers 409 until that is resolved',
      {
        record,
        what_to_do: `${findOut}; ${checkStore}`,
      },
    );
  }

  function tellFenced({ recordId: record, write, deduplicates }: Settling): void {
    if (deduplicates) {
      log.warn('a write was sent twice: another attempt took it over; the upstream runs it once', { record });
      return;
    }
    const toDo = {
      record,
      what_to_do:
        'compare what the upstream recorded for this operation; find out why the store lost the first reservation',
    };
    if (write.kind !== 'mark') {
      log.error('a write ran twice: another attempt owns its reservation', toDo);
      return;
    }
    log.error('a write may have run twice: it may have been applied, and another attempt owns its reservation', toDo);
  }

  function givenUp({ recordId: record, write, deduplicates }: Settling): void {
    if (deduplicates) {
      log.warn(`a reservation could not be settled: ${sentAgainLater}`, { record, settle: write.kind });
      return;
    }
    if (write.kind === 'release') {
      log.warn(
        `a reservation could not be released: ${write.wasSent ? 'nothing was applied' : 'nothing was sent'}, and its key answers 409 all the same`,
        {
          record,
          what_to_do:
            'to free the key before its retention is over, run: sallyport record --config FILE resolve ID --outcome not-applied',
        },
      );
      return;
    }
    metrics.unknownOutcome(record);
    log.error(
      'a reservation could not be settled: it ends in doubt, and its key answers 409, unless the store has lost it',
      {
        record,
        settle: write.kind,
        what_to_do: findOut,
      },
    );
  }
}
