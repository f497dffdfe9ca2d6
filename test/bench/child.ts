import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Scope } from '../support/scope.js';

const servers = join(import.meta.dirname, 'servers.js');

/** A process that is measured, or that takes part. */
export interface Child {
  readonly pid: number;
  readonly port: number;
}

/** Runs one of `servers.ts` until the end and waits for its port. */
export async function startServer(t: Scope, ...args: readonly string[]): Promise<Child> {
  const child = spawn(process.execPath, [servers, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  stopAtEnd(t, child);
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return { pid: child.pid ?? 0, port: Number(line) };
}

export function stopAtEnd(t: Scope, child: ChildProcess): void {
  const exited = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
  });
}

/** Runs a command to its end and returns what it printed. */
export async function outputOf(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with ${String(code)}`);
  return output;
}

/** First line of what a program says of its version, or `null` where it is not installed. */
export function versionOf(command: string, argument: string): string | null {
  const { error, stdout, stderr } = spawnSync(command, [argument], { encoding: 'utf8' });
  return error === undefined ? ((stdout + stderr).split('\n')[0] ?? '').trim() : null;
}
