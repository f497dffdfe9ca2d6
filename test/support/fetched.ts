/** Programs that `npm test -- --install` fetched into the clone. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { projectDir } from './project-dir.js';

export const fetchedDir = join(projectDir, 'node_modules/.cache/sallyport');

/** The fetched program where it runs on this machine, or else the name of what is on the PATH. */
export function fetchedOr(name: string, question: readonly string[]): string {
  const fetched = join(fetchedDir, name);
  return spawnSync(fetched, question, { stdio: 'ignore' }).status === 0 ? fetched : name;
}
