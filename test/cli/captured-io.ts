import { Readable } from 'node:stream';
import type { Io, Signal } from '../../src/cli/io.js';

/** A process to run a command in, which keeps what the command does to it. */
export interface CapturedIo extends Io {
  readonly out: () => string;
  readonly err: () => string;
  /** The exit code, `null` where none was set. */
  readonly code: () => number | null;
  /** The code of `exitNow`, `null` where it was not called. */
  readonly endedNow: () => number | null;
  readonly signal: (signal: Signal) => void;
  /** Whether anybody listens for signals. */
  readonly isListening: () => boolean;
}

export interface CapturedIoOptions {
  readonly env?: Io['env'];
  readonly cwd?: string;
  readonly stdin?: string;
}

export function captureIo({ env = {}, cwd = '/', stdin = '' }: CapturedIoOptions = {}): CapturedIo {
  let out = '';
  let err = '';
  let code: number | null = null;
  let endedNow: number | null = null;
  const listeners = new Set<(signal: Signal) => void>();
  return {
    stdin: Readable.from([stdin]),
    stdout: (text) => {
      out += text;
    },
    stderr: (text) => {
      err += text;
    },
    env,
    cwd,
    exit: (next) => {
      code = next;
    },
    exitNow: (next) => {
      endedNow = next;
    },
    onSignal: (listener) => {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
    out: () => out,
    err: () => err,
    code: () => code,
    endedNow: () => endedNow,
    signal: (signal) => {
      for (const listener of listeners) listener(signal);
    },
    isListening: () => listeners.size > 0,
  };
}
