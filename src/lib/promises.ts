import { setTimeout } from 'node:timers/promises';

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
 */
export function coalesce(task: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | null = null;
  return () => {
    if (waiting !== null) return waiting;
    waiting = last
      .catch(() => undefined)
      .then(() => {
        waiting = null;
        return task();
      });
    last = waiting;
    return waiting;
  };
}
