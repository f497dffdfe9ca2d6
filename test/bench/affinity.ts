/** Keeps what is measured on a CPU of its own, and what puts load on it on the others. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { versionOf } from './child.js';

/** Those that this process may run on, in the form of `taskset`: a container may be kept from some. */
const allowed = (/^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '')
  .split(',')
  .flatMap((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => String(from + i));
  });
const [first = '', ...others] = allowed;

/**
 * Two CPUs of a virtual machine are seldom alike, and where the scheduler leaves a process for a while is chance: the
 * same proxy, started twice, took a quarter more on one of them than on the other. Needs `taskset` and two CPUs;
 * without, all share what there is.
 */
export const keepsApart = others.length > 0 && versionOf('taskset', '--version') !== null;

/** Puts all threads of a process, and those to come, on the first CPU. */
export function placeMeasured(pid: number): void {
  place(pid, first);
}

/** Puts them on all CPUs but the first. */
export function placeLoad(pid: number): void {
  place(pid, others.join(','));
}

/** A command that runs there from its start. */
export function asLoad(command: string, args: readonly string[]): readonly [string, readonly string[]] {
  return keepsApart ? ['taskset', ['--cpu-list', others.join(','), command, ...args]] : [command, args];
}

function place(pid: number, list: string): void {
  if (keepsApart) {
    execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', list, String(pid)], { stdio: 'ignore' });
  }
}
