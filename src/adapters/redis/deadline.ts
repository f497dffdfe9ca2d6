import { DeadlinePassed } from './store-errors.js';

/** Ends by the deadline, with what the work ended with or with `DeadlinePassed`. What comes later is dropped. */
export function withDeadline<T>(work: Promise<T>, deadlineMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new DeadlinePassed()), deadlineMs);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
