import { execFileSync } from 'node:child_process';

/** What a real fish makes of a script, with nothing of the user's own. */
export function inFish(script: string, cwd: string): string {
  const env = { ...process.env, HOME: cwd, XDG_DATA_HOME: cwd, XDG_CONFIG_HOME: cwd };
  return execFileSync('fish', ['--no-config', '-c', script], { cwd, encoding: 'utf8', env });
}
