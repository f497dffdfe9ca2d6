/** Processes that take part in an attack, on all CPUs but that of the proxy. */
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { asLoad } from '../bench/affinity.js';
import { stopAtEnd } from '../bench/child.js';
import type { Scope } from '../support/scope.js';

export type LoadProcess = ChildProcessByStdio<null, Readable, null>;

/** Runs a program of this folder until the end of the test at the latest. */
export function startLoad(t: Scope, name: string, args: readonly string[]): LoadProcess {
  const [command, before] = asLoad(process.execPath, [join(import.meta.dirname, name)]);
  const child = spawn(command, [...before, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  child.stdout.setEncoding('utf8');
  stopAtEnd(t, child);
  return child;
}

/** The service that is attacked; of answers byte by byte so many go out at once, so often. */
export async function startAttackedService(
  t: Scope,
  atOnce: number,
  everyMs: number,
): Promise<{ readonly url: string; readonly pid: number }> {
  const child = startLoad(t, 'attacked-service.js', [String(atOnce), String(everyMs)]);
  const [port] = (await once(child.stdout, 'data')) as [string];
  return { url: `http://127.0.0.1:${port.trim()}`, pid: child.pid ?? 0 };
}

/**
 * Lets what is measured go before whatever else the machine does, as far as the system allows that: what is left is
 * what the attack does.
 */
export function goFirst(pid: number): void {
  for (const thread of readdirSync(`/proc/${String(pid)}/task`)) {
    try {
      // What the process put behind others of its threads stays behind them.
      setPriority(Number(thread), Math.max(-20, getPriority(Number(thread)) - 15));
    } catch {
      return;
    }
  }
}
