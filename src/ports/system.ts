/** What the inside needs of the machine: clock, timers, files, log. */
import type { Result } from '../lib/result.js';

/** Reads time. */
export interface Clock {
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds that never go back; for durations. */
  readonly monotonic: () => number;
}

/** Runs tasks later; none of them keeps the process alive. */
export interface Timers {
  /** Runs the task once, after `delayMs`. The function returned calls it off. */
  readonly after: (delayMs: number, task: () => void) => () => void;
}

/** Reads text files that others write and replace while this runs. */
export interface Files {
  /** The whole text, or why it cannot be had, in words that follow the path. Regular files only. */
  readonly read: (path: string, limits: { readonly maxBytes: number }) => Promise<Result<string, string>>;
  /** SHA-256 of a text's bytes, hex. */
  readonly digest: (text: string) => string;
  /**
   * Who else may read or change the file of a secret, in words that follow a name of it; `null` where nobody who should
   * not.
   */
  readonly exposure: (path: string) => string | null;
  /** Calls back with what the file now holds each time that changes. */
  readonly watch: (
    path: string,
    onChange: (content: Result<string, string>) => void,
    options: WatchOptions,
  ) => FileWatch;
}

export interface WatchOptions {
  /** Digest of the text that the caller already acted on, or `null` when there was none to be had. */
  readonly digest: string | null;
  readonly maxBytes: number;
  /** Milliseconds between two looks. */
  readonly intervalMs?: number | undefined;
  /**
   * Milliseconds for which a changed file has to stay as it is before it counts; asked for at each look. None unless
   * given.
   */
  readonly leastAgeMs?: () => number;
}

export interface FileWatch {
  /**
   * Says what the caller acted on since without being called back: the digest of a text, or why there was none. A file
   * that holds something else has changed, though it may be as the watch saw it last.
   */
  readonly loaded: (digest: Result<string, string>) => void;
  readonly close: () => void;
}

/** A watch that can be asked as well. */
export interface AskedWatch extends FileWatch {
  /**
   * What the file holds, changed or not, once that counts; `onWait` is called where it does not yet. What is told here
   * is acted on, and not called back for. `null` once the watch is closed.
   */
  readonly settled: (onWait: () => void) => Promise<Result<string, string> | null>;
}

/** Where events of the process go. `fields` never hold a secret. */
export interface Log {
  readonly debug: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
  readonly warn: (message: string, fields?: LogFields) => void;
  readonly error: (message: string, fields?: LogFields) => void;
}

export type LogFields = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

/** Takes everything and keeps nothing: for commands that say themselves what they found. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
