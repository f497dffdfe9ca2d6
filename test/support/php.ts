/** PHP with its own server. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startUpstreamProcess } from './upstream-process.js';
import type { Scope } from './scope.js';
import { tempDir } from './temp-dir.js';

/** Runs this program for each request, one at a time. */
export async function startPhp(t: Scope, text: string, env: Readonly<Record<string, string>>): Promise<number> {
  const file = join(tempDir(t), 'service.php');
  writeFileSync(file, text);
  return startUpstreamProcess(t, { command: 'php', args: (address) => ['-S', address, file], env });
}

/** Serves a folder with these files, as it does without a program that is asked first. */
export async function startPhpFolder(t: Scope, files: Readonly<Record<string, string>>): Promise<number> {
  const folder = tempDir(t);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return startUpstreamProcess(t, { command: 'php', args: (address) => ['-S', address, '-t', folder] });
}
