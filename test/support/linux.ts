/** What Linux alone tells of a process, or offers. */
import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from './until.js';

/** A device that is always full. */
export const fullDevice = '/dev/full';

/** A file with the name of the system, that claims to hold nothing. */
export const sizelessFile = '/proc/sys/kernel/ostype';

/** What the system tells of each process, in files. */
export function processFolders(): readonly string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => `/proc/${name}`);
}

/** Memory that a process holds now. */
export function residentBytes(pid: number): number {
  return memory(pid, 'VmRSS');
}

/** The most memory that it ever held. */
export function peakBytes(pid: number): number {
  return memory(pid, 'VmHWM');
}

/** Files, sockets and pipes that a process has open. */
export function openDescriptors(pid: number): number {
  return readdirSync(`/proc/${String(pid)}/fd`).length;
}

/** Waits until a proxy has the further handles of its listeners, which another process makes when it has started. */
export async function hasAllHandles(pid: number): Promise<void> {
  let before = -1;
  await until('it opens no more files', async () => {
    const now = childrenOf(pid).length === 0 ? openDescriptors(pid) : -1;
    const isSettled = now !== -1 && now === before;
    before = now;
    if (!isSettled) await delay(100);
    return isSettled;
  });
}

/** Processes that it started, and that are not over. */
export function childrenOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${String(pid)}/task/${String(pid)}/children`, 'utf8');
  return children
    .split(' ')
    .filter((id) => id.trim() !== '')
    .map(Number);
}

/** Whether a process is there and not over: one that nobody has asked for yet how it ended is over. */
export function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${String(pid)}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** When a process began, in ticks since the machine did: field 22 of its `stat` (proc_pid_stat(5)). */
export function beganAt(pid: number): string {
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

function memory(pid: number, name: string): number {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${String(pid)}/status`, 'utf8'))?.[1];
  return Number(kib ?? 0) * 1024;
}

/** What the kernel knows of the open connections that have a port of IPv4 at one end. */
export interface KernelConnections {
  readonly count: number;
  /** Bytes that came and that the process has not read. */
  readonly unread: number;
}

/**
 * Those that were accepted on a port or, from the `far` end, lead to it: both addresses, state and queues are the
 * fields 2 to 5 of `/proc/net/tcp` (proc_pid_net(5)).
 */
export function kernelConnections(port: number, end: 'near' | 'far' = 'near'): KernelConnections {
  const established = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(
      ([, local = '', remote = '', state]) =>
        state === '01' && Number.parseInt((end === 'near' ? local : remote).split(':')[1] ?? '', 16) === port,
    );
  return {
    count: established.length,
    unread: established.reduce((sum, fields) => sum + Number.parseInt(fields[4]?.split(':')[1] ?? '', 16), 0),
  };
}
