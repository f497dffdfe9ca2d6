import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';
import { until } from '../support/until.js';

export interface StartedCommand {
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly signal: (signal: NodeJS.Signals) => void;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  readonly isRunning: () => boolean;
  /** Waits until standard output matches, and returns the match; fails when the command ends before. */
  readonly says: (pattern: RegExp) => Promise<RegExpExecArray>;
}

/** Runs `sallyport …` as a process of its own; it is killed with the test where it still runs. */
export function startCommand(
  t: Scope,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): StartedCommand {
  return startScript(t, join(projectDir, 'dist/main.js'), args, env);
}

/** The same for any script. */
export function startScript(
  t: Scope,
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): StartedCommand {
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let out = '';
  let err = '';
  let running = true;
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (out += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (err += chunk));
  const exited = once(child, 'close').then(([code, signal]) => {
    running = false;
    return { code: code as number | null, signal: signal as NodeJS.Signals | null };
  });
  t.teardown(async () => {
    if (running) child.kill('SIGKILL');
    await exited;
  });
  return {
    pid: child.pid ?? 0,
    stdout: () => out,
    stderr: () => err,
    signal: (signal) => child.kill(signal),
    exited,
    isRunning: () => running,
    says: (pattern) =>
      until(`standard output matches ${String(pattern)}`, () => {
        const match = pattern.exec(out);
        if (match === null && !running) throw new Error(`the command ended before:\n${out}${err}`);
        return match;
      }),
  };
}
