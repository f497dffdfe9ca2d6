import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { programFolder } from '../client/program-folder.js';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';

/** A folder of an application that has this package among its packages, beside Fastify. */
export function applicationFolder(t: Scope): string {
  const dir = programFolder(t);
  for (const name of ['fastify', '@types']) {
    symlinkSync(join(projectDir, 'node_modules', name), join(dir, 'node_modules', name));
  }
  return dir;
}
