/** Real `prlimit`. */
import { execFileSync } from 'node:child_process';
import { openDescriptors } from './linux.js';

/** Lets a process open no more than so many files beyond those it has. */
export function limitDescriptors(pid: number, more: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${String(openDescriptors(pid) + more)}:`]);
}
