import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectDir } from '../support/project-dir.js';

/**
 * Puts what one command measured in its place on a page, between two comments that name it, and leaves the rest as it
 * is.
 */
export function writePart(dir: string, page: string, name: string, text: string): void {
  const file = join(dir, page);
  if (!existsSync(file)) {
    mkdirSync(dir, { recursive: true });
    copyFileSync(join(projectDir, 'docs', page), file);
  }
  const before = readFileSync(file, 'utf8');
  const [begin, end] = [`<!-- bench: ${name} -->\n`, `<!-- end of bench: ${name} -->\n`];
  const [from, to] = [before.indexOf(begin), before.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${file} has no place for ${name}`);
  writeFileSync(file, `${before.slice(0, from + begin.length)}\n${text.trim()}\n\n${before.slice(to)}`);
}
