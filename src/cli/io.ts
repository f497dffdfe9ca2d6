import type { Readable } from 'node:stream';

/**
 * What a command may touch of its process, so that a test can stand in for it. Commands call nothing of `process`
 * themselves.
 */
export interface Io {
  readonly stdin: Readable;
  /** Whether somebody types what standard input holds. */
  readonly isInputTerminal?: () => boolean;
  /** Writes data: what another program may read. */
  readonly stdout: (text: string) => void;
  /** Writes messages for people. */
  readonly stderr: (text: string) => void;
  /** Width of the terminal that a stream appears on; `null` where it goes elsewhere. */
  readonly columns?: (stream: 'stdout' | 'stderr') => number | null;
  /** How this program was called, in words of a shell; left out where it is `sallyport`. */
  readonly program?: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Directory that relative paths start from. Throws `NoWorkingDirectory` where it is gone. */
  readonly cwd: string;
  /** Sets the exit code; the process ends when nothing is left to do. */
  readonly exit: (code: ExitCode) => void;
  /** Ends the process at once, whatever is under way. */
  readonly exitNow: (code: number) => void;
  /** Calls back at each signal until the returned function is called. */
  readonly onSignal: (listener: (signal: Signal) => void) => () => void;
}

/** A relative path starts from nowhere. The message is for people. */
export class NoWorkingDirectory extends Error {}

/**
 * 0 yes; 1 the answer is no (bad config, denied, failed); 2 usage, or a file that may not be read as it is;
 * 3 something needed is out of reach (port in use, Core).
 */
export type ExitCode = 0 | 1 | 2 | 3;

export type Signal = 'SIGTERM' | 'SIGINT' | 'SIGHUP';
