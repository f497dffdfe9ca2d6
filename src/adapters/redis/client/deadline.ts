import { DeadlinePassed } from '../scripts/errors.js';

/**
 * Ends by the deadline, with what the work ended with or with `DeadlinePassed`. What comes later is dropped. Timers are
 * called before what arrived is read: after a turn of the event loop that took long, as in a process that has just
 * started, the answer may be there unread. So what has arrived by the deadline is read first, and counts.
 */
export function withDeadline<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    let reading: NodeJS.Immediate | null = null;
    const timer = setTimeout(() => {
      reading = setImmediate(() => reject(new DeadlinePassed()));
    }, deadlineMs);
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      if (reading !== null) clearImmediate(reading);
    });
  });
}
