import type { Io } from './io.js';

/** Settles at the first signal: Ctrl-C, SIGTERM, or the end of the terminal. */
export function ended(io: Io): Promise<void> {
  return new Promise((resolve) => {
    const stop = io.onSignal(() => {
      stop();
      resolve();
    });
  });
}
