import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

let ticksPerSecond = 0;

/** Microseconds of CPU that a process has used so far, in user and kernel mode, its ended children not included. */
export function cpuMicroseconds(pid: number): number {
  if (ticksPerSecond === 0) ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  // The name of the program, in parentheses, may hold spaces; what follows is fields 3 and on.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0] = [fields[11], fields[12]].map(Number);
  return ((user + system) * 1_000_000) / ticksPerSecond;
}

/** Memory that a process holds now, in MiB. */
export function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1];
  return Number(kib ?? 0) / 1024;
}

/** Files, sockets and pipes that a process has open. */
export function openDescriptors(pid: number): number {
  return readdirSync(`/proc/${String(pid)}/fd`).length;
}
