/**
 * Removes from `dist` what no source compiles to any more: the compiler leaves the files of a source that was renamed
 * or deleted. `npm run build` runs it after the compiler.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Removes the files in `dist` without a source in `src`, and folders that are empty then; returns what was removed. */
export function prune(dist, src) {
  const removed = [];
  const visit = (folder) => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) visit(path);
      else if (isStale(relative(dist, path), src)) {
        rmSync(path);
        removed.push(relative(dist, path));
      }
    }
    if (folder !== dist && readdirSync(folder).length === 0) rmSync(folder, { recursive: true });
  };
  visit(dist);
  return removed.sort();
}

function isStale(path, src) {
  const compiled = /\.(?:js|js\.map|d\.ts)$/.exec(path);
  return compiled !== null && !existsSync(join(src, `${path.slice(0, compiled.index)}.ts`));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('..', import.meta.url));
  prune(join(root, 'dist'), join(root, 'src'));
}
