/** Files that the config names: reading them, and saying what is wrong with them. */
import { secretFileRule } from '../../lib/secret-file-access.js';
import { readCaBundle } from '../../lib/pem.js';
import { refuse, type Result } from '../../lib/result.js';
import type { Files, Log } from '../../ports/system.js';
import { startFailure, type StartFailure } from '../start-failure.js';

/** A bundle of every public authority has some 250 KB. */
export const maxPemBytes = 1024 * 1024;

/** Reads a PEM file of authorities: the text, which holds at least one certificate and no broken one. */
export async function readAuthorities(path: string, files: Files): Promise<Result<string, StartFailure>> {
  const text = await readPem(path, files);
  if (!text.ok) return text;
  const certificates = readCaBundle(text.value);
  return certificates.ok ? text : invalidFile(path, certificates.error);
}

/** Reads a PEM file. */
export async function readPem(path: string, files: Files): Promise<Result<string, StartFailure>> {
  const text = await files.read(path, { maxBytes: maxPemBytes });
  return text.ok ? text : refuse(startFailure('unreadable', `${path}: ${text.error}`));
}

/** Says of a secret's file that was read anew who else may read it. */
export function warnOfExposure(path: string, files: Pick<Files, 'exposure'>, log: Pick<Log, 'warn'>): void {
  const exposure = files.exposure(path);
  if (exposure !== null) {
    log.warn(`the new file of a secret is one that ${exposure}`, { file: path, allowed: secretFileRule });
  }
}

/** Says what is wrong with what a file holds. */
export function invalidFile(path: string, what: string): Result<never, StartFailure> {
  return refuse(startFailure('invalid', `${path}: ${what}`));
}
