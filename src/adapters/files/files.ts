import { statSync } from 'node:fs';
import { exposureOf } from '../../lib/secret-file-access.js';
import type { Files } from '../../ports/system.js';
import { watchFile } from './file-watch.js';
import { readText, textDigest } from './read-file.js';

/** The machine's files. */
export const localFiles: Files = { read: readText, digest: textDigest, watch: watchFile, exposure: fileExposure };

/**
 * Who else may read or change a secret's file, symbolic links followed. `null` where nobody may, where it is no regular
 * file or cannot be looked at, of which whoever reads it speaks, and on systems whose files have no owner.
 */
export function fileExposure(path: string): string | null {
  const user = process.geteuid?.();
  if (user === undefined) return null;
  try {
    const stats = statSync(path);
    return stats.isFile() ? exposureOf({ mode: stats.mode, owner: stats.uid }, user) : null;
  } catch {
    return null;
  }
}
