import type { Signal } from './io.js';

/** Signals that came before anybody could do what they ask for. */
export interface EarlySignals {
  /** Gives them to who listens from now on, once. */
  readonly handOver: (listener: (signal: Signal) => void) => void;
}

const kept: readonly Signal[] = ['SIGHUP', 'SIGTERM', 'SIGINT'];

/**
 * Others send them for what they call a reload. By itself the first opens Node's debugger, and the second ends the
 * process.
 */
const ignored = ['SIGUSR1', 'SIGUSR2'] as const;

/**
 * Keeps signals while the program is loaded, which takes half a second: a SIGHUP of whoever writes configs would end
 * the process. Loads nothing itself, so that it is in place before anything else is.
 */
export function holdSignals(): EarlySignals {
  const held: Signal[] = [];
  const hold = (signal: Signal): void => {
    held.push(signal);
  };
  for (const signal of kept) process.on(signal, hold);
  for (const signal of ignored) process.on(signal, () => undefined);
  return {
    handOver: (listener) => {
      for (const signal of kept) process.off(signal, hold);
      // Not before the listener's owner has what it was given for listening.
      for (const signal of held.splice(0)) setImmediate(listener, signal);
    },
  };
}

/**
 * Leaves signals to the process that started this one: whoever ends a whole group of processes, as a terminal or a
 * service manager does, ends each by it, which lets what is under way end first.
 */
export function ignoreSignals(): void {
  for (const signal of [...kept, ...ignored]) process.on(signal, () => undefined);
}
