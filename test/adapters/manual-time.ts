import type { Clock, Timers } from '../../src/ports/system.js';

/** A clock that stands still, and timers that run only when a test moves it. */
export interface ManualTime {
  readonly clock: Clock;
  readonly timers: Timers;
  /** Moves on and runs what came due, in order. */
  readonly advance: (ms: number) => void;
  /** Moves on and runs nothing, as while the process is stopped; what came due runs late. */
  readonly stop: (ms: number) => void;
  /** Moves only the wall clock on, as while the machine is suspended. */
  readonly suspend: (ms: number) => void;
  /** Milliseconds from now at which the pending tasks are due, soonest first. */
  readonly due: () => readonly number[];
}

export function manualTime(): ManualTime {
  let nowMs = 1_000_000;
  let suspendedMs = 0;
  const tasks = new Set<{ readonly atMs: number; readonly task: () => void }>();
  const pending = (): { readonly atMs: number; readonly task: () => void }[] =>
    [...tasks].sort((a, b) => a.atMs - b.atMs);
  return {
    clock: { now: () => nowMs + suspendedMs, monotonic: () => nowMs },
    timers: {
      after: (delayMs, task) => {
        const entry = { atMs: nowMs + delayMs, task };
        tasks.add(entry);
        return () => {
          tasks.delete(entry);
        };
      },
    },
    advance: (ms) => {
      const endMs = nowMs + ms;
      for (let next = pending()[0]; next !== undefined && next.atMs <= endMs; next = pending()[0]) {
        nowMs = Math.max(nowMs, next.atMs);
        tasks.delete(next);
        next.task();
      }
      nowMs = endMs;
    },
    stop: (ms) => {
      nowMs += ms;
    },
    suspend: (ms) => {
      suspendedMs += ms;
    },
    due: () => pending().map(({ atMs }) => atMs - nowMs),
  };
}
