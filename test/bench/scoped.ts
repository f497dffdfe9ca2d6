import type { Scope } from '../support/scope.js';

/** Runs the work and then closes all that it opened, the last first. */
export async function scoped<T>(work: (scope: Scope) => Promise<T>): Promise<T> {
  const closers: (() => unknown)[] = [];
  try {
    return await work({ teardown: (close) => closers.unshift(close) });
  } finally {
    for (const close of closers) await close();
  }
}
