import type { TLSSocket } from 'node:tls';
import { TokenBucket } from '../../../decision/limits/token-bucket.js';
import type { Clock } from '../../../ports/system.js';
import { socketBelow, stopReading } from '../../node-internals/socket.js';

/**
 * Keys that a connection may have us derive once its handshake is complete: so many at once, so many more each second.
 * A client changes its own after millions of records (RFC 8446 §5.5), and where it asks for a change of ours that makes
 * two.
 */
const keys = { most: 64, perSecond: 1 };

/**
 * Ends a connection that changes its keys again and again (KeyUpdate, RFC 8446 §4.6.3): each change is a record of 27
 * bytes, costs as much as some requests, and OpenSSL takes any number of them without a word to us. But it tells each
 * new key to whoever logs keys. What it tells is not looked at.
 *
 * @param onAbuse it is ended.
 */
export function boundKeyUpdates(socket: TLSSocket, clock: Pick<Clock, 'monotonic'>, onAbuse: () => void): void {
  let derived: TokenBucket | null = null;
  const onKey = (): void => {
    const nowMs = clock.monotonic();
    derived ??= new TokenBucket(keys.most, keys.perSecond, nowMs);
    if (derived.take(1, nowMs)) return;
    socket.off('keylog', onKey);
    // OpenSSL is at work on what was read, and must not lose its connection in the midst of it.
    stopReading(socketBelow(socket));
    setImmediate(() => socket.destroy());
    onAbuse();
  };
  socket.on('keylog', onKey);
}
