import type { Clock, Timers } from '../../ports/system.js';

/** The longest delay a Node timer takes: beyond it the task would run at once. */
const maxDelayMs = 2 ** 31 - 1;

/** The machine's clocks. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};

/** Node's timers. */
export const systemTimers: Timers = {
  after: (delayMs, task) => {
    const timer = setTimeout(task, Math.min(Math.max(delayMs, 0), maxDelayMs)).unref();
    return () => {
      clearTimeout(timer);
    };
  },
};
