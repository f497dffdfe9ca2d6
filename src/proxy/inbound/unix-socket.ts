import { chmod, lchown, lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import type { SocketPlace } from '../../config/types.js';
import { codeOf } from '../../lib/errors.js';

/** Has `chown` leave an id as it is. */
const unchanged = -1;

/**
 * Opens a Unix socket with the owner and the mode that say who may connect, from its first moment on. A socket that an
 * earlier process left there, to which nobody listens, is replaced; anything else there is left, and `listen` then
 * fails with `EADDRINUSE`. Rejects with `EPERM` where the process may not give it to that owner.
 */
export async function openUnixSocket<T>({ path, mode, owner }: SocketPlace, listen: () => Promise<T>): Promise<T> {
  if (await isLeftOver(path)) await unlink(path);
  // Made for nobody but its owner, and opened to others then: the other way round there would be a moment for anybody.
  const before = process.umask(0o177);
  try {
    const listening = await listen();
    if (owner !== null) await lchown(path, owner.uid ?? unchanged, owner.gid ?? unchanged);
    await chmod(path, mode);
    return listening;
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
