import { execFileSync } from 'node:child_process';

/** What a real bash makes of a script, with nothing of the user's own. */
export function inBash(script: string, cwd: string): string {
  return execFileSync('bash', ['--noprofile', '--norc', '-c', script], { cwd, encoding: 'utf8' });
}
