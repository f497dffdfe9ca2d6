import type { EarlySignals } from './early-signals.js';
import type { Io, Signal } from './io.js';
import { userInfo } from 'node:os';

const signals: readonly Signal[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** The process that runs this. @param early signals that were kept while it was loaded. */
export function processIo(early: EarlySignals | null): Io {
  // A reader that left (`sallyport check … | head`) is no failure of ours.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endQuietly);
  return {
    stdin: process.stdin,
    isInputTerminal: () => process.stdin.isTTY,
    stdout: (text) => {
      process.stdout.write(text);
    },
    stderr: (text) => {
      process.stderr.write(text);
    },
    columns: (stream) => (process[stream].isTTY ? process[stream].columns : null),
    program: process.argv.slice(0, 2),
    env: process.env,
    cwd: process.cwd(),
    exit: (code) => {
      process.exitCode = code;
    },
    exitNow: (code) => {
      process.exit(code);
    },
    onSignal: (listener) => {
      for (const signal of signals) process.on(signal, listener);
      early?.handOver(listener);
      return () => {
        for (const signal of signals) process.off(signal, listener);
      };
    },
  };
}

function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit();
  throw error;
}

/** Who runs the command. In a container the user may have a number and no name. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${String(process.getuid?.() ?? 'unknown')}`;
  }
}
