/** A program of somebody else's, as a process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Scope } from './scope.js';

export interface Program {
  readonly pid: number;
  /** What it wrote to standard error so far. */
  readonly complaints: () => string;
  readonly isRunning: () => boolean;
}

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** How it is ended; SIGKILL unless given. */
  readonly signal?: NodeJS.Signals;
}

/** Runs it in the foreground until the test ends. */
export function startProgram(
  t: Scope,
  command: string,
  args: readonly string[],
  { env = {}, signal = 'SIGKILL' }: ProgramOptions = {},
): Program {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } });
  let complaints = '';
  let running = true;
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  const ended = once(child, 'close')
    .catch((error: unknown) => {
      complaints += String(error);
    })
    .finally(() => {
      running = false;
    });
  t.teardown(async () => {
    child.kill(signal);
    await ended;
  });
  return { pid: child.pid ?? 0, complaints: () => complaints, isRunning: () => running };
}
