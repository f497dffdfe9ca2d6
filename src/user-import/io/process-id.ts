import { readFileSync } from 'node:fs';

/**
 * What tells a process from every other that has or will have its number: when it was started, and in which run of the
 * machine. `null` where the system does not say, or there is no such process.
 */
export function processMark(pid: number): string | null {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    // proc(5): the name in brackets may hold spaces; the start time is the 20th field behind it.
    const started = readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')[19];
    return started === undefined ? null : `${boot} ${started}`;
  } catch {
    return null;
  }
}
