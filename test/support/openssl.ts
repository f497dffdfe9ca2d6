/** Real `openssl`. */
import { execFileSync } from 'node:child_process';

/** Runs it in a folder; throws what it says where it fails. */
export function openssl(cwd: string, ...args: readonly string[]): void {
  execFileSync('openssl', args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
}
