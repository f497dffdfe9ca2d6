import { Server as NetServer } from 'node:net';
import type { Server } from 'node:http';

/**
 * Accepts no more connections, by `net.Server.prototype.close`. The `close` of `http.Server` also ends connections
 * whose last response is still being read, and looks for late heads no more.
 *
 * @param onClosed called when the last connection is closed.
 */
export function stopAccepting(server: Server, onClosed: () => void): void {
  NetServer.prototype.close.call(server, () => {
    onClosed();
  });
}
