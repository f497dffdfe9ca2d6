import type { Io, Signal } from './io.js';

/** What a shell reports of a process that a signal ended: 128 and the signal's number. */
const signalExitCodes = { SIGINT: 130, SIGTERM: 143 } as const;

export interface SignalQueue {
  /** Hands over every signal, those that came before first. */
  readonly take: (listener: (signal: Signal) => void) => void;
  readonly close: () => void;
}

function isAtTerminal({ columns }: Io): boolean {
  return (columns?.('stderr') ?? null) !== null;
}

/**
 * Signals that come while the proxy starts are kept: without a listener, a SIGHUP would end the process. Two that ask
 * for the end do end it at once, whatever is under way.
 */
export function createSignalQueue(io: Io): SignalQueue {
  const early: Signal[] = [];
  let listener = (signal: Signal): void => {
    early.push(signal);
  };
  let endings = 0;
  const close = io.onSignal((signal) => {
    if (signal !== 'SIGHUP') {
      endings += 1;
      if (endings > 1) io.exitNow(signalExitCodes[signal]);
      // Nothing seems to happen for some seconds, which whoever pressed Ctrl-C at a terminal does not expect.
      else if (signal === 'SIGINT' && isAtTerminal(io)) {
        io.stderr('stopping once requests under way have ended; Ctrl-C again stops at once\n');
      }
    }
    listener(signal);
  });
  return {
    take: (next) => {
      listener = next;
      for (const signal of early.splice(0)) next(signal);
    },
    close,
  };
}

/** Settles at the first signal: Ctrl-C, SIGTERM, or the end of the terminal. */
export function ended(io: Io): Promise<void> {
  return new Promise((resolve) => {
    const stop = io.onSignal(() => {
      stop();
      resolve();
    });
  });
}
