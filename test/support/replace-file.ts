import { renameSync, writeFileSync } from 'node:fs';

/** Puts a whole new file in the place of another at once, as `mv` does; made with `mode` where it is given. */
export function replaceFile(path: string, text: string, mode?: number): void {
  writeFileSync(`${path}.new`, text, { mode });
  renameSync(`${path}.new`, path);
}
