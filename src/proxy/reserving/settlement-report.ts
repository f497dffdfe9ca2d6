import type { Completed, Marked, Released } from '../../decision/reservation.js';
import type { Log, ReservationMetrics } from '../../ports.js';
import type { Settling } from './settling.js';

/** Tells operators what became of reservations; where somebody has to act, what to do. */
export interface SettlementReport {
  readonly answered: (settling: Settling, answer: Completed | Released | Marked) => void;
  /** The store did not take it in time. */
  readonly givenUp: (settling: Settling) => void;
}

const checkStore = 'check the persistence and replication of the store: while it forgets, a write may run twice';
const findOut = 'find out from the receiving service whether the write was applied, then run: sallyport record --config FILE resolve ID';

export function createSettlementReport({ log, metrics }: { readonly log: Log; readonly metrics: ReservationMetrics }): SettlementReport {
  return { answered, givenUp };

  function answered(settling: Settling, answer: Completed | Released | Marked): void {
    const { recordId: record, write } = settling;
    switch (answer) {
      case 'completed':
        metrics.reservation(write.kind === 'complete' ? write.command.state : 'completed');
        return;
      case 'released':
        metrics.reservation('released');
        return;
      case 'unknown':
        metrics.unknownOutcome(record);
        log.warn('whether a write was applied is not known: its key answers 409 until that is resolved', { record, what_to_do: findOut });
        return;
      case 'repaired':
        metrics.reservation('repaired');
        tellRepaired(settling);
        return;
      case 'fenced':
        metrics.reservation('fenced');
        tellFenced(settling);
        return;
      case 'kept':
      case 'unsupported':
        log.warn('a reservation was not settled: it is not this attempt’s any more', { record, settle: write.kind, answer });
    }
  }

  function tellRepaired({ recordId: record, write }: Settling): void {
    if (write.kind !== 'mark') {
      log.error('the store had lost a reservation; its result was written anew', { record, what_to_do: checkStore });
      return;
    }
    metrics.unknownOutcome(record);
    log.error('the store had lost the reservation of a write that may have been applied; it is in doubt, and its key answers 409 until that is resolved', {
      record, what_to_do: `${findOut}; ${checkStore}`,
    });
  }

  function tellFenced({ recordId: record, write, deduplicates }: Settling): void {
    if (deduplicates) {
      log.warn('a write was sent twice: another attempt took it over; the receiving service runs it once', { record });
      return;
    }
    const toDo = { record, what_to_do: 'compare what the receiving service recorded for this operation; find out why the store lost the first reservation' };
    if (write.kind !== 'mark') {
      log.error('a write ran twice: another attempt owns its reservation', toDo);
      return;
    }
    metrics.unknownOutcome(record);
    log.error('a write may have run twice: it may have been applied, and another attempt owns its reservation', toDo);
  }

  function givenUp({ recordId: record, write }: Settling): void {
    if (write.kind === 'release') {
      log.warn(`a reservation could not be released: ${write.wasSent ? 'nothing was applied' : 'nothing was sent'}, and its key answers 409 all the same`, {
        record, what_to_do: 'to free the key before its retention is over, run: sallyport record --config FILE resolve ID --outcome not-applied',
      });
      return;
    }
    metrics.unknownOutcome(record);
    log.error('a reservation could not be settled: it ends in doubt, and its key answers 409', { record, settle: write.kind, what_to_do: findOut });
  }
}
