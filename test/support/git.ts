/** Real `git`. */
import { spawnSync } from 'node:child_process';

/** Runs it in a folder. */
export function git(
  cwd: string,
  ...args: readonly string[]
): { readonly code: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync('git', args, { cwd, encoding: 'utf8' });
  return { code: status, output: `${stdout}${stderr}` };
}
