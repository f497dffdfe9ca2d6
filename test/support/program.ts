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

/** How a program ended, and what it wrote. */
export interface Ended {
  /** Its exit code; -1 where a signal ended it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs it to its end, whatever that is. */
export async function runToEnd(command: string, args: readonly string[], input = ''): Promise<Ended> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('latin1').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('latin1').on('data', (text: string) => (stderr += text));
  // One that reads nothing may be gone before all is written.
  child.stdin.on('error', () => undefined).end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code: code ?? -1, stdout, stderr };
}
