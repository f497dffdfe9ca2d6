import { setImmediate, setTimeout } from 'node:timers/promises';

/** Milliseconds between two looks. */
const lookEveryMs = 10;

/**
 * Looks again and again whether something holds, until it does or `withinMs` are over. For the start of a process and
 * for commands; never for a request.
 *
 * @returns whether it holds.
 */
export async function waitUntil(holds: () => boolean, withinMs: number): Promise<boolean> {
  const deadlineMs = performance.now() + withinMs;
  while (!holds() && performance.now() < deadlineMs) await setTimeout(lookEveryMs);
  return holds();
}

/**
 * Runs a task one at a time. Calls that come while it runs share one run after it: that one starts later than every
 * one of them, so it sees what each wanted seen.
 *
 * @param restMs how long the next run waits after one that took so long; not at all unless given.
 */
export function coalesce<Result>(
  task: () => Promise<Result>,
  restMs?: (tookMs: number) => number,
): () => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  let waiting: Promise<Result> | null = null;
  return () => {
    if (waiting !== null) return waiting;
    let startedMs = 0;
    const run = last
      .catch(() => undefined)
      .then(() => {
        waiting = null;
        startedMs = performance.now();
        return task();
      });
    waiting = run;
    last =
      restMs === undefined
        ? run
        : run
            .catch(() => undefined)
            .then(() => setTimeout(restMs(performance.now() - startedMs), undefined, { ref: false }));
    return run;
  };
}

/** Lets those who wait for it go on one after the other, one in each turn of the event loop. */
export function createTurns(): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return () => {
    last = last.then(async () => setImmediate());
    return last;
  };
}
