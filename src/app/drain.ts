/** The order in which listeners are drained, and how long that may take. */
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../adapters/system/clock.js';

/**
 * What the listeners that come second have at least, as part of the grace, milliseconds: reserved writes are told to
 * the store in it, twice where the first time fails.
 */
const leastForOthersMs = 4_000;

/** Drains what it stands for within so many milliseconds. */
export type Drain = (graceMs: number) => Promise<void>;

/**
 * Drains the callers' listener and then the others, within one grace: the workload may need its calling side to answer
 * what is under way. Where callers' requests take nearly all of the grace, the others begin beside them.
 */
export async function drainInTurn(graceMs: number, callers: Drain, others: Drain): Promise<void> {
  const untilMs = systemClock.monotonic() + graceMs;
  const first = callers(graceMs);
  await Promise.race([first, delay(graceMs - Math.min(leastForOthersMs, graceMs / 2), undefined, { ref: false })]);
  await Promise.all([first, others(Math.max(0, untilMs - systemClock.monotonic()))]);
}
