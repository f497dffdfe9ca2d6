import type { ChildProcess } from 'node:child_process';

/**
 * Tells that a handle which was sent to a process with `keepOpen` did not reach it: it has no file descriptor left for
 * it. Node does not send such a handle again, and tells nobody. Listens for `internalMessage`, by which a process
 * answers a handle.
 */
export function onHandleLost(child: ChildProcess, tell: () => void): void {
  child.on('internalMessage', (message: unknown) => {
    if (typeof message === 'object' && message !== null && 'cmd' in message && message.cmd === 'NODE_HANDLE_NACK') {
      tell();
    }
  });
}
