import { formatMode } from '../../lib/secret-file-access.js';
import { fileFailure } from '../../lib/errors.js';
import { constants, type Stats } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { pathIn, type Folder } from '../../lib/files.js';
import { formatCurlProblem, parseCurlConfig, type CurlConfig } from './curl-config.js';
import { maxCaFileBytes, readCaFile } from '../../lib/pem.js';
import { accept, refuse, type Result } from '../../lib/result.js';

/** A curl config file and what it points to. */
export interface CurlConfigFile extends CurlConfig {
  /** PEM certificates of the authorities to trust instead of the system's; `null` trusts those. */
  readonly ca: readonly string[] | null;
}

/** A link is refused by the system itself, and opening a FIFO does not wait for its other end. */
const ownFile = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | constants.O_NOCTTY;
const anyFile = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

/** Read and write for the owner: any other bit, also the owner's x, is more than 0600. */
const excessBits = 0o7177;

/** Some hundred headers. */
export const maxCurlConfigBytes = 64 * 1024;

/**
 * Reads a curl config file and the CA file that it names. The file holds a key, so it must be a regular file, no link,
 * of mode 0600 or stricter and of the caller: checked on the file that was opened, so that no other can take its place
 * in between. A refusal is a line for people that begins with the path.
 */
export async function readCurlConfig(path: string, folder: Folder): Promise<Result<CurlConfigFile, string>> {
  const text = await readFile(pathIn(folder, path), ownFile, maxCurlConfigBytes, privacyProblem);
  if (!text.ok) return refuse(`${path} ${text.error}`);
  const config = parseCurlConfig(text.value);
  if (!config.ok) return refuse(formatCurlProblem(path, config.error));
  const { caFile } = config.value;
  if (caFile === null) return accept({ ...config.value, ca: null });
  const ca = readCaFile(caFile, await readFile(pathIn(folder, caFile), anyFile, maxCaFileBytes, () => null));
  return ca.ok ? accept({ ...config.value, ca: ca.value }) : ca;
}

async function readFile(
  path: string,
  flags: number,
  maxBytes: number,
  problemOf: (stats: Stats) => string | null,
): Promise<Result<string, string>> {
  let file: FileHandle;
  try {
    file = await open(path, flags);
  } catch (error) {
    return refuse(fileFailure(error, 'is a symbolic link; name the file itself'));
  }
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return refuse('is no regular file');
    const problem = problemOf(stats);
    if (problem !== null) return refuse(problem);
    return await readAll(file, maxBytes);
  } catch {
    return refuse('cannot be read');
  } finally {
    await file.close();
  }
}

function privacyProblem(stats: Stats): string | null {
  const mode = stats.mode & 0o7777;
  if ((mode & excessBits) !== 0) {
    return `has mode ${formatMode(mode)}, and only 0600 or stricter keeps its key; chmod 600 it`;
  }
  const user = process.geteuid?.() ?? stats.uid;
  return stats.uid === user ? null : `belongs to another user (uid ${String(stats.uid)}, this is uid ${String(user)})`;
}

async function readAll(file: FileHandle, maxBytes: number): Promise<Result<string, string>> {
  const buffer = Buffer.alloc(maxBytes + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
    length += bytesRead;
    if (length > maxBytes) return refuse(`is larger than ${String(maxBytes)} bytes`);
    if (bytesRead === 0) break;
  }
  try {
    return accept(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(buffer.subarray(0, length)));
  } catch {
    return refuse('is not UTF-8 text');
  }
}
