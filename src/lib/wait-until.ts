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
