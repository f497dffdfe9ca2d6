/** Where the real `kubectl` and `helm` are: fetched by the check where none is on the PATH. */
import { join } from 'node:path';
import { projectDir } from './project-dir.js';

/** A PATH that has them. */
export function pathWithKubectl(): string {
  return `${join(projectDir, 'node_modules/.cache/sallyport')}:${process.env['PATH'] ?? ''}`;
}
