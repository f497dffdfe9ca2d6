import { secretFileRule } from '../lib/secret-file-access.js';
import type { Files, Log } from '../ports/system.js';

/** Says of a secret's file that was read anew who else may read it. */
export function warnOfExposure(path: string, files: Pick<Files, 'exposure'>, log: Pick<Log, 'warn'>): void {
  const exposure = files.exposure(path);
  if (exposure !== null) {
    log.warn(`the new file of a secret is one that ${exposure}`, { file: path, allowed: secretFileRule });
  }
}
