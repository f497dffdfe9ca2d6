import { constants } from 'node:fs';
import { open, rename, rm, writeFile } from 'node:fs/promises';
import { isAbsolute, resolve } from 'node:path';

/** Where relative paths start from. */
export interface Folder {
  readonly cwd: string;
}

/** Makes a path absolute. The folder is asked for with a relative one only: it may be gone. */
export function pathIn(folder: Folder, path: string): string {
  return isAbsolute(path) ? resolve(path) : resolve(folder.cwd, path);
}

/** Waits until what a folder lists is on the disk: a file that was made or renamed is there after a crash only then. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/**
 * Writes a file that takes the place of an older one when it is whole; a symbolic link is replaced, not followed.
 * Throws what the system says, and leaves nothing behind then.
 */
export async function replaceFile(path: string, text: string, mode = 0o666): Promise<void> {
  const draft = `${path}.new`;
  await rm(draft, { force: true });
  try {
    await writeFile(draft, text, { flag: 'wx', mode });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
