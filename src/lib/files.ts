import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

/** Waits until what a folder lists is on the disk: a file that was made or renamed is there after a crash only then. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
