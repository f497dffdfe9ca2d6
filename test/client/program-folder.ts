import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { projectDir } from '../support/project-dir.js';
import type { Scope } from '../support/scope.js';
import { tempDir } from '../support/temp-dir.js';

/** A folder of a program that has this package among its dependencies. */
export function programFolder(t: Scope): string {
  const dir = tempDir(t);
  mkdirSync(join(dir, 'node_modules'));
  symlinkSync(projectDir, join(dir, 'node_modules/sallyport'));
  return dir;
}
