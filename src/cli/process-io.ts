import { readlinkSync } from 'node:fs';
import { userInfo } from 'node:os';
import { fileFailure } from '../lib/errors.js';
import type { EarlySignals } from './early-signals.js';
import { NoWorkingDirectory, type Io, type Signal } from './io.js';

const signals: readonly Signal[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];

/** The process that runs this. @param early signals that were kept while it was loaded. */
export function processIo(early: EarlySignals | null): Io {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => endUnwritten('output', error));
  process.stderr.on('error', (error: NodeJS.ErrnoException) => endUnwritten('error', error));
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
    get cwd() {
      return workingDirectory();
    },
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

/** Asked for when a relative path is met: commands that are given whole ones need none. */
function workingDirectory(): string {
  try {
    return process.cwd();
  } catch (error) {
    const why = fileFailure(error, 'is behind too many links');
    throw new NoWorkingDirectory(
      `the working directory${nameOfRemoved()} ${why}: change to one that is there, or name every file by its whole path`,
    );
  }
}

/** Linux tells the name that a directory had; elsewhere the shell may have. */
function nameOfRemoved(): string {
  let name = process.env['PWD'] ?? '';
  try {
    name = readlinkSync('/proc/self/cwd').replace(/ \(deleted\)$/, '');
  } catch {
    // That of the shell, then.
  }
  return name === '' ? '' : ` ${name}`;
}

/** A reader that left (`sallyport check … | head`) is no failure of ours. A full disk is none of the answer. */
function endUnwritten(stream: 'output' | 'error', { code = '' }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') process.exit();
  if (stream === 'output') process.stderr.write(`error: standard output cannot be written: ${code}\n`);
  process.exit(3);
}

/** Who runs the command. In a container the user may have a number and no name. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${String(process.getuid?.() ?? 'unknown')}`;
  }
}
