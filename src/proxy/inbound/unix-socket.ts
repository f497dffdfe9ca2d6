import { lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import type { SocketPlace } from '../../config/types.js';
import { codeOf } from '../../lib/errors.js';

/**
 * Opens a Unix socket with the mode that says who may connect, from its first moment on. A socket that an earlier
 * process left there, to which nobody listens, is replaced; anything else there is left, and `listen` then fails with
 * `EADDRINUSE`.
 */
export async function openUnixSocket<T>({ path, mode }: SocketPlace, listen: () => Promise<T>): Promise<T> {
  if (await isLeftOver(path)) await unlink(path);
  // The file gets its mode when it is made: a moment later would be one in which others can connect.
  const before = process.umask(0o777 & ~mode);
  try {
    return await listen();
  } finally {
    process.umask(before);
  }
}

async function isLeftOver(path: string): Promise<boolean> {
  try {
    if (!(await lstat(path)).isSocket()) return false;
  } catch {
    return false;
  }
  return new Promise((resolve) => {
    const socket = connect(path);
    socket
      .once('connect', () => {
        socket.destroy();
        resolve(false);
      })
      .once('error', (error) => resolve(codeOf(error, '') === 'ECONNREFUSED'));
  });
}
