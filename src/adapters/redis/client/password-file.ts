import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';

/** Longest password, bytes. */
const maxPasswordBytes = 4_096;

/**
 * Reads a password when a connection needs it: secrets rotate, and a connection is made at once. One line end at its
 * end is not part of it.
 *
 * @returns `null` where there is no such file, or it is no regular file or too long: the server will then refuse us,
 *   which is what the store's state says, and the file may be back at the next attempt.
 */
export function readPassword(path: string): string | null {
  let file: number;
  try {
    // Not blocking: a FIFO in its place would hold up everything.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  try {
    if (!fstatSync(file).isFile()) return null;
    const bytes = Buffer.alloc(maxPasswordBytes + 1);
    const length = readSync(file, bytes);
    return length > maxPasswordBytes ? null : bytes.toString('utf8', 0, length).replace(/\r?\n$/, '');
  } catch {
    return null;
  } finally {
    closeSync(file);
  }
}
