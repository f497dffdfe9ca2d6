import { readFileSync } from 'node:fs';
import { residentBytes } from '../support/linux.js';

/** USER_HZ, in which `/proc` counts: Linux fixes it for programs. */
const ticksPerSecond = 100;

/** Microseconds of CPU that a process has used so far, in user and kernel mode, its ended children not included. */
export function cpuMicroseconds(pid: number): number {
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  // The name of the program, in parentheses, may hold spaces; what follows is fields 3 and on.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0] = [fields[11], fields[12]].map(Number);
  return ((user + system) * 1_000_000) / ticksPerSecond;
}

/** Memory that a process holds now, in MiB. */
export function residentMib(pid: number): number {
  return residentBytes(pid) / 1024 ** 2;
}
