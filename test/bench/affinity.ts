/** Keeps what is measured on a CPU of its own, and what puts load on it on the others. */
import { execFileSync } from 'node:child_process';
import { cpus } from 'node:os';
import { versionOf } from './child.js';

/**
 * Two CPUs of a virtual machine are seldom alike, and where the scheduler leaves a process for a while is chance: the same proxy, started
 * twice, took a quarter more on one of them than on the other. Needs `taskset` and two CPUs; without, all share what there is.
 */
export const keepsApart = cpus().length > 1 && versionOf('taskset', '--version') !== null;

const first = '0';
const others = `1-${String(cpus().length - 1)}`;

/** Puts all threads of a process, and those to come, on the first CPU. */
export function placeMeasured(pid: number): void {
  place(pid, first);
}

/** Puts them on all CPUs but the first. */
export function placeLoad(pid: number): void {
  place(pid, others);
}

/** A command that runs there from its start. */
export function asLoad(command: string, args: readonly string[]): readonly [string, readonly string[]] {
  return keepsApart ? ['taskset', ['--cpu-list', others, command, ...args]] : [command, args];
}

function place(pid: number, list: string): void {
  if (keepsApart) execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', list, String(pid)], { stdio: 'ignore' });
}
