/**
 * The shell, and small programs that come with every Unix. What else a script runs is said by an import of that
 * program's file here: the check finds by the imports what a test file needs.
 */
import { execFileSync } from 'node:child_process';

export const sh = 'sh';
export const env = 'env';

/** Makes a FIFO that only its owner may use. */
export function makeFifo(path: string): string {
  execFileSync('mkfifo', ['-m', '600', path]);
  return path;
}
